/// Readable names of types at compile time, and their 64-bit hash; signatures of registered functions consist of these.
/// Start with `type_name<T>()` and `type_hash<T>()`. g++ and clang give the same text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "caftan/base/fnv1a.hpp"

namespace caftan::wire {

namespace detail {

template <class T>
constexpr std::string_view compiler_type_name() noexcept {
  // g++: "constexpr std::string_view f() [with T = X; std::string_view = ...]", clang: "... [T = X]"
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  int nesting = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++nesting;
    if (nesting == 0 && (c == ';' || c == ']')) return text.substr(0, i);
    if (c == '>' || c == ')' || c == ']' || c == '}') --nesting;
  }
  return text;
}

struct Spelling {
  std::string_view from;
  std::string_view to;
};
/// Longer spellings come first, because the first one that fits is taken.
inline constexpr std::array<Spelling, 13> kSpellings{{
    {"std::__cxx11::basic_string<char>", "std::string"},
    {"std::basic_string<char>", "std::string"},
    {"std::__cxx11::", "std::"},
    {"std::basic_string_view<char>", "std::string_view"},
    {"at::Tensor", "Tensor"},
    {"{anonymous}::", ""},
    {"(anonymous namespace)::", ""},
    {"long long unsigned int", "unsigned long long"},
    {"long unsigned int", "unsigned long"},
    {"short unsigned int", "unsigned short"},
    {"long long int", "long long"},
    {"long int", "long"},
    {"short int", "short"},
}};
/// Default template arguments, which some compilers print and some leave out.
inline constexpr std::array<std::string_view, 5> kDefaultArguments{", std::allocator<", ", std::char_traits<",
                                                                   ", std::less<", ", std::hash<", ", std::equal_to<"};

constexpr bool is_part_of_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

/// Writes `from` in Caftan's spelling to `to` (never longer) and returns the length.
constexpr std::size_t respell(std::string_view from, char* to) noexcept {
  std::size_t length = 0;
  while (!from.empty()) {
    bool matched = false;
    for (const Spelling& s : kSpellings) {
      if (!from.starts_with(s.from)) continue;
      if (length > 0 && is_part_of_name(to[length - 1]) && is_part_of_name(s.from.front())) continue;
      for (const char c : s.to) to[length++] = c;
      from.remove_prefix(s.from.size());
      matched = true;
      break;
    }
    for (const std::string_view argument : kDefaultArguments) {
      if (matched || !from.starts_with(argument)) continue;
      std::size_t end = argument.size();
      for (int nesting = 1; nesting > 0 && end < from.size(); ++end) {
        if (from[end] == '<') ++nesting;
        if (from[end] == '>') --nesting;
      }
      while (end < from.size() && from[end] == ' ') ++end;
      from.remove_prefix(end);
      matched = true;
    }
    if (matched) continue;
    const bool idle_space = from.front() == ' ' && from.size() > 1 &&
                            (from[1] == '>' || from[1] == '*' || from[1] == '&' || from[1] == '(');
    if (!idle_space) to[length++] = from.front();
    from.remove_prefix(1);
  }
  return length;
}

template <class T>
struct TypeText {
  static constexpr std::string_view kRaw = compiler_type_name<T>();
  static constexpr auto make() noexcept {
    std::array<char, kRaw.size() + 1> text{};
    std::array<char, kRaw.size() + 1> again{};
    // Respells twice: the first pass may bring together what the second joins ("std::basic_string<char> >").
    const std::size_t once = respell(kRaw, text.data());
    respell({text.data(), once}, again.data());
    return again;
  }
  static constexpr auto kText = make();
};

}  // namespace detail

/// Returns the name of T, for example "std::map<std::string, int>" or "Tensor". References and const are kept.
template <class T>
constexpr std::string_view type_name() noexcept {
  return std::string_view(detail::TypeText<T>::kText.data());
}

/// Returns the FNV-1a hash of type_name<T>().
template <class T>
constexpr std::uint64_t type_hash() noexcept {
  return base::fnv1a(type_name<T>());
}

}  // namespace caftan::wire

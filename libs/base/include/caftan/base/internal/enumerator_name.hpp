/// `enumerator_name`: what an enumerator is called in the source, taken from the compiler. So a new enumerator is one
/// line, and no second list can lack it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace caftan {

namespace detail {

template <auto kValue>
constexpr std::string_view compiler_enumerator_name() noexcept {
  // g++: "... f() [with auto kValue = caftan::Errc::ok; std::string_view = ...]", clang: "... [kValue =
  // caftan::Errc::ok]"; for a number without an enumerator "(caftan::Errc)200" stands there.
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("kValue = ") + 9);
  text = text.substr(0, text.find_first_of(";]"));
  if (text.front() == '(') return {};
  return text.substr(text.rfind(':') + 1);
}

template <class E, std::size_t... Is>
constexpr std::array<std::string_view, sizeof...(Is)> enumerator_names(std::index_sequence<Is...>) noexcept {
  return {compiler_enumerator_name<static_cast<E>(Is)>()...};
}

}  // namespace detail

/// The names by number; empty where the enum has no enumerator.
template <class E>
inline constexpr auto kEnumeratorNames = detail::enumerator_names<E>(std::make_index_sequence<256>());

/// Returns the name of the enumerator, empty for a number that has none. Costs compile time: use it in source files.
template <class E>
constexpr std::string_view enumerator_name(E value) noexcept {
  static_assert(std::is_same_v<std::underlying_type_t<E>, std::uint8_t>, "there are names for 256 numbers");
  return kEnumeratorNames<E>[static_cast<std::uint8_t>(value)];
}

}  // namespace caftan

/// How the standard library's types travel. Include archive.hpp instead.
#pragma once

#include <chrono>
#include <complex>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "caftan/wire/elements.hpp"

namespace caftan::wire {
namespace detail {

template <class Container>
void save_sequence(OutArchive& to, const Container& values) {
  to.save_count(values.size());
  for (const auto& value : values) save_element(to, value);
}

template <class Container>
struct SequenceCodec {
  using Value = typename Container::value_type;
  static void save(OutArchive& to, const Container& values) { save_sequence(to, values); }
  static void load(InArchive& from, Container& values) {
    const std::size_t count = from.load_count();
    values.clear();
    for (std::size_t i = 0; i < count; ++i) load_element(from, values.emplace_back(blank<Value>()));
  }
};

template <class Container>
struct SetCodec {
  static void save(OutArchive& to, const Container& values) { save_sequence(to, values); }
  static void load(InArchive& from, Container& values) {
    const std::size_t count = from.load_count();
    values.clear();
    for (std::size_t i = 0; i < count; ++i) {
      auto value = blank<typename Container::value_type>();
      load_element(from, value);
      values.insert(values.end(), std::move(value));
      if (values.size() != i + 1) throw DecodeError("an element of a set occurs twice");
    }
  }
};

template <class Container>
struct MapCodec {
  static void save(OutArchive& to, const Container& values) { save_sequence(to, values); }
  static void load(InArchive& from, Container& values) {
    const std::size_t count = from.load_count();
    values.clear();
    for (std::size_t i = 0; i < count; ++i) {
      std::pair<typename Container::key_type, typename Container::mapped_type> entry{
          blank<typename Container::key_type>(), blank<typename Container::mapped_type>()};
      load_element(from, entry);
      values.emplace_hint(values.end(), std::move(entry.first), std::move(entry.second));
      if (values.size() != i + 1) throw DecodeError("a key of a map occurs twice");
    }
  }
};

}  // namespace detail

template <class Char, class Traits, class Allocator>
struct Codec<std::basic_string<Char, Traits, Allocator>> {
  using String = std::basic_string<Char, Traits, Allocator>;
  static void save(OutArchive& to, const String& text) {
    to.save_count(text.size());
    to.save_binary(text.data(), text.size() * sizeof(Char));
  }
  static void load(InArchive& from, String& text) {
    text.resize(from.load_count(sizeof(Char)));
    from.load_binary(text.data(), text.size() * sizeof(Char));
  }
};
/// A view is written like a string; read it as a string.
template <>
struct Codec<std::string_view> {
  static void save(OutArchive& to, const std::string_view& text) {
    to.save_count(text.size());
    to.save_binary(text.data(), text.size());
  }
};

template <class T, class Allocator>
struct Codec<std::vector<T, Allocator>> {
  using Vector = std::vector<T, Allocator>;
  static void save(OutArchive& to, const Vector& values) {
    to.save_count(values.size());
    detail::save_elements(to, values.data(), values.size());
  }
  static void load(InArchive& from, Vector& values) {
    if constexpr (Blittable<T>) {
      values.resize(from.load_count(sizeof(T)));
      from.load_binary(values.data(), values.size() * sizeof(T));
    } else {
      const std::size_t count = from.load_count();
      values.clear();
      values.reserve(detail::reserve_ahead<T>(count));
      for (std::size_t i = 0; i < count; ++i) detail::load_element(from, values.emplace_back(detail::blank<T>()));
    }
  }
};
template <class Allocator>
struct Codec<std::vector<bool, Allocator>> {
  static void save(OutArchive& to, const std::vector<bool, Allocator>& values) {
    to.save_count(values.size());
    for (const bool value : values) to << value;
  }
  static void load(InArchive& from, std::vector<bool, Allocator>& values) {
    values.resize(from.load_count());
    for (auto&& value : values) {
      bool read = false;
      from >> read;
      value = read;
    }
  }
};
/// A span is written like a vector; read it as a vector.
template <class T, std::size_t N>
struct Codec<std::span<T, N>> {
  static void save(OutArchive& to, const std::span<T, N>& values) {
    to.save_count(values.size());
    detail::save_elements<std::remove_const_t<T>>(to, values.data(), values.size());
  }
};

template <class T, std::size_t N>
struct Codec<std::array<T, N>> {
  static void save(OutArchive& to, const std::array<T, N>& values) { detail::save_elements(to, values.data(), N); }
  static void load(InArchive& from, std::array<T, N>& values) { detail::load_elements(from, values.data(), N); }
};
template <class T, std::size_t N>
struct Codec<T[N]> {
  static void save(OutArchive& to, const T (&values)[N]) { detail::save_elements(to, values, N); }
  static void load(InArchive& from, T (&values)[N]) { detail::load_elements(from, values, N); }
};

template <class... Ts>
struct Codec<std::deque<Ts...>> : detail::SequenceCodec<std::deque<Ts...>> {};
template <class... Ts>
struct Codec<std::list<Ts...>> : detail::SequenceCodec<std::list<Ts...>> {};
template <class... Ts>
struct Codec<std::set<Ts...>> : detail::SetCodec<std::set<Ts...>> {};
template <class... Ts>
struct Codec<std::multiset<Ts...>> : detail::SetCodec<std::multiset<Ts...>> {};
template <class... Ts>
struct Codec<std::unordered_set<Ts...>> : detail::SetCodec<std::unordered_set<Ts...>> {};
template <class... Ts>
struct Codec<std::map<Ts...>> : detail::MapCodec<std::map<Ts...>> {};
template <class... Ts>
struct Codec<std::multimap<Ts...>> : detail::MapCodec<std::multimap<Ts...>> {};
template <class... Ts>
struct Codec<std::unordered_map<Ts...>> : detail::MapCodec<std::unordered_map<Ts...>> {};

template <class A, class B>
struct Codec<std::pair<A, B>> {
  static void save(OutArchive& to, const std::pair<A, B>& value) { to << value.first << value.second; }
  static void load(InArchive& from, std::pair<A, B>& value) { from >> value.first >> value.second; }
};
/// A tuple is its elements one by one; also tuples of references (`std::tie`, `std::forward_as_tuple`).
template <class... Ts>
struct Codec<std::tuple<Ts...>> {
  static void save(OutArchive& to, const std::tuple<Ts...>& values) {
    std::apply([&](const auto&... value) { (void(to << value), ...); }, values);
  }
  static void load(InArchive& from, std::tuple<Ts...>& values) {
    std::apply([&](auto&... value) { (void(from >> value), ...); }, values);
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static void save(OutArchive& to, const std::optional<T>& value) {
    to << value.has_value();
    if (value) to << *value;
  }
  static void load(InArchive& from, std::optional<T>& value) {
    bool present = false;
    from >> present;
    value.reset();
    if (present) from >> value.emplace(detail::blank<T>());
  }
};

template <>
struct Codec<std::monostate> {
  static void save(OutArchive&, const std::monostate&) {}
  static void load(InArchive&, std::monostate&) {}
};
template <class... Ts>
struct Codec<std::variant<Ts...>> {
  static void save(OutArchive& to, const std::variant<Ts...>& value) {
    if (value.valueless_by_exception()) throw EncodeError(Error(Errc::unsupported, "a variant without a value"));
    to.save_count(value.index());
    std::visit([&](const auto& alternative) { to << alternative; }, value);
  }
  static void load(InArchive& from, std::variant<Ts...>& value) {
    const std::uint64_t index = from.load_number();
    if (index >= sizeof...(Ts)) throw DecodeError("bad index of a variant");
    load_alternative(from, value, index, std::index_sequence_for<Ts...>());
  }

 private:
  template <std::size_t... Is>
  static void load_alternative(InArchive& from, std::variant<Ts...>& value, std::uint64_t index,
                               std::index_sequence<Is...>) {
    (void)((Is == index && (from >> value.template emplace<Is>(detail::blank<Ts>()), true)) || ...);
  }
};

template <class Rep, class Period>
struct Codec<std::chrono::duration<Rep, Period>> {
  using Duration = std::chrono::duration<Rep, Period>;
  static void save(OutArchive& to, const Duration& value) { to << value.count(); }
  static void load(InArchive& from, Duration& value) {
    Rep count{};
    from >> count;
    value = Duration(count);
  }
};
/// Only moments of wall time travel: a moment of the steady clock means nothing on another machine.
template <class Duration>
struct Codec<std::chrono::time_point<std::chrono::system_clock, Duration>> {
  using Moment = std::chrono::time_point<std::chrono::system_clock, Duration>;
  static void save(OutArchive& to, const Moment& value) { to << value.time_since_epoch(); }
  static void load(InArchive& from, Moment& value) {
    Duration since{};
    from >> since;
    value = Moment(since);
  }
};

template <class T>
struct Codec<std::complex<T>> {
  static void save(OutArchive& to, const std::complex<T>& value) { to << value.real() << value.imag(); }
  static void load(InArchive& from, std::complex<T>& value) {
    T parts[2];
    from >> parts[0] >> parts[1];
    value = {parts[0], parts[1]};
  }
};

}  // namespace caftan::wire

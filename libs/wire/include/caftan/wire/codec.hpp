/// `Codec<T>`: how a type travels when it has no Boost `serialize`, or must not use it. Specialize it for types that
/// need a companion (tensors, remote references); codecs of the standard library's types are in std_codecs.hpp.
#pragma once

#include <array>
#include <bit>
#include <boost/serialization/is_bitwise_serializable.hpp>
#include <boost/serialization/serialization.hpp>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "caftan/base/result.hpp"

namespace caftan::wire {

class OutArchive;
class InArchive;

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory: little-endian");

/// Specializations offer
///     static void save(OutArchive& to, const T& value);
///     static void load(InArchive& from, T& value);
/// and throw EncodeError or DecodeError. A specialization has priority over a Boost `serialize`. It must be visible
/// wherever T is written or read.
template <class T>
struct Codec {};

/// A type whose Codec writes it.
template <class T>
concept SavedByCodec = requires(OutArchive& to, const T& value) {
  Codec<T>::save(to, value);
};
/// A type whose Codec reads it.
template <class T>
concept LoadedByCodec = requires(InArchive& from, T& value) {
  Codec<T>::load(from, value);
};

/// An enum whose author says which numbers it has: a function `bool is_valid(E)` found by argument-dependent lookup.
template <class E>
concept CheckedEnum = std::is_enum_v<E> && requires(E e) {
  { is_valid(e) } -> std::same_as<bool>;
};

/// Numbers and enums: written as they lie in memory. bool has two valid bytes, so it is read with a check.
template <class T>
concept Scalar = (std::is_arithmetic_v<T> || std::is_enum_v<T>)&&!std::same_as<T, long double>;

/// Types of which any bytes are a value, so that arrays of them are copied at once. A class joins by
/// BOOST_IS_BITWISE_SERIALIZABLE; its padding travels too.
template <class T>
concept Blittable =
    std::is_trivially_copyable_v<T> && !std::is_const_v<T> &&
    ((Scalar<T> && !std::same_as<T, bool> && !CheckedEnum<T>) ||
     (std::is_class_v<T> && !SavedByCodec<T> && boost::serialization::is_bitwise_serializable<T>::value));

namespace detail {

template <class T>
inline constexpr bool is_smart_pointer = false;
template <class T>
inline constexpr bool is_smart_pointer<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool is_smart_pointer<std::weak_ptr<T>> = true;
template <class T, class D>
inline constexpr bool is_smart_pointer<std::unique_ptr<T, D>> = true;
template <class T>
inline constexpr bool is_smart_pointer<std::reference_wrapper<T>> = true;

/// Whether a T is a view of memory that something else holds.
template <class T>
inline constexpr bool is_view = false;
template <class Char, class Traits>
inline constexpr bool is_view<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

struct NamedSerialize {
  int serialize;
};
template <class T>
struct WithNamedSerialize : T, NamedSerialize {};
/// Whether T has a member called serialize, private or not: the name is ambiguous then.
template <class T>
concept HasSerialize = std::is_class_v<T> && !std::is_final_v<T> && !requires {
  &WithNamedSerialize<T>::serialize;
};

struct NoArchive {};
template <class T>
void serialize(NoArchive&, T&, const unsigned int);
/// Whether there is a free template `serialize` for T, also in namespace boost::serialization: the call is ambiguous
/// then. Without one, the declaration above is better than Boost's, which looks for a member.
template <class T>
concept HasFreeSerialize =
    std::is_class_v<T> && !requires(NoArchive & archive, T& value, const boost::serialization::version_type& version) {
  serialize(archive, value, version);
};

/// Whether Boost finds a `serialize` for T. A final class may have a private one, which cannot be seen: it counts.
template <class T>
concept MaySerialize = !std::is_class_v<T> || std::is_final_v<T> || HasSerialize<T> || HasFreeSerialize<T> ||
                       requires(OutArchive & to, T& value) {
  serialize(to, value, 0U);
}
|| requires(InArchive& from, T& value) { serialize(from, value, 0U); };

/// States in words why a type cannot travel, instead of an error from deep inside Boost.
template <class T>
constexpr void refuse_untransportable() {
  static_assert(!std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T>,
                "a raw pointer cannot travel: send the value, or an RRef to it");
  static_assert(!is_smart_pointer<T>,
                "pointers are not tracked and cannot travel: send the value, an optional of it, or an RRef to it");
  static_assert(!std::is_function_v<T>, "a function cannot travel: register it and send its name");
  static_assert(!std::same_as<T, long double>, "long double differs between machines: send a double");
  static_assert(!std::is_union_v<T>, "a union cannot travel: use std::variant");
  static_assert(!is_view<T>, "a view of memory cannot travel: send a std::string or a std::vector");
  static_assert(is_smart_pointer<T> || is_view<T> || MaySerialize<T>,
                "a class that travels needs a serialize: template <class Archive> void serialize(Archive& archive, "
                "unsigned) { archive& first_member& second_member; }");
}

/// Returns the value that loading starts from.
template <class T>
T blank() {
  if constexpr (is_result<T>) {
    return T(Error());
  } else {
    static_assert(std::default_initializable<T>, "a type that travels needs a default constructor to be loaded into");
    return T{};
  }
}

/// The companions of an archive by type: a small fixed table, keyed by the address of a tag.
class Companions {
 public:
  static constexpr std::size_t kMost = 4;

  template <class C>
  void attach(C* companion) {
    for (auto& [tag, object] : slots_) {
      if (tag && tag != &kTag<C>) continue;
      tag = &kTag<C>;
      object = companion;
      return;
    }
    full();
  }
  template <class C>
  C* find() const noexcept {
    for (const auto& [tag, object] : slots_) {
      if (tag == &kTag<C>) return static_cast<C*>(object);
    }
    return nullptr;
  }

 private:
  struct Slot {
    const char* tag = nullptr;
    void* object = nullptr;
  };
  template <class C>
  static constexpr char kTag = 0;
  /// Ends the process: more than kMost kinds of companions are an error of Caftan's own code.
  [[noreturn]] static void full() noexcept;

  std::array<Slot, kMost> slots_{};
};

}  // namespace detail
}  // namespace caftan::wire

/// `InArchive`: reads values from bytes that are not trusted. Include archive.hpp; start at `decode` there.
#pragma once

#include <boost/mpl/bool.hpp>
#include <boost/serialization/library_version_type.hpp>
#include <boost/serialization/serialization.hpp>
#include <boost/serialization/version.hpp>
#include <cstring>

#include "caftan/wire/out_archive.hpp"

namespace caftan::wire {

/// Models Boost.Serialization's Loading Archive concept. Every length is checked against the bytes that are left before
/// anything is allocated. Throws DecodeError and nothing else of its own; a user's `serialize` may throw what it likes.
/// Threads: one at a time.
class InArchive {
 public:
  using is_saving = boost::mpl::false_;
  using is_loading = boost::mpl::true_;

  /// `from` must outlive the archive.
  explicit InArchive(ByteView from) noexcept : begin_(from.data()), at_(from.data()), end_(from.data() + from.size()) {}
  InArchive(const InArchive&) = delete;
  InArchive& operator=(const InArchive&) = delete;

  template <class T>
  InArchive& operator>>(T&& target) {
    using Value = std::remove_cvref_t<T>;
    auto& value = const_cast<Value&>(target);
    if constexpr (Scalar<Value>) {
      get(value);
    } else {
      const Level level(*this);
      if constexpr (LoadedByCodec<Value>) {
        Codec<Value>::load(*this, value);
      } else {
        detail::refuse_untransportable<Value>();
        if constexpr (detail::MaySerialize<Value>) {
          boost::serialization::serialize_adl(*this, value, load_version<Value>());
        }
      }
    }
    return *this;
  }
  template <class T>
  InArchive& operator&(T&& target) {
    return *this >> target;
  }

  /// Reads `size` bytes as they are, without a length.
  void load_binary(void* to, std::size_t size) {
    if (size == 0) return;
    std::memcpy(to, take(size).data(), size);
  }

  /// Returns the next `size` bytes in place and moves past them.
  ByteView take(std::size_t size) {
    if (size > remaining()) truncated();
    const std::byte* from = at_;
    at_ += size;
    return {from, size};
  }

  /// Reads a number written by save_count.
  std::uint64_t load_number() {
    if (at_ != end_ && std::to_integer<unsigned>(*at_) < 0x80) return std::to_integer<std::uint64_t>(*at_++);
    return load_long_number();
  }
  /// Reads the length of a sequence whose elements take at least `least` >= 1 bytes each in the input.
  std::size_t load_count(std::size_t least = 1) {
    const std::uint64_t count = load_number();
    if (count > remaining() / least) absurd_count();
    return static_cast<std::size_t>(count);
  }

  /// Returns the bytes that were not read yet.
  std::size_t remaining() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  /// Returns the bytes that were read.
  std::size_t position() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

  /// Lends an object to the codecs of types that travel out of band; at most 4 kinds. It must outlive the archive.
  template <class C>
  void attach(C* companion) {
    companions_.attach(companion);
  }
  /// Returns the object of type C that was lent, or null.
  template <class C>
  C* companion() const noexcept {
    return companions_.find<C>();
  }

  // The rest of Boost's concept of an archive. No object is tracked, so addresses do not matter.
  template <class T>
  void register_type(const T* = nullptr) const noexcept {}
  template <class Helper>
  Helper& get_helper(void* const = nullptr) {
    static_assert(!std::same_as<Helper, Helper>, "pointers are not tracked and cannot travel");
  }
  void reset_object_address(const void*, const void*) const noexcept {}
  void delete_created_pointers() const noexcept {}
  boost::serialization::library_version_type get_library_version() const noexcept {
    return boost::serialization::library_version_type(OutArchive::kLibraryVersion);
  }

 private:
  class Level {
   public:
    explicit Level(InArchive& of) : of_(of) {
      if (of.depth_ == kMaxNesting) too_deep();
      ++of.depth_;
    }
    ~Level() { --of_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    InArchive& of_;
  };

  template <class T>
  void get(T& value) {
    const ByteView bytes = take(sizeof(T));
    if constexpr (std::same_as<T, bool>) {
      if (std::to_integer<unsigned>(bytes[0]) > 1) bad_bool();
      value = std::to_integer<unsigned>(bytes[0]) == 1;
    } else {
      T read;
      std::memcpy(&read, bytes.data(), sizeof(T));
      if constexpr (CheckedEnum<T>) {
        if (!is_valid(read)) bad_enum();
      }
      value = read;
    }
  }
  /// A class of BOOST_CLASS_VERSION > 0 writes its version. A value of an older version is read, one of a newer version
  /// is refused.
  template <class T>
  unsigned load_version() {
    constexpr unsigned newest = boost::serialization::version<T>::value;
    if constexpr (newest == 0) return 0;
    const std::uint64_t version = load_number();
    if (version > newest) newer_class();
    return static_cast<unsigned>(version);
  }
  std::uint64_t load_long_number();

  [[noreturn]] static void truncated();
  [[noreturn]] static void absurd_count();
  [[noreturn]] static void bad_bool();
  [[noreturn]] static void bad_enum();
  [[noreturn]] static void newer_class();
  [[noreturn]] static void too_deep();

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  unsigned depth_ = 0;
  detail::Companions companions_;
};

}  // namespace caftan::wire

/// `OutArchive`: writes values to a byte buffer. Include archive.hpp, which brings the codecs; start at `encode` there.
#pragma once

#include <boost/mpl/bool.hpp>
#include <boost/serialization/library_version_type.hpp>
#include <boost/serialization/serialization.hpp>
#include <boost/serialization/version.hpp>
#include <cstring>

#include "caftan/wire/archive_error.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/codec.hpp"

namespace caftan::wire {

/// Values nest at most this deep in a message, so that bytes from outside cannot exhaust the stack.
inline constexpr unsigned kMaxNesting = 64;

/// Models Boost.Serialization's Saving Archive concept. Little-endian, no headers, no pointers. Appends; after each
/// `<<` or `&` of the user the buffer holds exactly the bytes that were written. While a value is being written, no
/// other code may touch the buffer. Throws EncodeError (and std::bad_alloc). Threads: one at a time.
class OutArchive {
 public:
  using is_saving = boost::mpl::true_;
  using is_loading = boost::mpl::false_;

  /// `to` must outlive the archive.
  explicit OutArchive(Bytes& to) noexcept : to_(to) {}
  OutArchive(const OutArchive&) = delete;
  OutArchive& operator=(const OutArchive&) = delete;

  template <class T>
  OutArchive& operator<<(const T& value) {
    if constexpr (Scalar<T>) {
      if (depth_ > 0) return put(value), *this;
    }
    const Stretched stretched(*this);
    if (depth_ > kMaxNesting) too_deep();
    if constexpr (Scalar<T>) {
      put(value);
    } else if constexpr (SavedByCodec<T>) {
      Codec<T>::save(*this, value);
    } else {
      detail::refuse_untransportable<T>();
      constexpr unsigned version = boost::serialization::version<T>::value;
      if constexpr (version > 0) save_count(version);
      if constexpr (detail::MaySerialize<T>) {
        boost::serialization::serialize_adl(*this, const_cast<T&>(value), version);
      }
    }
    return *this;
  }
  template <class T>
  OutArchive& operator&(const T& value) {
    return *this << value;
  }

  /// Writes `size` bytes as they are, without a length.
  void save_binary(const void* from, std::size_t size) {
    const Stretched stretched(*this);
    if (size == 0) return;  // memcpy from null is undefined even then
    reserve(size);
    std::memcpy(at_, from, size);
    at_ += size;
  }

  /// Writes an unsigned number in 1 to 10 bytes (LEB128): lengths, indices.
  void save_count(std::uint64_t count) {
    const Stretched stretched(*this);
    reserve(10);
    for (; count >= 0x80; count >>= 7) *at_++ = static_cast<std::byte>(count | 0x80);
    *at_++ = static_cast<std::byte>(count);
  }

  /// Returns the bytes written to the buffer so far, counting what was there before.
  std::size_t position() const noexcept { return depth_ > 0 ? static_cast<std::size_t>(at_ - to_.data()) : to_.size(); }

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

  // The rest of Boost's concept of an archive. No object is tracked, so these functions have nothing to do.
  template <class T>
  void register_type(const T* = nullptr) const noexcept {}
  template <class Helper>
  Helper& get_helper(void* const = nullptr) {
    static_assert(!std::same_as<Helper, Helper>, "pointers are not tracked and cannot travel");
  }
  boost::serialization::library_version_type get_library_version() const noexcept {
    return boost::serialization::library_version_type(kLibraryVersion);
  }
  /// The version of Boost's own containers that this archive writes; it fixes their layout whatever Boost is installed.
  static constexpr unsigned kLibraryVersion = 18;

 private:
  /// While an object of this class lives, the buffer has the size of its capacity and is written by pointer.
  class Stretched {
   public:
    explicit Stretched(OutArchive& of) : of_(of) {
      if (of.depth_ == 0) of.open();
      ++of.depth_;
    }
    ~Stretched() {
      if (--of_.depth_ == 0) of_.close();
    }
    Stretched(const Stretched&) = delete;
    Stretched& operator=(const Stretched&) = delete;

   private:
    OutArchive& of_;
  };

  template <class T>
  void put(T value) {
    reserve(sizeof(T));
    std::memcpy(at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  void reserve(std::size_t size) {
    if (size > static_cast<std::size_t>(end_ - at_)) grow(size);
  }
  void open() {
    const std::size_t size = to_.size();
    to_.resize(to_.capacity());
    at_ = to_.data() + size;
    end_ = to_.data() + to_.size();
  }
  void close() noexcept { to_.resize(static_cast<std::size_t>(at_ - to_.data())); }
  void grow(std::size_t size);
  [[noreturn]] static void too_deep();

  Bytes& to_;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  unsigned depth_ = 0;
  detail::Companions companions_;
};

}  // namespace caftan::wire

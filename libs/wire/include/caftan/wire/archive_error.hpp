/// The two exceptions of the archives. They never leave `encode`/`decode` (archive.hpp), which turn them into `Error`.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include "caftan/base/error.hpp"

namespace caftan::wire {

/// Thrown while reading bytes that do not decode. Holds no memory: it may be thrown for every bad message of a peer.
class DecodeError final : public std::exception {
 public:
  /// @param text  static storage: what was expected, without the position
  explicit DecodeError(const char* text, Errc code = Errc::malformed_payload) noexcept : text_(text), code_(code) {}
  const char* what() const noexcept override { return text_; }
  Errc code() const noexcept { return code_; }

 private:
  const char* text_;
  Errc code_;
};

/// Thrown while writing a value that cannot travel.
class EncodeError final : public std::exception {
 public:
  explicit EncodeError(Error error) noexcept : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.text().c_str(); }
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace caftan::wire

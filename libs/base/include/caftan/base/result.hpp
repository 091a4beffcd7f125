/// `Result<T>`: a value or an `Error`. What can fail returns it; only the user's edge throws (RpcException).
#pragma once

#include <optional>
#include <ostream>
#include <type_traits>
#include <utility>
#include <variant>

#include "caftan/base/error.hpp"

namespace caftan {

namespace detail {
/// Throws std::logic_error.
[[noreturn]] void no_error_there();
}  // namespace detail

/// A value, or the error why there is none. Result<void> holds nothing or an error. Threads: as T.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  /// Returns whether there is a value and no error.
  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// Precondition: has_value().
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }
  /// Returns the error. Throws std::logic_error where there is a value: that is a mistake of the caller.
  const Error& error() const {
    if (has_value()) detail::no_error_there();
    return *std::get_if<1>(&state_);
  }

  /// Returns the value or throws RpcException.
  T& value() & { return check(), **this; }
  T&& value() && { return check(), *std::move(*this); }
  /// Returns the value, or `other` where there is an error.
  T value_or(T other) const& {
    if (has_value()) return **this;
    return other;
  }
  T value_or(T other) && {
    if (has_value()) return *std::move(*this);
    return other;
  }

 private:
  void check() const {
    if (!has_value()) throw RpcException(error());
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Returns the error. Throws std::logic_error where there is none.
  const Error& error() const {
    if (!error_) detail::no_error_there();
    return *error_;
  }
  void value() const {
    if (error_) throw RpcException(*error_);
  }

 private:
  std::optional<Error> error_;
};

namespace detail {
template <class T>
concept Printable = std::is_void_v<T> || requires(std::ostream& out, const Result<T>& result) {
  out << *result;
};
}  // namespace detail

/// Writes the value, or the error's message; "ok" for a Result<void> without an error. Only where a T can be written.
template <class T>
requires detail::Printable<T> std::ostream& operator<<(std::ostream& out, const Result<T>& result) {
  if (!result) return out << result.error();
  if constexpr (std::is_void_v<T>) {
    return out << "ok";
  } else {
    return out << *result;
  }
}

}  // namespace caftan

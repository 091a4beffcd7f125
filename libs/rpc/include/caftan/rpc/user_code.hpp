/// The border at which exceptions of user code become errors: functions, methods, constructors, continuations.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "caftan/base/executor.hpp"
#include "caftan/base/result.hpp"

namespace caftan::rpc {

/// Whether T is a Result.
template <class T>
inline constexpr bool kIsResultType = false;
template <class T>
inline constexpr bool kIsResultType<Result<T>> = true;

/// Turns the exception in flight into a remote_exception "what: type: text"; only called from a handler. Never asks a
/// c10::Error for its backtrace (that takes milliseconds). An RpcException becomes the cause.
/// An error of the application's own that it holds (user_error) stays what it is.
/// @param thrown  the code of what was thrown: user_error for code that no other worker has called
Error user_code_failure(std::string_view worker, std::string_view what, Errc thrown = Errc::remote_exception);

/// Runs `function` and returns its result (a Result as it is, references as values), or an error for what it threw.
/// @param what  "math.add", for the text of an exception
/// @param thrown  the code of that error, unless it is a lack of memory or a user_error with a kind
template <class F>
auto run_user_code(std::string_view worker, std::string_view what, F&& function, Errc thrown = Errc::remote_exception) {
  using Returned = std::remove_cvref_t<std::invoke_result_t<F&>>;
  using Outcome = std::conditional_t<kIsResultType<Returned>, Returned, Result<Returned>>;
  const base::UserCode running;
  try {
    if constexpr (std::is_void_v<Returned>) {
      function();
      return Outcome();
    } else {
      return Outcome(function());
    }
  } catch (...) {
    return Outcome(user_code_failure(worker, what, thrown));
  }
}

}  // namespace caftan::rpc

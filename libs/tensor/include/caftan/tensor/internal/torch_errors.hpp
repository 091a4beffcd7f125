/// The border where libtorch's exceptions become an `Error`. Start with `catch_torch`.
#pragma once

#include <utility>

#include "caftan/base/result.hpp"

namespace c10 {
class Error;
}

namespace caftan::tensor {

/// Returns whether the error means that there is no memory. Only for devices does libtorch have an exception type for
/// that.
bool is_out_of_memory(const c10::Error& error);

/// Turns the exception in flight into an Error; only called from a handler. Lack of memory becomes limit_exceeded, a
/// wire::DecodeError keeps its code, every other exception gets `code`. The text is libtorch's without its backtrace,
/// which would take milliseconds to print.
Error torch_failure(Errc code);

/// Returns what `run` returns, a Result; an exception becomes an Error as torch_failure says.
template <class Run>
auto catch_torch(Errc code, Run&& run) -> decltype(std::forward<Run>(run)()) {
  try {
    return std::forward<Run>(run)();
  } catch (...) {
    return torch_failure(code);
  }
}

}  // namespace caftan::tensor

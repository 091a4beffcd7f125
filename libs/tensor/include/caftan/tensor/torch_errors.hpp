/// The border where libtorch's exceptions become an `Error`. Start with `catch_torch`.
#pragma once

#include <utility>

#include "caftan/base/result.hpp"

namespace c10 {
class Error;
}

namespace caftan::tensor {

/// Returns whether the error says that there is no memory. Libtorch has a type of its own for devices only.
bool is_out_of_memory(const c10::Error& error);

/// Turns the exception in flight into an Error; only called from a handler. Memory that is not there is limit_exceeded,
/// a wire::DecodeError keeps its code, everything else gets `code`. The text is libtorch's without its backtrace, which
/// would take milliseconds to print.
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

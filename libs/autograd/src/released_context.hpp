/// The error of everything that comes to a context after its end.
#pragma once

#include "caftan/base/error.hpp"
#include "caftan/base/ids.hpp"

namespace caftan::autograd {

inline Error released_context(const ContextId& context) {
  return Error(
      Errc::context_released,
      "autograd context " + to_string(context) +
          " is released: its handle is gone or its creator is lost; end all work in it before, or make a new one");
}

}  // namespace caftan::autograd

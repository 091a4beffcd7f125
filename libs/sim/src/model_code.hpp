// The border at which exceptions of a model become errors: handlers, `start`, `serialize`, `build`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "caftan/base/error.hpp"

namespace caftan::sim {

/// Runs `run`. Returns an error for what it threw: of an RpcException its own error; malformed_payload for bytes that
/// do not decode, unsupported for a value that cannot be written, limit_exceeded for a lack of memory, else user_error.
/// @param where  "LP 7 (Queue), Job at 1.5"; only called after an exception
std::optional<Error> run_model_code(const std::function<void()>& run, const std::function<std::string()>& where);

}  // namespace caftan::sim

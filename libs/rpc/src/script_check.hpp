/// The rules that a script's graphs are held to (docs/protocols/script.md, SC-4 to SC-7).
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "caftan/rpc/internal/script.hpp"

namespace caftan::rpc {

/// Looks at every operator that the method can reach: in blocks, in the methods, functions and submodules that it
/// calls, and in what it forks.
/// Errors: invalid_config, naming the method, the operator, its line, the rule and the way out.
Result<void> check_script(const torch::jit::Module& module, const torch::jit::Method& method, ScriptUse use);

}  // namespace caftan::rpc

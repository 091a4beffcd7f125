/// How modules of TorchScript are made at their owner, which every worker has registered.
#pragma once

#include <string>

#include "caftan/nn/script_module.hpp"
#include "caftan/rpc/function.hpp"

namespace caftan::nn {

/// Makes a module of the file that this worker has under `name`.
/// Errors: unknown_function, naming the files that it has; those of Script::load.
Result<ServedModule> make_script_module(const Registry& registry, const std::string& name);

/// The creation of a module of TorchScript.
inline constexpr RemoteFunction<Result<ServedModule>(Worker&, const std::string&)> kMakeScriptModule{
    "caftan.script_module"};

/// Registers the methods of ScriptModule.
void add_script_modules(Registry& registry);

}  // namespace caftan::nn

/// How methods of scripts are registered: under which signature, and what serves them.
#pragma once

#include <string_view>
#include <vector>

#include "caftan/rpc/operators.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/rpc/signature.hpp"

namespace caftan::rpc {

/// All methods of scripts have one C++ type; their schemas are compared at the callee.
using ScriptTypes = CallTypes<OperatorValues (*)(std::vector<OperatorArgument>)>;

/// Runs the method of a script that the entry of the invocation names.
void invoke_script(Invocation& in);

/// Returns the key of "policy.forward". @param name  lives as long as the key
FunctionKey script_key(std::string_view name);

/// Returns the error for a method that no script of this worker has.
Error no_script(const Registry& registry, std::string_view name);

}  // namespace caftan::rpc

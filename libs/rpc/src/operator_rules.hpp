/// What calls of operators and of scripts share: which operators peers may run here, and values between their forms as
/// they travel and as libtorch takes them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caftan/rpc/operators.hpp"

namespace caftan::rpc {

/// Who runs an operator: a peer by itself, or the code of a script. A script may change values that it has made itself,
/// which only its graph shows, so the rule about that stands with scripts.
enum class OperatorUse : std::uint8_t { by_itself, in_script };

/// The rule of `why_forbidden` about random numbers; a script keeps it where its constants say that none are drawn.
inline constexpr const char* kDrawsRandomNumbers = "it draws from the callee's random generator";

/// Returns the rule that forbids the operator (CALL-10), null if it may run.
const char* why_forbidden(const c10::OperatorHandle& op, OperatorUse use);

/// Returns a value as libtorch takes it. Throws c10::Error: no such device or dtype.
c10::IValue to_ivalue(const OperatorValue& value);
/// Errors: unsupported (a kind of value that does not travel).
Result<OperatorValue> from_ivalue(const c10::IValue& value);

/// Arguments as the dispatcher takes them.
struct Inputs {
  std::vector<c10::IValue> stack;
  std::unordered_map<std::string, c10::IValue> keywords;
};

/// Errors: bad_arguments (a keyword twice, no such device).
Result<Inputs> make_inputs(std::string_view name, const std::vector<OperatorArgument>& arguments);
/// Compares the arguments with the schema and adds its default values.
/// Errors: bad_arguments, in libtorch's words.
Result<void> complete_inputs(const c10::FunctionSchema& schema, std::string_view name, Inputs& inputs);

/// Returns the error for results that are not one tensor.
/// @param what  "the operator", @param way_out  the call that takes all results
Error not_one_tensor(std::string_view what, std::string_view way_out);

}  // namespace caftan::rpc

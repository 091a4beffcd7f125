/// Calls of ATen operators by their schema name: the values that travel for them, and which operators are allowed.
/// The one untyped call; users start with CallSite::rpc_op.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "caftan/rpc/call.hpp"

namespace caftan::rpc {

/// A device as it travels; whether it exists is for the callee to say.
struct OperatorDevice {
  std::string name;  ///< "cpu", "cuda:0"
};
/// A dtype by c10's code (float32 = 6, ...).
struct OperatorDtype {
  std::int8_t code = 0;
};

/// One value of an operator: the part of c10::IValue's types that pure tensor operators need.
using OperatorVariant = std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string,
                                     at::Tensor, OperatorDevice, OperatorDtype, std::vector<bool>,
                                     std::vector<std::int64_t>, std::vector<double>, std::vector<at::Tensor>>;

/// A value of an operator, which can be made from the usual C++ values.
struct OperatorValue : OperatorVariant {
  OperatorValue() = default;
  OperatorValue(std::monostate) {}               // NOLINT(google-explicit-constructor)
  OperatorValue(bool v) : OperatorVariant(v) {}  // NOLINT(google-explicit-constructor)
  template <std::integral I>
  requires(!std::same_as<I, bool>) OperatorValue(I v)
      : OperatorVariant(static_cast<std::int64_t>(v)) {}               // NOLINT(google-explicit-constructor)
  OperatorValue(double v) : OperatorVariant(v) {}                      // NOLINT(google-explicit-constructor)
  OperatorValue(float v) : OperatorVariant(static_cast<double>(v)) {}  // NOLINT(google-explicit-constructor)
  OperatorValue(std::complex<double> v) : OperatorVariant(v) {}        // NOLINT(google-explicit-constructor)
  OperatorValue(std::string v) : OperatorVariant(std::move(v)) {}      // NOLINT(google-explicit-constructor)
  OperatorValue(const char* v) : OperatorVariant(std::string(v)) {}    // NOLINT(google-explicit-constructor)
  OperatorValue(at::Tensor v) : OperatorVariant(std::move(v)) {}       // NOLINT(google-explicit-constructor)
  OperatorValue(at::ScalarType v) : OperatorVariant(OperatorDtype{static_cast<std::int8_t>(v)}) {}  // NOLINT
  OperatorValue(const at::Device& v) : OperatorVariant(OperatorDevice{v.str()}) {}                  // NOLINT
  OperatorValue(std::vector<bool> v) : OperatorVariant(std::move(v)) {}          // NOLINT(google-explicit-constructor)
  OperatorValue(std::vector<std::int64_t> v) : OperatorVariant(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  OperatorValue(std::vector<double> v) : OperatorVariant(std::move(v)) {}        // NOLINT(google-explicit-constructor)
  OperatorValue(std::vector<at::Tensor> v) : OperatorVariant(std::move(v)) {}    // NOLINT(google-explicit-constructor)
};
/// All results of an operator, in the order of its schema.
using OperatorValues = std::vector<OperatorValue>;

/// One argument: by position, or by keyword when `name` is set.
struct OperatorArgument {
  OperatorArgument() = default;
  template <class V>
  requires std::is_constructible_v<OperatorValue, V> OperatorArgument(V&& v)
      : value(std::forward<V>(v)) {}  // NOLINT(google-explicit-constructor): a value is an argument
  OperatorArgument(std::string keyword, OperatorValue v) : name(std::move(keyword)), value(std::move(v)) {}

  std::string name;
  OperatorValue value;
};

/// Returns an argument given by keyword.
inline OperatorArgument kwarg(std::string name, OperatorValue value) { return {std::move(name), std::move(value)}; }

/// The overload is chosen and the arguments are compared with it before anything is sent.
/// @param schema  "aten::add.Tensor" (name and overload), as the dispatcher knows it, or "aten::add": the overload that
///   takes the arguments; the one without a name first, then those with fewer parameters
/// Errors: those of a call; unknown_function and bad_arguments (naming the overloads there are) without sending
Future<OperatorValues> start_operator(const CallTarget& target, std::string_view schema,
                                      const std::vector<OperatorArgument>& arguments);
/// As start_operator, but the one resulting tensor stays at the callee, and a reference to the tensor is returned.
Result<std::shared_ptr<RRefHandle>> start_operator_creation(const CallTarget& target, std::string_view schema,
                                                            const std::vector<OperatorArgument>& arguments);

/// Errors: wrong_type unless the result is exactly one tensor.
/// @param what  "the operator", for the text
/// @param way_out  the call that takes all results
Result<at::Tensor> single_tensor(Result<OperatorValues> results, std::string_view what = "the operator",
                                 std::string_view way_out = "rpc_op_async");

/// Calls a method of a script that the peer serves: "policy.forward", the name of the script and of the method. The
/// peer compares the arguments with the method's schema.
/// Errors: those of a call
Future<OperatorValues> start_script(const CallTarget& target, std::string_view function,
                                    const std::vector<OperatorArgument>& arguments);
/// As start_script, but the one resulting tensor stays at the callee, and a reference to the tensor is returned.
Result<std::shared_ptr<RRefHandle>> start_script_creation(const CallTarget& target, std::string_view function,
                                                          const std::vector<OperatorArgument>& arguments);

/// Returns whether `body`, of a request of kind create, asks for an operator.
bool is_operator_creation(wire::ByteView body) noexcept;

/// Decodes and runs the operator a peer asked for. Called under the Ambient of the call.
/// Errors: malformed_payload, unknown_function, bad_arguments (schema, values), not allowed (bad_arguments),
///         remote_exception (the operator's own error).
Result<OperatorValues> run_operator(const InPayload& payload);

}  // namespace caftan::rpc

namespace caftan::wire {

template <>
struct Codec<rpc::OperatorDevice> {
  static void save(OutArchive& to, const rpc::OperatorDevice& device) { to << device.name; }
  static void load(InArchive& from, rpc::OperatorDevice& device) { from >> device.name; }
};
template <>
struct Codec<rpc::OperatorDtype> {
  static void save(OutArchive& to, const rpc::OperatorDtype& dtype) { to << dtype.code; }
  static void load(InArchive& from, rpc::OperatorDtype& dtype) { from >> dtype.code; }
};
template <>
struct Codec<rpc::OperatorValue> {
  static void save(OutArchive& to, const rpc::OperatorValue& value);
  static void load(InArchive& from, rpc::OperatorValue& value);
};
template <>
struct Codec<rpc::OperatorArgument> {
  static void save(OutArchive& to, const rpc::OperatorArgument& argument);
  static void load(InArchive& from, rpc::OperatorArgument& argument);
};

}  // namespace caftan::wire

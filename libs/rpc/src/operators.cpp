#include "caftan/rpc/operators.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace caftan {

namespace rpc {

namespace {

/// In a request of kind create: what stands where a function's name hash would.
constexpr std::uint64_t kOperatorMark = 0;

struct OperatorRequest {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"
  std::vector<OperatorArgument> arguments;
};

/// Not caught by the general rules of `check_allowed`.
constexpr std::array<std::string_view, 8> kDenied{
    "from_file", "record_stream", "set_data", "pin_memory", "retain_grad", "is_pinned", "cudnn_is_acceptable", "lift"};
/// Uninitialised memory of the callee would leave its process.
constexpr std::array<std::string_view, 2> kDeniedPrefixes{"empty", "new_empty"};

bool mentions(const c10::Type& type, std::initializer_list<c10::TypeKind> kinds) {
  if (std::find(kinds.begin(), kinds.end(), type.kind()) != kinds.end()) return true;
  const auto contained = type.containedTypes();
  return std::any_of(contained.begin(), contained.end(), [&](const auto& inner) { return mentions(*inner, kinds); });
}

/// Errors: bad_arguments, saying which rule forbids it.
Result<void> check_allowed(const c10::OperatorHandle& op) {
  const std::string& full = op.operator_name().name;
  const auto refuse = [&full](const char* why) {
    return Error(Errc::bad_arguments, full + " cannot be called remotely: " + why);
  };
  constexpr std::string_view kNamespace = "aten::";
  if (!full.starts_with(kNamespace)) return refuse("only operators of aten can");
  const std::string_view name = std::string_view(full).substr(kNamespace.size());
  if (name.starts_with('_')) return refuse("it is internal to ATen");
  if (op.schema().is_mutable()) return refuse("it changes its arguments");
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return refuse("it draws from the callee's random generator");
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (mentions(*argument.type(), {c10::TypeKind::GeneratorType, c10::TypeKind::StorageType,
                                    c10::TypeKind::StreamObjType, c10::TypeKind::ClassType})) {
      return refuse("it takes a generator, storage, stream or object");
    }
  }
  if (name.find("_backward") != std::string_view::npos) return refuse("it is part of a backward formula");
  for (const std::string_view prefix : kDeniedPrefixes) {
    if (name.starts_with(prefix)) return refuse("it returns memory that is not initialised");
  }
  if (std::find(kDenied.begin(), kDenied.end(), name) != kDenied.end()) {
    return refuse("it touches the callee's files, devices or process");
  }
  return {};
}

c10::IValue to_ivalue(const OperatorValue& value) {
  const auto convert = [](const auto& v) -> c10::IValue {
    using V = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<V, std::monostate>) {
      return c10::IValue();
    } else if constexpr (std::is_same_v<V, std::complex<double>>) {
      return c10::IValue(c10::complex<double>(v));
    } else if constexpr (std::is_same_v<V, OperatorDevice>) {
      return c10::IValue(c10::Device(v.name));
    } else if constexpr (std::is_same_v<V, OperatorDtype>) {
      TORCH_CHECK(v.code >= 0 && v.code < static_cast<int>(c10::ScalarType::NumOptions) &&
                      static_cast<c10::ScalarType>(v.code) != c10::ScalarType::Undefined,
                  "no dtype has the code ", static_cast<int>(v.code));
      return c10::IValue(static_cast<std::int64_t>(v.code));
    } else {
      return c10::IValue(v);
    }
  };
  return std::visit(convert, static_cast<const OperatorVariant&>(value));
}

Result<OperatorValue> from_ivalue(const c10::IValue& value) {
  if (value.isNone()) return OperatorValue();
  if (value.isTensor()) return OperatorValue(value.toTensor());
  if (value.isBool()) return OperatorValue(value.toBool());
  if (value.isInt()) return OperatorValue(value.toInt());
  if (value.isDouble()) return OperatorValue(value.toDouble());
  if (value.isComplexDouble()) return OperatorValue(std::complex<double>(value.toComplexDouble()));
  if (value.isString()) return OperatorValue(value.toStringRef());
  if (value.isDevice()) return OperatorValue(value.toDevice());
  if (value.isTensorList()) return OperatorValue(value.toTensorVector());
  if (value.isIntList()) return OperatorValue(value.toIntVector());
  if (value.isDoubleList()) return OperatorValue(value.toDoubleVector());
  if (value.isBoolList()) {
    const c10::List<bool> list = value.toBoolList();
    return OperatorValue(std::vector<bool>(list.begin(), list.end()));
  }
  return Error(Errc::unsupported, "a result of type " + value.tagKind() + " cannot be sent");
}

/// Runs an allowed operator. Errors: bad_arguments, remote_exception, unsupported (a result).
Result<OperatorValues> run(const c10::OperatorHandle& op, const std::vector<OperatorArgument>& arguments) {
  std::vector<c10::IValue> stack;
  std::unordered_map<std::string, c10::IValue> keywords;
  try {
    for (const OperatorArgument& argument : arguments) {
      if (argument.name.empty()) {
        stack.push_back(to_ivalue(argument.value));
      } else if (!keywords.emplace(argument.name, to_ivalue(argument.value)).second) {
        return Error(Errc::bad_arguments, "argument '" + argument.name + "' is given twice");
      }
    }
    op.schema().checkAndNormalizeInputs(stack, keywords);
  } catch (...) {
    return Error(Errc::bad_arguments, user_code_failure({}, op.operator_name().name).text());
  }
  const Result<void> done = run_user_code({}, op.operator_name().name, [&] { op.callBoxed(stack); });
  if (!done) return done.error();
  OperatorValues results;
  for (const c10::IValue& result : stack) {
    Result<OperatorValue> value = from_ivalue(result);
    if (!value) return value.error();
    results.push_back(*std::move(value));
  }
  return results;
}

Result<void> pack_operator(OutRequest& request, std::string_view schema,
                           const std::vector<OperatorArgument>& arguments) {
  const std::size_t dot = schema.find('.');
  const std::string_view overload = dot == std::string_view::npos ? std::string_view() : schema.substr(dot + 1);
  const auto name = std::make_shared<const std::string>(schema);
  request.what_owner = name;
  request.what = *name;
  try {
    Packer packer(request.body, request.tensors, request.rrefs);
    packer.archive << schema.substr(0, dot) << overload << arguments;
    return {};
  } catch (...) {
    return wire::detail::encode_failure();
  }
}

}  // namespace

Future<OperatorValues> start_operator(const CallTarget& target, std::string_view schema,
                                      const std::vector<OperatorArgument>& arguments) {
  OutRequest request;
  Result<void> done = begin_request(request, target, wire::FrameKind::op, nullptr, schema);
  if (done) done = pack_operator(request, schema, arguments);
  if (!done) return make_ready_future<OperatorValues>(done.error());
  return submit_request<OperatorValues>(target, std::move(request));
}

Result<std::shared_ptr<RRefHandle>> start_operator_creation(const CallTarget& target, std::string_view schema,
                                                            const std::vector<OperatorArgument>& arguments) {
  OutRequest request;
  Result<void> done = begin_request(request, target, wire::FrameKind::create, nullptr, schema);
  if (!done) return done.error();
  wire::OutArchive(request.body) << kOperatorMark;
  done = pack_operator(request, schema, arguments);
  if (!done) return done.error();
  return send_creation(target, std::move(request), type_key<at::Tensor>());
}

Result<at::Tensor> single_tensor(Result<OperatorValues> results) {
  if (!results) return results.error();
  if (results->size() == 1) {
    if (at::Tensor* const tensor = std::get_if<at::Tensor>(&(*results)[0])) return std::move(*tensor);
  }
  return Error(Errc::wrong_type, "the operator does not return one tensor; use rpc_op_async");
}

bool is_operator_creation(wire::ByteView body) noexcept {
  std::uint64_t mark = 0;
  if (body.size() < sizeof(mark)) return false;
  std::memcpy(&mark, body.data(), sizeof(mark));
  return mark == kOperatorMark;
}

Result<OperatorValues> run_operator(const InPayload& payload) {
  OperatorRequest request;
  Unpacker unpacker(payload);
  try {
    unpacker.archive >> request.name >> request.overload >> request.arguments;
    if (unpacker.archive.remaining() > 0) throw wire::DecodeError("bytes left over");
  } catch (...) {
    return wire::detail::decode_failure(unpacker.archive.position());
  }
  const auto op = c10::Dispatcher::singleton().findSchema({request.name, request.overload});
  if (!op) {
    return Error(Errc::unknown_function, "there is no operator " + request.name +
                                             (request.overload.empty() ? "" : "." + request.overload) +
                                             "; write name and overload, such as aten::add.Tensor");
  }
  const Result<void> allowed = check_allowed(*op);
  if (!allowed) return allowed.error();
  return run(*op, request.arguments);
}

}  // namespace rpc

namespace wire {

void Codec<rpc::OperatorValue>::save(OutArchive& to, const rpc::OperatorValue& value) {
  to << static_cast<const rpc::OperatorVariant&>(value);
}
void Codec<rpc::OperatorValue>::load(InArchive& from, rpc::OperatorValue& value) {
  from >> static_cast<rpc::OperatorVariant&>(value);
}
void Codec<rpc::OperatorArgument>::save(OutArchive& to, const rpc::OperatorArgument& argument) {
  to << argument.name << argument.value;
}
void Codec<rpc::OperatorArgument>::load(InArchive& from, rpc::OperatorArgument& argument) {
  from >> argument.name >> argument.value;
}

}  // namespace wire
}  // namespace caftan

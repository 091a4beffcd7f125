#include "caftan/rpc/operators.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "operator_rules.hpp"

namespace caftan {

namespace rpc {

namespace {

/// In a request of kind create: stands in place of the hash of a function's name and says that an operator follows.
constexpr std::uint64_t kOperatorMark = 0;

struct OperatorRequest {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"
  std::vector<OperatorArgument> arguments;
};

/// Operators that are refused by name, because the general rules of `check_allowed` do not catch them.
constexpr std::array<std::string_view, 8> kDenied{
    "from_file", "record_stream", "set_data", "pin_memory", "retain_grad", "is_pinned", "cudnn_is_acceptable", "lift"};
/// Operators that return uninitialised memory are refused: bytes of the callee's process would travel to the caller.
constexpr std::array<std::string_view, 2> kDeniedPrefixes{"empty", "new_empty"};

bool mentions(const c10::Type& type, std::initializer_list<c10::TypeKind> kinds) {
  if (std::find(kinds.begin(), kinds.end(), type.kind()) != kinds.end()) return true;
  const auto contained = type.containedTypes();
  return std::any_of(contained.begin(), contained.end(), [&](const auto& inner) { return mentions(*inner, kinds); });
}

/// Whether the name is one of Python's operators: "__and__".
bool is_python_operator(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

/// Errors: bad_arguments, saying which rule forbids it.
Result<void> check_allowed(const c10::OperatorHandle& op) {
  const char* const why = why_forbidden(op, OperatorUse::by_itself);
  if (!why) return {};
  return Error(Errc::bad_arguments, op.operator_name().name + " cannot be called remotely: " + why);
}

}  // namespace

const char* why_forbidden(const c10::OperatorHandle& op, OperatorUse use) {
  const std::string& full = op.operator_name().name;
  constexpr std::string_view kNamespace = "aten::";
  if (!full.starts_with(kNamespace)) return "only operators of aten can";
  const std::string_view name = std::string_view(full).substr(kNamespace.size());
  const bool in_script = use == OperatorUse::in_script;
  if (name.starts_with('_') && !(in_script && is_python_operator(name))) return "it is internal to ATen";
  if (op.schema().is_mutable() && !in_script) return "it changes its arguments";
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return kDrawsRandomNumbers;
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (mentions(*argument.type(), {c10::TypeKind::GeneratorType, c10::TypeKind::StorageType,
                                    c10::TypeKind::StreamObjType, c10::TypeKind::ClassType})) {
      return "it takes a generator, storage, stream or object";
    }
  }
  if (name.find("_backward") != std::string_view::npos) return "it is part of a backward formula";
  for (const std::string_view prefix : kDeniedPrefixes) {
    if (name.starts_with(prefix)) return "it returns memory that is not initialised";
  }
  if (std::find(kDenied.begin(), kDenied.end(), name) != kDenied.end()) {
    return "it touches the callee's files, devices or process";
  }
  return nullptr;
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
  return Error(Errc::unsupported, "a result of the type " + value.type()->annotation_str() + " does not travel");
}

Result<Inputs> make_inputs(std::string_view name, const std::vector<OperatorArgument>& arguments) {
  Inputs inputs;
  try {
    for (const OperatorArgument& argument : arguments) {
      if (argument.name.empty()) {
        inputs.stack.push_back(to_ivalue(argument.value));
      } else if (!inputs.keywords.emplace(argument.name, to_ivalue(argument.value)).second) {
        return Error(Errc::bad_arguments, std::string(name) + ": argument '" + argument.name + "' is given twice");
      }
    }
    return inputs;
  } catch (...) {
    return Error(Errc::bad_arguments, user_code_failure({}, name).text());
  }
}

Result<void> complete_inputs(const c10::FunctionSchema& schema, std::string_view name, Inputs& inputs) {
  try {
    schema.checkAndNormalizeInputs(inputs.stack, inputs.keywords);
    return {};
  } catch (...) {
    return Error(Errc::bad_arguments, user_code_failure({}, name).text());
  }
}

Error not_one_tensor(std::string_view what, std::string_view way_out) {
  return Error(Errc::wrong_type, std::string(what) + " does not return one tensor; use " + std::string(way_out));
}

namespace {

/// Returns whether complete_inputs would succeed, without an exception for each overload that does not fit.
bool fits(const c10::FunctionSchema& schema, const Inputs& inputs) {
  const auto& declared = schema.arguments();
  if (inputs.stack.size() > declared.size()) return false;
  std::size_t keywords = 0;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const c10::Argument& argument = declared[i];
    const auto keyword = inputs.keywords.find(argument.name());
    const bool by_position = i < inputs.stack.size();
    const bool by_keyword = keyword != inputs.keywords.end();
    if (by_position ? argument.kwarg_only() || by_keyword : !by_keyword && !argument.default_value()) return false;
    keywords += by_keyword ? 1 : 0;
    if (!by_position && !by_keyword) continue;
    const c10::IValue& value = by_position ? inputs.stack[i] : keyword->second;
    if (!value.type()->isSubtypeOf(*argument.type())) return false;
  }
  return keywords == inputs.keywords.size();
}

/// Returns the overloads of an operator of ATen, those with fewer parameters first.
std::vector<c10::OperatorHandle> overloads_of(const std::string& name) {
  // The dispatcher can list only the names of all its operators, so the overloads are collected once.
  static const std::unordered_multimap<std::string, std::string> overloads = [] {
    std::unordered_multimap<std::string, std::string> all;
    for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
      if (each.name.starts_with("aten::")) all.emplace(each.name, each.overload_name);
    }
    return all;
  }();
  std::vector<c10::OperatorHandle> found;
  const auto [first, last] = overloads.equal_range(name);
  for (auto at = first; at != last; ++at) {
    if (const auto op = c10::Dispatcher::singleton().findSchema({name, at->second})) found.push_back(*op);
  }
  std::sort(found.begin(), found.end(), [](const c10::OperatorHandle& a, const c10::OperatorHandle& b) {
    const auto rank = [](const c10::OperatorHandle& op) {
      return std::pair(op.schema().arguments().size(), std::string_view(op.operator_name().overload_name));
    };
    return rank(a) < rank(b);
  });
  return found;
}

Error no_operator(const std::string& name, const std::string& overload) {
  return Error(Errc::unknown_function, "there is no operator " + name + (overload.empty() ? "" : "." + overload));
}

/// Returns the overload that takes the arguments: the named one; without a name the overload that has none, if it takes
/// them, otherwise, of those that take them, the one with the fewest parameters.
/// Errors: unknown_function; bad_arguments (naming the overloads there are, or the rule that forbids one).
Result<c10::OperatorHandle> choose(const std::string& name, const std::string& overload, Inputs inputs) {
  const auto named = c10::Dispatcher::singleton().findSchema({name, overload});
  if (named) {
    const Result<void> allowed = check_allowed(*named);
    if (!overload.empty() && !allowed) return allowed.error();
    if (allowed && fits(named->schema(), inputs)) return *named;
  }
  const std::vector<c10::OperatorHandle> others =
      overload.empty() ? overloads_of(name) : std::vector<c10::OperatorHandle>();
  std::vector<c10::OperatorHandle> possible;
  for (const c10::OperatorHandle& op : others) {
    if (!check_allowed(op)) continue;
    if (fits(op.schema(), inputs)) return op;
    possible.push_back(op);
  }
  if (possible.empty() && named) possible.push_back(*named);
  if (possible.empty()) return others.empty() ? no_operator(name, overload) : check_allowed(others.front()).error();
  if (possible.size() == 1) {
    const Result<void> allowed = check_allowed(possible.front());
    if (!allowed) return allowed.error();
    const Result<void> done = complete_inputs(possible.front().schema(), name, inputs);
    if (!done) return done.error();
    return possible.front();
  }
  std::string known;
  for (const c10::OperatorHandle& op : possible) known += "; " + c10::toString(op.schema());
  return Error(Errc::bad_arguments, "no overload of " + name + " takes these arguments; there are" + known.substr(1));
}

/// Runs an allowed operator. Errors: bad_arguments, remote_exception, unsupported (a result).
Result<OperatorValues> run(const c10::OperatorHandle& op, const std::vector<OperatorArgument>& arguments) {
  Result<Inputs> inputs = make_inputs(op.operator_name().name, arguments);
  if (!inputs) return inputs.error();
  if (const Result<void> complete = complete_inputs(op.schema(), op.operator_name().name, *inputs); !complete)
    return complete.error();
  std::vector<c10::IValue>& stack = inputs->stack;
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

/// Finds the overload and looks at the arguments before anything is sent.
Result<c10::OperatorHandle> choose(std::string_view schema, const std::vector<OperatorArgument>& arguments) {
  const std::size_t dot = schema.find('.');
  const std::string_view overload = dot == std::string_view::npos ? std::string_view() : schema.substr(dot + 1);
  Result<Inputs> inputs = make_inputs(schema, arguments);
  if (!inputs) return inputs.error();
  return choose(std::string(schema.substr(0, dot)), std::string(overload), *std::move(inputs));
}

Result<void> pack_operator(OutRequest& request, const c10::OperatorHandle& op,
                           const std::vector<OperatorArgument>& arguments) {
  const auto& [name, overload] = op.operator_name();
  request.what_owner = std::make_shared<const std::string>(overload.empty() ? name : name + "." + overload);
  request.what = *request.what_owner;
  try {
    Packer packer(request.body, request.tensors, request.rrefs);
    packer.archive << name << overload << arguments;
    return {};
  } catch (...) {
    return wire::detail::encode_failure();
  }
}

}  // namespace

Future<OperatorValues> start_operator(const CallTarget& target, std::string_view schema,
                                      const std::vector<OperatorArgument>& arguments) {
  OutRequest request;
  Result<void> done = fill_request(request, target, wire::FrameKind::op, nullptr, schema);
  if (!done) return make_ready_future<OperatorValues>(done.error());
  const Result<c10::OperatorHandle> op = choose(schema, arguments);
  if (!op) return make_ready_future<OperatorValues>(op.error());
  done = pack_operator(request, *op, arguments);
  if (!done) return make_ready_future<OperatorValues>(done.error());
  return start_call<OperatorValues>(target, std::move(request));
}

Result<std::shared_ptr<RRefHandle>> start_operator_creation(const CallTarget& target, std::string_view schema,
                                                            const std::vector<OperatorArgument>& arguments) {
  OutRequest request;
  Result<void> done = fill_request(request, target, wire::FrameKind::create, nullptr, schema);
  if (!done) return done.error();
  const Result<c10::OperatorHandle> op = choose(schema, arguments);
  if (!op) return op.error();
  const auto& returns = op->schema().returns();
  if (returns.size() != 1 || returns.front().type()->kind() != c10::TypeKind::TensorType)
    return not_one_tensor("the operator", "rpc_op_async");
  wire::OutArchive(request.body) << kOperatorMark;
  done = pack_operator(request, *op, arguments);
  if (!done) return done.error();
  return send_creation(target, std::move(request), type_key<at::Tensor>());
}

Result<at::Tensor> single_tensor(Result<OperatorValues> results, std::string_view what, std::string_view way_out) {
  if (!results) return results.error();
  if (results->size() == 1) {
    if (at::Tensor* const tensor = std::get_if<at::Tensor>(&(*results)[0])) return std::move(*tensor);
  }
  return not_one_tensor(what, way_out);
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
  if (!op) return no_operator(request.name, request.overload);
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

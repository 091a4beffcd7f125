#include "caftan/rpc/internal/script.hpp"

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <system_error>
#include <variant>

#include "caftan/tensor/internal/torch_errors.hpp"
#include "operator_rules.hpp"
#include "script_check.hpp"

namespace caftan::rpc {

namespace {

/// Returns the first line of a text that has one; libtorch's go on for screens.
std::string first_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of('\n');
  if (begin == std::string::npos) return {};
  std::string line = text.substr(begin, text.find('\n', begin) - begin);
  while (!line.empty() && (line.back() == ':' || line.back() == ' ')) line.pop_back();
  return line;
}

/// Runs code that reads the file.
template <class Read>
auto reading(Read&& read) -> decltype(read()) {
  auto result = tensor::catch_torch(Errc::invalid_config, std::forward<Read>(read));
  if (result) return result;
  const Error& error = result.error();
  return Error(error.code(), "is no TorchScript file, or is damaged: " + first_line(error.text()));
}

/// Errors: io_error, invalid_config.
Result<void> check_file(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    return Error(Errc::io_error, "cannot be read: " + (error ? error.message() : "No such file or directory"));
  }
  if (std::filesystem::is_directory(status)) return Error(Errc::invalid_config, "is a directory, not a file");
  // Opening a pipe would block until another process opens its other end.
  if (!std::filesystem::is_regular_file(status)) return Error(Errc::invalid_config, "is no regular file");
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return Error(Errc::io_error, "cannot be read: " + error.message());
  if (size > kMaxScriptBytes) return Error(Errc::invalid_config, "is larger than 4 GiB");
  return {};
}

/// Refuses, before anything of the file is loaded, what loading would run or what another program wrote (SC-3).
/// Errors: invalid_config.
Result<void> check_archive(caffe2::serialize::PyTorchStreamReader& reader) {
  const std::vector<std::string> records = reader.getAllRecords();
  const auto has = [&records](std::string_view name) {
    return std::find(records.begin(), records.end(), name) != records.end();
  };
  if (has("model.json")) {
    return Error(Errc::invalid_config, "was written before PyTorch 1.4: save it again with torch.jit.save");
  }
  if (!has("constants.pkl") || !has("data.pkl")) {
    return Error(Errc::invalid_config, has("data.pkl") ? "holds values without code: torch.jit.save writes scripts, "
                                                         "torch.save does not"
                                                       : "is no TorchScript file: it has neither code nor values");
  }
  for (const std::string& name : records) {
    if (!name.ends_with(".py") && !name.ends_with(".pkl")) continue;
    const auto [bytes, size] = reader.getRecord(name);
    const std::string_view text(static_cast<const char*>(bytes.get()), size);
    if (name.ends_with(".py") && text.find("def __setstate__") != std::string_view::npos) {
      return Error(Errc::invalid_config,
                   "has a class with __setstate__, which would run before its operators are looked at; save the module "
                   "without it");
    }
    if (text.find("torch.classes.") != std::string_view::npos) {
      return Error(Errc::invalid_config,
                   "has an object of a class of C++ (torch.classes), as quantized modules have; save the module "
                   "without it");
    }
  }
  return {};
}

Result<torch::jit::Module> read_module(const std::filesystem::path& file) {
  Result<void> known;
  const Result<void> scanned = reading([&]() -> Result<void> {
    caffe2::serialize::PyTorchStreamReader reader(file.string());
    known = check_archive(reader);
    return {};
  });
  if (!scanned) return scanned.error();
  if (!known) return known.error();
  return reading([&]() -> Result<torch::jit::Module> { return torch::jit::load(file.string(), c10::kCPU); });
}

/// Turns what the interpreter says into one line: what was thrown, and where in the script's source.
std::string thrown_text(const std::string& text) {
  constexpr std::string_view kKind = "\nRuntimeError: ";
  const std::size_t kind = text.rfind(kKind);
  if (kind == std::string::npos) return text;
  std::string thrown = text.substr(kind + kKind.size());
  thrown.resize(thrown.find_last_not_of('\n') + 1);
  const std::size_t place = text.rfind("File \"", kind);
  if (place == std::string::npos) return thrown;
  return thrown + " (" + text.substr(place, text.find('\n', place) - place) + ")";
}

Error failure(std::string_view name, const std::string& text) {
  const bool no_memory = text.find("DefaultCPUAllocator: ") != std::string::npos;
  return Error(no_memory ? Errc::limit_exceeded : Errc::remote_exception, std::string(name) + ": " + thrown_text(text));
}

/// Drops what a script warns of: its text can be the caller's, and a script has no output (SC-5).
class DropWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

/// Runs the method on this thread, and what it forks, too: so the same operators run in the same order each time, and
/// autograd numbers their nodes as those of other functions.
Result<c10::IValue> interpret(torch::jit::Function& function, std::string_view name, std::vector<c10::IValue>& stack) {
  // As written: libtorch's optimizer would compile the first calls for tens of milliseconds, and fuse later ones to
  // other last bits.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  DropWarnings drop;
  const c10::WarningUtils::WarningHandlerGuard silent(&drop);  // of this thread
  const auto future = function.runAsync(stack, [](const std::function<void()>& task) { task(); });
  if (!future->completed()) return failure(name, "it waits for a future that no task of it completes");
  if (future->hasError()) return failure(name, future->tryRetrieveErrorMessage());
  return future->value();
}

constexpr const char* kTravelling = "tensors, numbers, strings, none, or lists of tensors, bools, ints or floats";

/// Returns whether the type has a value that travels, none aside.
bool travels(const c10::Type& type) {  // NOLINT(misc-no-recursion): types contain types
  using Kind = c10::TypeKind;
  const auto is_one_of = [](std::initializer_list<Kind> kinds, Kind kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  const auto inner = type.containedTypes();
  if (is_one_of({Kind::OptionalType, Kind::UnionType}, type.kind())) {
    return std::any_of(inner.begin(), inner.end(),
                       [](const auto& one) { return one->kind() != Kind::NoneType && travels(*one); });
  }
  if (type.kind() == Kind::ListType) {
    return is_one_of({Kind::TensorType, Kind::BoolType, Kind::IntType, Kind::FloatType}, inner.front()->kind());
  }
  return !is_one_of({Kind::DictType, Kind::TupleType, Kind::ClassType, Kind::InterfaceType, Kind::EnumType,
                     Kind::FutureType, Kind::RRefType, Kind::FunctionType},
                    type.kind());
}

/// Says which argument the method takes only as a value that does not travel; empty if there is none.
std::string unsendable_argument(const c10::FunctionSchema& schema, const std::vector<OperatorArgument>& arguments) {
  std::vector<const OperatorArgument*> positional;
  for (const OperatorArgument& one : arguments) {
    if (one.name.empty()) positional.push_back(&one);
  }
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& declared = schema.arguments()[i];
    if (travels(*declared.type())) continue;
    const auto keyword = std::find_if(arguments.begin(), arguments.end(),
                                      [&](const OperatorArgument& one) { return one.name == declared.name(); });
    const OperatorArgument* const given = i < positional.size()        ? positional[i]
                                          : keyword != arguments.end() ? &*keyword
                                                                       : nullptr;
    if (given ? std::holds_alternative<std::monostate>(given->value) : declared.default_value().has_value()) continue;
    return "argument '" + declared.name() + "' has the type " + declared.type()->annotation_str() +
           ", which does not travel: let the method take " + kTravelling + " instead";
  }
  return {};
}

/// Returns a method's result as it travels.
/// Errors: unsupported, naming the part and its type.
Result<OperatorValues> to_values(const c10::IValue& result, std::string_view name) {
  const bool is_tuple = result.isTuple();
  const std::vector<c10::IValue> parts =
      is_tuple ? result.toTupleRef().elements().vec() : std::vector<c10::IValue>{result};
  OperatorValues values;
  for (const c10::IValue& part : parts) {
    Result<OperatorValue> value = from_ivalue(part);
    if (value) {
      values.push_back(*std::move(value));
      continue;
    }
    const std::string place = is_tuple ? "part " + std::to_string(values.size() + 1) + " of its result" : "its result";
    return Error(value.error().code(),
                 std::string(name) + ": " + place + " has the type " + part.type()->annotation_str() +
                     ", which does not travel: return one value or one tuple of " + kTravelling + " instead");
  }
  return values;
}

template <class List>
std::vector<std::pair<std::string, at::Tensor>> to_named(const List& list) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& item : list) named.emplace_back(item.name, item.value);
  return named;
}

}  // namespace

struct Script::Loaded {
  struct Method {
    torch::jit::Function* function;
    c10::FunctionSchema schema;  // without the module, which no caller gives
  };
  torch::jit::Module module;
  std::vector<Method> methods;
};

Script::Script(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Script::~Script() = default;

Result<std::shared_ptr<Script>> Script::load(const std::filesystem::path& file, ScriptUse use) {
  if (const Result<void> readable = check_file(file); !readable) return readable.error();
  Result<torch::jit::Module> module = read_module(file);
  if (!module) return module.error();
  return tensor::catch_torch(Errc::invalid_config, [&]() -> Result<std::shared_ptr<Script>> {
    std::shared_ptr<Script> script(new Script(std::make_unique<Loaded>(Loaded{*module, {}})));
    for (const torch::jit::Method& method : module->get_methods()) {
      if (method.name().starts_with("__")) continue;
      if (const Result<void> allowed = check_script(*module, method, use); !allowed) return allowed.error();
      script->methods_.push_back(method.name());
      const c10::FunctionSchema& schema = method.function().getSchema();
      const auto& all = schema.arguments();
      script->loaded_->methods.push_back({&method.function(), schema.cloneWithArguments({all.begin() + 1, all.end()})});
    }
    if (script->methods_.empty()) return Error(Errc::invalid_config, "has no method that can be called");
    return script;
  });
}

std::size_t Script::find(std::string_view method) const noexcept {
  return static_cast<std::size_t>(std::find(methods_.begin(), methods_.end(), method) - methods_.begin());
}

std::vector<std::pair<std::string, at::Tensor>> Script::parameters() const {
  return to_named(loaded_->module.named_parameters());
}
std::vector<std::pair<std::string, at::Tensor>> Script::buffers() const {
  return to_named(loaded_->module.named_buffers());
}
void Script::train(bool on) { loaded_->module.train(on); }
bool Script::is_training() const { return loaded_->module.is_training(); }

Result<OperatorValues> Script::run(std::size_t method, std::string_view name,
                                   const std::vector<OperatorArgument>& arguments) const {
  const Loaded::Method& called = loaded_->methods.at(method);
  Result<Inputs> inputs = make_inputs(name, arguments);
  if (!inputs) return inputs.error();
  if (const Result<void> complete = complete_inputs(called.schema, name, *inputs); !complete) {
    const std::string unsendable = unsendable_argument(called.schema, arguments);
    if (unsendable.empty()) return complete.error();
    return Error(Errc::bad_arguments, std::string(name) + ": " + unsendable);
  }
  inputs->stack.insert(inputs->stack.begin(), loaded_->module._ivalue());
  Result<c10::IValue> result =
      tensor::catch_torch(Errc::remote_exception, [&] { return interpret(*called.function, name, inputs->stack); });
  if (!result) return result.error();
  return to_values(*result, name);
}

}  // namespace caftan::rpc

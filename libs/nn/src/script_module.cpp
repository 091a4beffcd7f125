#include "caftan/nn/script_module.hpp"

#include "caftan/nn/internal/script_creation.hpp"
#include "caftan/rpc/internal/script.hpp"

namespace caftan::nn {
namespace {

std::vector<NamedTensor> with_names(std::vector<std::pair<std::string, at::Tensor>> tensors) {
  std::vector<NamedTensor> named;
  for (auto& [name, tensor] : tensors) named.push_back({std::move(name), std::move(tensor)});
  return named;
}

template <auto M>
using ScriptCall = rpc::CallTypes<typename detail::ModuleMethod<ScriptModule, M>::Pointer>;

template <auto M>
Result<const rpc::FunctionKey*> script_key_of(const rpc::CallTarget& target) {
  return rpc::find_key<detail::ModuleMethod<ScriptModule, M>::kRun, ServedModule>(target);
}

}  // namespace

ScriptModule::ScriptModule(std::shared_ptr<rpc::Script> script) : script_(std::move(script)) {}

Result<rpc::OperatorValues> ScriptModule::call(const std::string& method,
                                               const std::vector<rpc::OperatorArgument>& arguments) {
  const std::vector<std::string>& methods = script_->methods();
  const std::size_t place = script_->find(method);
  if (place < methods.size()) return script_->run(place, method, arguments);
  std::string known;
  for (const std::string& other : methods) known += (known.empty() ? "" : ", ") + other;
  return Error(Errc::unknown_function, "the module has no method '" + method + "' (it has: " + known + ")");
}

Result<at::Tensor> ScriptModule::call_for_tensor(const std::string& method,
                                                 const std::vector<rpc::OperatorArgument>& arguments) {
  return rpc::single_tensor(call(method, arguments), method, "call_async");
}

std::vector<NamedTensor> ScriptModule::named_parameters() const { return with_names(script_->parameters()); }
std::vector<NamedTensor> ScriptModule::named_buffers() const { return with_names(script_->buffers()); }
void ScriptModule::train(bool on) { script_->train(on); }
bool ScriptModule::is_training() const { return script_->is_training(); }

Result<RemoteModule<ScriptModule>> RemoteModule<ScriptModule>::try_make(const CallSite& site,
                                                                        const rpc::Destination& to,
                                                                        std::string_view name) {
  Result<RRef<ServedModule>> module = site.try_remote(kMakeScriptModule, to, std::string(name));
  if (!module) return module.error();
  RemoteModule made;
  const Result<void> served = made.serve(site, to, *std::move(module));
  if (!served) return served.error();
  return made;
}

Future<rpc::OperatorValues> RemoteModule<ScriptModule>::start(std::string_view method,
                                                              const Arguments& arguments) const {
  using Types = ScriptCall<&ScriptModule::call>;
  const rpc::CallTarget target = rpc::target_of(module_.handle(), options_);
  return rpc::start_call<rpc::OperatorValues>(target, script_key_of<&ScriptModule::call>(target), Types::Wire{},
                                              training_, std::string(method), arguments);
}

Future<at::Tensor> RemoteModule<ScriptModule>::start_for_tensor(std::string_view method,
                                                                const Arguments& arguments) const {
  using Types = ScriptCall<&ScriptModule::call_for_tensor>;
  const rpc::CallTarget target = rpc::target_of(module_.handle(), options_);
  return rpc::start_call<at::Tensor>(target, script_key_of<&ScriptModule::call_for_tensor>(target), Types::Wire{},
                                     training_, std::string(method), arguments);
}

Result<RRef<at::Tensor>> RemoteModule<ScriptModule>::keep(std::string_view method, const Arguments& arguments) const {
  using Types = ScriptCall<&ScriptModule::call_for_tensor>;
  const rpc::CallTarget target = rpc::target_of(module_.handle(), options_);
  auto made = rpc::start_creation<at::Tensor>(target, script_key_of<&ScriptModule::call_for_tensor>(target),
                                              Types::Wire{}, training_, std::string(method), arguments);
  if (!made) return made.error();
  return RRef<at::Tensor>(*std::move(made));
}

Result<ServedModule> make_script_module(const Registry& registry, const std::string& name) {
  const std::filesystem::path* const file = registry.script_module(name);
  if (!file) {
    std::string known;
    for (const std::string_view other : registry.script_modules()) {
      known += (known.empty() ? "; it has: " : ", ") + std::string(other);
    }
    return Error(Errc::unknown_function, "this worker has no module of TorchScript \"" + name +
                                             "\": [roles.NAME.modules] " + name +
                                             " = \"FILE.pt\" in the application file, or "
                                             "registry.add_script_module(\"" +
                                             name + "\", \"FILE.pt\") there, gives it one" + known);
  }
  Result<std::shared_ptr<rpc::Script>> script = rpc::Script::load(*file, rpc::ScriptUse::module);
  if (!script) return Error(script.error().code(), file->string() + " " + script.error().text());
  return ServedModule(std::make_shared<ScriptModule>(*std::move(script)));
}

void add_script_modules(Registry& registry) {
  add_module<ScriptModule>(registry, "caftan.script_module.methods")
      .method<&ScriptModule::call>("call")
      .method<&ScriptModule::call_for_tensor>("call_for_tensor");
}

}  // namespace caftan::nn

#include "caftan/nn/internal/module_control.hpp"

namespace caftan::nn {

template <class T>
Future<T> ModuleControl::ask(std::optional<base::Duration> wait, typename ModuleWork<T>::Work work) {
  auto request = std::make_shared<ModuleWork<T>>(wait, std::move(work));
  Future<T> future = request->future();
  mailbox_->send(std::move(request));
  return future;
}

Future<std::vector<NamedReference>> ModuleControl::list(TensorKind kind) {
  return ask<std::vector<NamedReference>>({}, [kind](OwnedModule& module) { return module.list(kind); });
}

Future<SavedModule> ModuleControl::save() {
  return ask<SavedModule>({}, [](OwnedModule& module) { return module.save(); });
}

Future<RRef<StagedState>> ModuleControl::stage(const std::vector<TensorInfo>& given) {
  return ask<RRef<StagedState>>({}, [given](OwnedModule& module) { return module.stage(given); });
}

Future<void> ModuleControl::take(const RRef<StagedState>& staged, base::Duration wait) {
  return ask<void>(wait, [staged](OwnedModule& module) { return module.take(staged); });
}

Future<void> ModuleControl::to(const std::string& device, base::Duration wait) {
  return ask<void>(wait, [device](OwnedModule& module) { return module.move_to(device); });
}

}  // namespace caftan::nn

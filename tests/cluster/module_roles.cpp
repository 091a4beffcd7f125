#include "module_roles.hpp"

#include <stdexcept>
#include <string>
#include <tuple>

namespace caftan::test {
namespace {

int five() { return 5; }

}  // namespace

bool Net::keeps_its_mode(Worker& worker, const std::string& other) {
  const bool before = training_;
  worker.rpc_sync<&five>(other);
  return training_ == before;
}

void halve(Net& /*net*/, at::Tensor& x) { x = x * 0.5; }
void add_one(Net& /*net*/, at::Tensor& y) { y = y + 1; }
void refuse(Net& /*net*/, at::Tensor& /*x*/) { throw std::runtime_error("not today"); }

at::Tensor forward_there(const nn::RemoteModule<Net>& net, const at::Tensor& x) { return net.forward_async(x).get(); }
std::tuple<std::string, bool> look_at(const nn::RemoteModule<Net>& net) {
  return {net.owner_name(), net.is_training()};
}
bool evaluate_there(nn::RemoteModule<Net> net) {
  net.eval();
  return net.rpc_sync<&Net::is_in_train_mode>();
}
nn::RemoteModule<Net> hand_back(const nn::RemoteModule<Net>& net) { return net; }

Registry make_module_registry() {
  Registry registry;
  registry.add<&five>("five");
  registry.add<&forward_there>("forward_there");
  registry.add<&look_at>("look_at");
  registry.add<&evaluate_there>("evaluate_there");
  registry.add<&hand_back>("hand_back");
  nn::add_module<Net>(registry, "net")
      .constructor<int>()
      .method<&Net::forward>("forward")
      .method<&Net::scaled>("scaled")
      .method<&Net::is_in_train_mode>("is_in_train_mode")
      .method<&Net::keeps_its_mode>("keeps_its_mode")
      .method<&Net::call_itself>("call_itself")
      .before<&Net::forward, &halve>("halve")
      .before<&Net::forward, &refuse>("refuse")
      .after<&Net::forward, &add_one>("add_one");
  nn::add_module<Wide>(registry, "wide").constructor<int>();
  nn::add_module<Parent>(registry, "parent").constructor<>().method<&Parent::forward>("forward");
  return registry;
}

}  // namespace caftan::test

// A policy of TorchScript, served by one worker and called by another.
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <caftan/caftan.hpp>
#include <caftan/nn/script_module.hpp>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>

/// Writes what Python's `torch.jit.script(Policy()).save(file)` would.
void save_policy(const std::string& file) {
  torch::jit::Module policy("Policy");
  policy.register_parameter("weight", at::linspace(-1, 1, 8).view({2, 4}).requires_grad_(), false);
  policy.define(R"(
def forward(self, x, temperature : float = 1.0):
    return torch.softmax(torch.linear(x, self.weight) / temperature, -1)
def best(self, x):
    scores = self.forward(x)
    return torch.argmax(scores, -1), torch.amax(scores, -1)
)");
  policy.save(file);
}

bool a_script_is_called(const caftan::Worker& client) {
  const at::Tensor states = at::ones({3, 4});
  const at::Tensor chances = client.rpc_script("server", "policy.forward", states);
  const at::Tensor flat = client.rpc_script("server", "policy.forward", states, caftan::rpc::kwarg("temperature", 9.0));
  const caftan::RRef<at::Tensor> there = client.remote_script("server", "policy.forward", states);  // stays there
  return chances.size(1) == 2 && flat.max().item<double>() < chances.max().item<double>() &&
         there.to_here().equal(chances);
}

bool a_tuple_is_several_results(const caftan::Worker& client) {
  const std::vector<caftan::rpc::OperatorValue> results =
      client.rpc_script_async("server", "policy.best", at::ones({3, 4})).get();
  const auto& actions = std::get<at::Tensor>(results[0]);
  const auto& chances = std::get<at::Tensor>(results[1]);
  return actions.size(0) == 3 && chances.size(0) == 3;
}

bool gradients_flow_back(const caftan::Worker& client) {
  const at::Tensor states = at::ones({3, 4}).requires_grad_();
  const caftan::autograd::Context context(client);
  context.backward({client.rpc_script("server", "policy.forward", states).select(1, 0).sum()});
  return context.gradients().of(states).defined();
}

bool a_module_of_a_file_is_trained(const caftan::Worker& client) {
  const caftan::nn::RemoteModule<caftan::nn::ScriptModule> policy(client, "server", "policy");
  caftan::optim::DistributedOptimizer optimizer(client, policy.parameters(), caftan::optim::Adam{.lr = 0.02});
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    const caftan::autograd::Context context(client);
    const at::Tensor loss = -policy.forward(at::ones({3, 4})).select(1, 0).log().mean();
    context.backward({loss});
    optimizer.step(context);
    losses.push_back(loss.item<double>());
  }
  return losses.back() < losses.front() && policy.call("forward", at::ones({3, 4}), 9.0).size(0) == 3;
}

caftan::WorkerOptions member(const std::string& name, const std::string& server) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"server", server}, {"client", ""}};
  return options;
}

int main() {
  const std::string file = "policy.pt";
  save_policy(file);
  caftan::Registry registry;
  registry.add_script("policy", file);
  registry.add_script_module("policy", file);
  const auto server = caftan::Worker::launch(member("server", "tcp:127.0.0.1:0"), registry).value();
  const auto client = caftan::Worker::launch(member("client", server->address()), {}).value();
  for (caftan::Worker* worker : {server.get(), client.get()}) worker->wait_until_ready().value();
  const bool right = a_script_is_called(*client) && a_tuple_is_several_results(*client) &&
                     gradients_flow_back(*client) && a_module_of_a_file_is_trained(*client);
  return right ? 0 : 1;
}

#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/utils.h>
#include <torch/csrc/distributed/rpc/script_call.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "reference.hpp"

namespace caftan::reference {

namespace rpc = torch::distributed::rpc;
namespace autograd = torch::distributed::autograd;

Function find_function(const std::string& name, const std::string& overload) {
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (op->schema().overload_name() == overload) return {op};
  }
  std::fprintf(stderr, "reference: no operator %s.%s\n", name.c_str(), overload.c_str());
  std::exit(1);
}

Function add_function(const std::string& schema, std::function<at::Tensor(const std::vector<c10::IValue>&)> body) {
  auto run = [body = std::move(body)](torch::jit::Stack& stack) {
    at::Tensor result = body(stack);
    stack.clear();
    stack.emplace_back(std::move(result));
  };
  torch::jit::Operator op(schema, std::move(run), c10::AliasAnalysisKind::CONSERVATIVE);
  const std::string name = op.schema().name();
  torch::jit::registerOperator(std::move(op));
  return {find_function(name).op, true};
}

Pending call_async(std::int16_t rank, const Function& function, std::vector<c10::IValue> arguments) {
  const auto agent = rpc::RpcAgent::getCurrentRpcAgent();
  rpc::ScriptCall call(function.op, std::move(arguments));
  return autograd::sendMessageWithAutograd(*agent, agent->getWorkerInfo(rank), std::move(call).toMessage(),
                                           function.always_in_context);
}

c10::IValue get(const Pending& pending) {
  pending->waitAndThrow();
  return rpc::deserializeRespToIValue(*pending->constValue().toCustomClass<rpc::Message>());
}

at::Tensor gradient_in_current_context(const at::Tensor& leaf) {
  const auto gradients = autograd::DistAutogradContainer::getInstance().currentContext()->getGradients();
  const auto found = gradients.find(leaf);
  return found == gradients.end() ? at::Tensor() : found->value();
}

}  // namespace caftan::reference

#include "caftan/autograd/internal/nodes.hpp"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <string>
#include <utility>

#include "recv_function.hpp"
#include "roots.hpp"

namespace caftan::autograd {
namespace torch_autograd = torch::autograd;

CodeSpan CodeSpan::begin(std::uint64_t key) {
  CodeSpan span;
  span.key = key;
  span.thread_id = at::RecordFunction::currentThreadId();
  span.first = at::sequence_number::peek();
  return span;
}

void CodeSpan::end() { last = at::sequence_number::peek(); }

SendFunction::SendFunction(const RecordedMessage& message, std::vector<torch_autograd::Edge>&& next_edges)
    : message_(message),
      next_edges_(std::move(next_edges)),
      sequence_nr_(at::sequence_number::get_and_increment()),
      thread_id_(at::RecordFunction::currentThreadId()) {}

Result<void> SendFunction::check(std::span<const at::Tensor> gradients) const {
  if (gradients.size() != next_edges_.size()) {
    return Error(Errc::malformed_payload, std::to_string(gradients.size()) + " gradients for message " +
                                              to_string(message_.message) + ", which has " +
                                              std::to_string(next_edges_.size()) + " recorded tensors");
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    Result<void> fits = check_gradient(gradients[i], next_edges_[i], Errc::malformed_payload,
                                       "gradient " + std::to_string(i) + " of message " + to_string(message_.message));
    if (!fits) return fits;
  }
  return {};
}

torch_autograd::variable_list RecvFunction::apply(torch_autograd::variable_list&&) {
  throw RpcException(Error(Errc::unsupported, "use context.backward(roots): this graph crosses workers (message " +
                                                  to_string(message_.message) + " from worker " +
                                                  std::to_string(message_.peer.value) + ")"));
}

namespace {

/// The node behind received tensors that were not recorded: it refuses their gradients.
class UnrecordedFunction final : public torch_autograd::Node {
 public:
  explicit UnrecordedFunction(Error reason) : reason_(std::move(reason)) {}
  std::string name() const override { return "UnrecordedFunction"; }

 private:
  torch_autograd::variable_list apply(torch_autograd::variable_list&& gradients) override {
    for (const at::Tensor& gradient : gradients) {
      if (gradient.defined()) throw RpcException(reason_);
    }
    return {};
  }

  const Error reason_;
};

}  // namespace

const RecordedMessage& message_of(const RecvFunction& function) noexcept { return function.message(); }

std::shared_ptr<SendFunction> record_sent(const RecordedMessage& message, std::span<const at::Tensor> tensors,
                                          std::vector<std::uint8_t>& recorded) {
  recorded.clear();
  if (!c10::GradMode::is_enabled()) return nullptr;
  std::size_t count = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || !tensors[i].requires_grad()) continue;
    if (count++ == 0) recorded.assign(tensors.size(), 0);
    recorded[i] = 1;
  }
  if (count == 0) return nullptr;
  std::vector<torch_autograd::Edge> edges(count);  // one allocation: each call with a recorded tensor comes here
  auto edge = edges.begin();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (recorded[i] != 0) *edge++ = torch_autograd::impl::gradient_edge(tensors[i]);
  }
  return std::make_shared<SendFunction>(message, std::move(edges));
}

Result<std::shared_ptr<RecvFunction>> record_received(const RecordedMessage& message, std::span<at::Tensor> tensors,
                                                      std::span<const std::uint8_t> recorded) {
  if (recorded.empty()) return std::shared_ptr<RecvFunction>();
  if (recorded.size() != tensors.size()) {
    return Error(Errc::malformed_payload,
                 std::to_string(recorded.size()) + " recorded bits for " + std::to_string(tensors.size()) + " tensors");
  }
  bool any = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (recorded[i] == 0) continue;
    any = true;
    // The type is checked first, because create_gradient_edge would make an integer tensor "require grad" without
    // complaint.
    if (!tensors[i].defined() || !torch_autograd::isDifferentiableType(tensors[i].scalar_type())) {
      return Error(Errc::malformed_payload,
                   "tensor " + std::to_string(i) + " is said to be recorded, but it can have no gradient");
    }
  }
  if (!any) return std::shared_ptr<RecvFunction>();
  // deleteNode takes long graphs apart without recursion; plain deletion overflows the stack.
  std::shared_ptr<RecvFunction> function(new RecvFunction(message), torch_autograd::deleteNode);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (recorded[i] != 0) torch_autograd::create_gradient_edge(tensors[i], function);
  }
  return function;
}

void refuse_gradients(std::span<at::Tensor> tensors, const Error& reason) {
  std::shared_ptr<UnrecordedFunction> function;
  for (at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !tensor.requires_grad() || !tensor.is_leaf()) continue;
    if (!function) function.reset(new UnrecordedFunction(reason), torch_autograd::deleteNode);
    tensor.set_requires_grad(false);
    torch_autograd::create_gradient_edge(tensor, function);
  }
}

}  // namespace caftan::autograd

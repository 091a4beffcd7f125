#include "graph_run.hpp"

#include <ATen/ops/isnan.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "recv_function.hpp"

namespace caftan::autograd {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::AnomalyMode;
using torch::autograd::Node;
using torch::autograd::variable_list;

/// Calls what has to see the gradient before the node runs, in the order of torch's engine: hooks of the tensor, then
/// retain_grad, then hooks of the node.
void call_pre_hooks(Node& function, variable_list& inputs) {
  for (const auto& hook : function.tensor_pre_hooks()) inputs = (*hook)(inputs);
  for (const auto& [position, hook] : function.retains_grad_hooks()) inputs = (*hook)(inputs);
  for (const auto& hook : function.pre_hooks()) inputs = (*hook)(inputs);
}

void check_outputs(const Node& function, variable_list& outputs) {
  torch::autograd::validate_outputs(function.next_edges(), outputs, [&function](const std::string& message) {
    return "Function " + function.name() + " returned an " + message;
  });
}

bool has_nan(const at::Tensor& gradient) {
  // isnan knows no sparse tensors.
  const at::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
  return at::isnan(values).any().item<bool>();
}

void check_for_nan(const Node& function, const variable_list& outputs) {
  const c10::AutoGradMode no_graph(false);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !has_nan(outputs[i])) continue;
    std::ostringstream text;
    text << "Function '" << function.name() << "' returned nan values in its " << i << "th output.";
    throw std::runtime_error(text.str());
  }
}

}  // namespace

GraphRun::GraphRun(PassGraph& graph, bool keep_graph)
    : graph_(graph), keep_graph_(keep_graph), left_(graph.nodes.size()) {}

void GraphRun::provide(std::uint32_t source, variable_list&& gradients) {
  graph_.nodes[source].inputs = std::move(gradients);
  graph_.nodes[source].waits = 0;
  push(source);
}

void GraphRun::push(std::uint32_t index) {
  const GraphNode& node = graph_.nodes[index];
  // The highest runs first. Leaves run before all other nodes, as in torch: that frees memory, and their hooks run at
  // the same moment as in torch.
  std::uint64_t priority = std::numeric_limits<std::uint64_t>::max();
  if (node.kind != NodeKind::leaf) {
    priority = graph_.ranked() ? priority - 1 - node.rank : node.function ? node.function->sequence_nr() : priority - 1;
  }
  ready_.push_back({priority, index});
  std::push_heap(ready_.begin(), ready_.end(), [](const Ready& a, const Ready& b) { return a.priority < b.priority; });
}

bool GraphRun::next_runs_code() const {
  if (ready_.empty()) return false;
  const GraphNode& node = graph_.nodes[ready_.front().node];  // the top of the heap
  if (node.kind == NodeKind::plain) return true;
  if (node.kind == NodeKind::root || node.kind == NodeKind::send) return false;
  Node& function = *node.function;
  return !function.tensor_pre_hooks().empty() || !function.pre_hooks().empty() || !function.post_hooks().empty() ||
         !function.retains_grad_hooks().empty();
}

bool GraphRun::step(GraphOutputs& outputs) {
  if (ready_.empty()) return false;
  std::pop_heap(ready_.begin(), ready_.end(), [](const Ready& a, const Ready& b) { return a.priority < b.priority; });
  GraphNode& node = graph_.nodes[ready_.back().node];
  ready_.pop_back();
  running_ = node.function;
  running_rank_ = node.rank;
  switch (node.kind) {
    case NodeKind::root:
    case NodeKind::send:
      deliver_all(node, std::exchange(node.inputs, {}));
      break;
    case NodeKind::plain:
      run_plain(node);
      break;
    case NodeKind::leaf:
      run_leaf(node, outputs);
      break;
    case NodeKind::received:
      run_received(node, outputs);
      break;
  }
  running_ = nullptr;
  --left_;
  return true;
}

void GraphRun::run_plain(GraphNode& node) {
  Node& function = *node.function;
  variable_list inputs = std::exchange(node.inputs, {});
  inputs.resize(function.num_inputs());
  call_pre_hooks(function, inputs);
  if (!keep_graph_) function.will_release_variables();
  variable_list outputs;
  if (function.post_hooks().empty()) {
    outputs = function(std::move(inputs));
    check_outputs(function, outputs);
  } else {
    variable_list copy = inputs;
    outputs = function(std::move(copy));
    check_outputs(function, outputs);
    for (const auto& hook : function.post_hooks()) outputs = (*hook)(outputs, inputs);
  }
  if (!keep_graph_) function.release_variables();
  if (AnomalyMode::is_enabled() && AnomalyMode::should_check_nan()) check_for_nan(function, outputs);
  deliver_all(node, std::move(outputs));
}

/// What AccumulateGrad::apply does, into the book instead of `.grad`.
void GraphRun::run_leaf(GraphNode& node, GraphOutputs& outputs) {
  auto& function = static_cast<AccumulateGrad&>(*node.function);
  variable_list inputs = std::exchange(node.inputs, {});
  inputs.resize(1);
  call_pre_hooks(function, inputs);
  if (inputs[0].defined()) {
    if (function.variable.grad_fn()) throw std::logic_error("leaf variable has been moved into the graph interior");
    if (function.variable.requires_grad()) {
      // A post-hook gets the gradient as well: the book then gets a second reference to it and keeps a copy.
      if (function.post_hooks().empty()) {
        outputs.on_leaf(function.variable, std::move(inputs[0]), node.rank);
      } else {
        outputs.on_leaf(function.variable, at::Tensor(inputs[0]), node.rank);
      }
    }
  }
  variable_list none;
  for (const auto& hook : function.post_hooks()) none = (*hook)(none, inputs);
}

void GraphRun::run_received(GraphNode& node, GraphOutputs& outputs) {
  auto& function = static_cast<RecvFunction&>(*node.function);
  variable_list inputs = std::exchange(node.inputs, {});
  inputs.resize(function.num_inputs());
  call_pre_hooks(function, inputs);
  variable_list none;
  for (const auto& hook : function.post_hooks()) none = (*hook)(none, inputs);
  outputs.on_received(function, std::move(inputs));
}

void GraphRun::deliver_all(const GraphNode& from, variable_list&& gradients) {
  const GraphEdge* edge = graph_.edges.data() + from.first_edge;
  for (std::uint32_t i = 0; i < from.edge_count; ++i, ++edge) {
    if (edge->target == kNone) continue;
    deliver(*edge, std::move(gradients[i]));
  }
}

void GraphRun::deliver(const GraphEdge& edge, at::Tensor&& gradient) {
  GraphNode& target = graph_.nodes[edge.target];
  if (target.slots == kNone) {
    add(target, edge.input, std::move(gradient));
  } else {
    InputSlot& slot = graph_.slots[target.slots + edge.input];
    if (edge.position == slot.next) {
      add(target, edge.input, std::move(gradient));
      for (++slot.next; slot.next < slot.count && !early_.empty(); ++slot.next) {
        Early& early = early_[slot.early + slot.next];
        if (!early.here) break;
        add(target, edge.input, std::move(early.gradient));
      }
    } else {
      if (early_.empty()) early_.resize(graph_.early_count);
      early_[slot.early + edge.position] = {std::move(gradient), true};
    }
  }
  if (--target.waits == 0) push(edge.target);
}

void GraphRun::add(GraphNode& node, std::uint32_t input, at::Tensor&& gradient) {
  if (!gradient.defined()) return;
  if (node.inputs.empty()) node.inputs.resize(node.function->num_inputs());
  at::Tensor& sum = node.inputs[input];
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  // torch's own addition: in place if no other code refers to the sum, and in the order that sparse tensors need.
  if (!sum_) sum_.emplace(1);
  sum_->buffer[0] = std::move(sum);
  sum_->add(0, std::move(gradient), std::nullopt, std::nullopt, node.function);
  sum = std::move(sum_->buffer[0]);
}

}  // namespace caftan::autograd

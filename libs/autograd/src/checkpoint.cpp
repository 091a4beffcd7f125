#include "caftan/autograd/checkpoint.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>
#include <stdexcept>
#include <utility>

#include "caftan/base/error.hpp"
#include "graph_run.hpp"
#include "pass_graph.hpp"
#include "running_pass.hpp"

namespace caftan::autograd {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

thread_local constinit bool inside_checkpoint = false;

/// Marks the calling thread while a segment runs.
class InsideCheckpoint {
 public:
  InsideCheckpoint() noexcept : outer_(std::exchange(inside_checkpoint, true)) {}
  ~InsideCheckpoint() { inside_checkpoint = outer_; }
  InsideCheckpoint(const InsideCheckpoint&) = delete;
  InsideCheckpoint& operator=(const InsideCheckpoint&) = delete;

 private:
  const bool outer_;
};

at::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

/// Puts the generator into an earlier state, and back. Does nothing for an undefined state.
class RandomState {
 public:
  explicit RandomState(const at::Tensor& state) {
    if (!state.defined()) return;
    now_ = random_state();
    set_random_state(state);
  }
  ~RandomState() {
    if (now_.defined()) set_random_state(now_);
  }
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;

 private:
  at::Tensor now_;
};

variable_list run_segment(const Segment& segment, const variable_list& inputs) {
  const InsideCheckpoint inside;
  return segment(inputs);
}

/// Where the gradients of a segment go: to its inputs, and into the pass that runs it.
class SegmentOutputs final : public GraphOutputs {
 public:
  SegmentOutputs(RunningPass& pass, const variable_list& inputs) : pass_(pass), inputs_(inputs) {
    gradients_.resize(inputs.size());
  }
  void on_leaf(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].is_same(leaf)) continue;
      gradients_[i] = std::move(gradient);
      return;
    }
    pass_.book(leaf, std::move(gradient));
  }
  // Empty: backward of a segment with a RecvFunction is refused before its graph is run.
  void on_received(const RecvFunction&, variable_list&&) override {}
  variable_list take() { return std::move(gradients_); }

 private:
  RunningPass& pass_;
  const variable_list& inputs_;
  variable_list gradients_;
};

class CheckpointFunction final : public torch::autograd::Node {
 public:
  CheckpointFunction(Segment segment, const variable_list& inputs, at::Tensor state)
      : segment_(std::move(segment)), random_state_(std::move(state)) {
    for (const at::Tensor& input : inputs) {
      inputs_.emplace_back(input, /*is_output=*/false);
      requires_grad_.push_back(input.defined() && input.requires_grad());
    }
  }
  std::string name() const override { return "CheckpointFunction"; }

  void release_variables() override {
    const std::scoped_lock lock(mutex_);
    for (SavedVariable& input : inputs_) input.reset_data();
  }

 private:
  variable_list apply(variable_list&& gradients) override {
    const std::scoped_lock lock(mutex_);
    variable_list inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      at::Tensor input = inputs_[i].unpack();  // unpack throws when the tensor was released or changed in place
      if (input.defined()) input = input.detach().set_requires_grad(requires_grad_[i]);
      inputs.push_back(std::move(input));
    }
    variable_list outputs;
    {
      const c10::AutoGradMode with_graph(true);
      const RandomState state(random_state_);
      outputs = run_segment(segment_, inputs);
    }
    if (outputs.size() != gradients.size()) {
      throw std::runtime_error("a checkpointed segment gave " + std::to_string(gradients.size()) +
                               " results the first time and " + std::to_string(outputs.size()) + " the second time");
    }
    torch::autograd::edge_list edges;
    variable_list defined_outputs;
    variable_list defined_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined() || !outputs[i].defined() || !outputs[i].requires_grad()) continue;
      if (outputs[i].sizes() != gradients[i].sizes()) {
        throw std::runtime_error("a checkpointed segment gave result " + std::to_string(i) +
                                 " other sizes the second time");
      }
      edges.push_back(torch::autograd::impl::gradient_edge(outputs[i]));
      defined_outputs.push_back(outputs[i]);
      defined_gradients.push_back(std::move(gradients[i]));
    }
    if (edges.empty()) return variable_list(inputs.size());
    RunningPass* const pass = RunningPass::current();
    if (pass && pass->is_innermost()) return run_in_pass(*pass, edges, std::move(defined_gradients), inputs);
    return run_stock(defined_outputs, defined_gradients, inputs);
  }

  /// Runs a segment's graph inside of a pass of torch's own engine: gradients of leaves go into `.grad`.
  static variable_list run_stock(const variable_list& outputs, const variable_list& gradients,
                                 const variable_list& inputs) {
    if (!torch::autograd::Engine::get_default_engine().is_checkpoint_valid()) {
      throw std::runtime_error("a checkpointed segment works with backward(), not with grad(): it books all leaves");
    }
    torch::autograd::backward(outputs, gradients);
    variable_list of_inputs;
    for (const at::Tensor& input : inputs) of_inputs.push_back(input.defined() ? input.grad() : at::Tensor());
    return of_inputs;
  }

  static variable_list run_in_pass(RunningPass& pass, const torch::autograd::edge_list& edges,
                                   variable_list&& gradients, const variable_list& inputs) {
    PassGraph graph;
    const std::uint32_t root = graph.add_root(edges);
    graph.expand(std::numeric_limits<std::size_t>::max());
    if (!graph.found.empty()) {
      throw RpcException(
          Error(Errc::unsupported, "a checkpointed segment calls another worker: take the call out of it"));
    }
    graph.close(SpanIndex({}));
    SegmentOutputs outputs(pass, inputs);
    GraphRun run(graph, /*keep_graph=*/false);
    run.provide(root, std::move(gradients));
    while (run.step(outputs)) {
    }
    return outputs.take();
  }

  const Segment segment_;
  std::vector<SavedVariable> inputs_;
  std::vector<bool> requires_grad_;
  const at::Tensor random_state_;
};

}  // namespace

std::vector<at::Tensor> checkpoint(Segment segment, const std::vector<at::Tensor>& inputs,
                                   const CheckpointOptions& options) {
  if (!c10::GradMode::is_enabled() || !torch::autograd::any_variable_requires_grad(inputs)) {
    return run_segment(segment, inputs);
  }
  const at::Tensor state = options.preserve_random_state ? random_state() : at::Tensor();
  std::vector<at::Tensor> outputs;
  {
    const c10::AutoGradMode no_graph(false);
    outputs = run_segment(segment, inputs);
  }
  std::shared_ptr<CheckpointFunction> function(new CheckpointFunction(std::move(segment), inputs, state),
                                               torch::autograd::deleteNode);
  function->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (at::Tensor& output : outputs) {
    if (!output.defined() || !torch::autograd::isDifferentiableType(output.scalar_type())) {
      function->add_input_metadata(torch::autograd::Node::undefined_input());
      continue;
    }
    // A result that is an input, a parameter or a view of one must not become this node's result itself.
    output = output.detach();
    torch::autograd::create_gradient_edge(output, function);
  }
  return outputs;
}

bool is_inside_checkpoint() noexcept { return inside_checkpoint; }

}  // namespace caftan::autograd

/// Runs a closed PassGraph, node by node, as torch's engine would: hooks, checks and sums included.
#pragma once

#include <torch/csrc/autograd/input_buffer.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "pass_graph.hpp"

namespace caftan::autograd {

/// Receives the gradients that leave the graph.
class GraphOutputs {
 public:
  virtual ~GraphOutputs() = default;
  /// The gradient of a leaf, after its hooks. @param rank  place of its last contribution in the order of summation
  virtual void on_leaf(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t rank) = 0;
  virtual void on_received(const RecvFunction& function, torch::autograd::variable_list&& gradients) = 0;
};

/// Threads: one at a time. An exception of a node, a hook or libtorch passes through; the run cannot go on then.
class GraphRun {
 public:
  GraphRun(PassGraph& graph, bool keep_graph);

  /// Gives a source the gradients of its edges: one per edge, with the sizes, dtype and device that the edge's node
  /// expects.
  void provide(std::uint32_t source, torch::autograd::variable_list&& gradients);

  /// Returns whether the ready node that comes first runs code that is not this library's: a function of torch or of
  /// the user, or a hook.
  bool next_runs_code() const;
  /// Runs the ready node that comes first. Returns false when none is ready.
  bool step(GraphOutputs& outputs);

  bool drained() const noexcept { return left_ == 0; }
  /// The node in work, for the text of an error; null between two nodes.
  torch::autograd::Node* running() const noexcept { return running_; }
  /// The place of the node in work in the order of summation.
  std::uint32_t running_rank() const noexcept { return running_rank_; }

 private:
  struct Ready {
    std::uint64_t priority;
    std::uint32_t node;
  };
  /// An early contribution.
  struct Early {
    at::Tensor gradient;
    bool here = false;
  };

  void push(std::uint32_t node);
  void run_leaf(GraphNode& node, GraphOutputs& outputs);
  void run_received(GraphNode& node, GraphOutputs& outputs);
  void run_plain(GraphNode& node);
  void deliver_all(const GraphNode& from, torch::autograd::variable_list&& gradients);
  void deliver(const GraphEdge& edge, at::Tensor&& gradient);
  void add(GraphNode& node, std::uint32_t input, at::Tensor&& gradient);

  PassGraph& graph_;
  const bool keep_graph_;
  std::vector<Ready> ready_;  ///< a heap
  std::vector<Early> early_;
  std::size_t left_;
  torch::autograd::Node* running_ = nullptr;
  std::uint32_t running_rank_ = 0;
  /// The contributions to one input while they are added; empty between two sums, made with the first.
  std::optional<torch::autograd::InputBuffer> sum_;
};

}  // namespace caftan::autograd

/// What one pass visits of torch's graph, in flat arrays: nodes, their edges as indices, how many contributions each
/// waits for, and in which order contributions to one input are added. Found by `expand`, put in order by `close`.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "caftan/autograd/internal/nodes.hpp"
#include "node_table.hpp"
#include "span_index.hpp"

namespace caftan::autograd {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

enum class NodeKind : std::uint8_t {
  root,      ///< not a node of torch's: gives the gradients of the roots
  send,      ///< a SendFunction: gives the gradients of its message
  plain,     ///< whatever torch runs
  leaf,      ///< AccumulateGrad: its gradient is booked
  received,  ///< a RecvFunction: its gradients leave
};

struct GraphNode {
  torch::autograd::Node* function = nullptr;  ///< null for sources; the edges that lead to the node keep it alive
  std::uint32_t first_edge = 0;
  std::uint32_t edge_count = 0;
  std::uint32_t waits = 0;      ///< contributions that are still to come; a source waits for its own gradients
  std::uint32_t slots = kNone;  ///< where the slots of its inputs begin; kNone = contributions are added as they come
  /// In a ranked graph: place in the order of summation; of a leaf, the place of its last producer.
  std::uint32_t rank = 0;
  NodeKind kind = NodeKind::plain;
  /// For each input of the node, the sum of the gradients that have come; empty before the first.
  torch::autograd::variable_list inputs;
};

struct GraphEdge {
  std::uint32_t target = kNone;  ///< kNone = no gradient is wanted
  std::uint32_t input = 0;
  std::uint32_t position = 0;  ///< in a ranked graph: place among the contributions to the target's input
};

/// One input with several contributions, which are added in order of position.
struct InputSlot {
  std::uint32_t next = 0;   ///< position of the next one to add
  std::uint32_t count = 0;  ///< contributions in all
  std::uint32_t early = 0;  ///< where its early contributions wait
};

class PassGraph {
 public:
  using Edges = std::span<const torch::autograd::Edge>;

  PassGraph();

  /// Adds the source of the roots. `edges` must live as long as the graph. Returns its index.
  std::uint32_t add_root(Edges edges);
  /// Adds a marked message, which must live as long as the graph. Returns its index.
  std::uint32_t add_send(const SendFunction& send);

  /// Follows the edges of up to `limit` nodes. Returns whether all are followed.
  bool expand(std::size_t limit);

  /// Fixes the order of summation (engine.hpp). Call once, when all is expanded.
  void close(const SpanIndex& spans);

  /// Returns, after `close`, whether contributions may arrive in another order than that of their addition.
  bool ranked() const noexcept { return ranked_; }

  /// The RecvFunctions found since the last caller took this list, in the order of the walk.
  std::vector<const RecvFunction*> found;
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::vector<InputSlot> slots;
  std::uint32_t early_count = 0;  ///< contributions in all slots

 private:
  struct Source {
    std::uint32_t node = 0;
    std::uint64_t order_key = 0;
    std::uint64_t sequence_nr = 0;
    std::uint64_t thread_id = 0;
  };
  struct Producer;

  std::uint32_t add_source(NodeKind kind, Source source, Edges edges);
  void note_recorder(const torch::autograd::Node& function) noexcept;
  bool comes_in_order(const SpanIndex& spans) const;
  std::uint32_t visit(torch::autograd::Node* function);
  void follow(std::uint32_t node, Edges from);
  std::vector<Producer> number_producers();
  void order(std::vector<Producer>& producers, const SpanIndex& spans) const;
  void rank(const std::vector<Producer>& producers);

  NodeTable table_;
  std::vector<Source> sources_;
  std::vector<std::uint32_t> open_;  ///< nodes whose edges are not followed yet
  std::uint64_t thread_id_ = 0;      ///< the thread that recorded the first node; 0 = none yet
  bool one_thread_ = true;
  std::uint64_t first_nr_ = std::numeric_limits<std::uint64_t>::max();  ///< of the nodes with edges
  std::uint64_t last_nr_ = 0;
  bool ranked_ = false;
};

}  // namespace caftan::autograd

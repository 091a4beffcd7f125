#include "pass_graph.hpp"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <typeinfo>

#include "recv_function.hpp"

namespace caftan::autograd {

/// A node that gives contributions to inputs, and the numbers that decide its place in the order of summation.
struct PassGraph::Producer {
  std::uint32_t node = 0;
  std::uint32_t found = 0;  ///< depth-first number
  std::uint64_t sequence_nr = 0;
  std::uint64_t thread_id = 0;
  bool loose = false;      ///< the node lies in no span: it comes after all others
  std::uint64_t span = 0;  ///< its key
  std::uint64_t late = 0;  ///< within the span: the larger, the earlier its contributions are added
};

PassGraph::PassGraph() {
  nodes.reserve(256);
  edges.reserve(256);
}

std::uint32_t PassGraph::add_root(Edges roots) {
  Source source;
  // torch's engine, too, runs the root before everything else.
  source.sequence_nr = std::numeric_limits<std::uint64_t>::max();
  return add_source(NodeKind::root, source, roots);
}

std::uint32_t PassGraph::add_send(const SendFunction& send) {
  Source source;
  source.order_key = send.message().order_key;
  source.sequence_nr = send.sequence_nr();
  source.thread_id = send.thread_id();
  // Gradients of a marked message may arrive at any time, so contributions do not come in the order of summation by
  // themselves.
  ranked_ = true;
  return add_source(NodeKind::send, source, send.next_edges());
}

std::uint32_t PassGraph::add_source(NodeKind kind, Source source, Edges from) {
  source.node = static_cast<std::uint32_t>(nodes.size());
  sources_.push_back(source);
  GraphNode& node = nodes.emplace_back();
  node.kind = kind;
  node.waits = 1;
  follow(source.node, from);
  return source.node;
}

void PassGraph::note_recorder(const torch::autograd::Node& function) noexcept {
  if (thread_id_ == 0) thread_id_ = function.thread_id();
  one_thread_ = one_thread_ && thread_id_ == function.thread_id();
  first_nr_ = std::min(first_nr_, function.sequence_nr());
  last_nr_ = std::max(last_nr_, function.sequence_nr());
}

std::uint32_t PassGraph::visit(torch::autograd::Node* function) {
  const auto next = static_cast<std::uint32_t>(nodes.size());
  const auto [index, known] = table_.find_or_insert(function, next);
  if (known) return index;
  GraphNode& node = nodes.emplace_back();
  node.function = function;
  if (!function->next_edges().empty()) {
    open_.push_back(index);
    note_recorder(*function);
  } else if (const std::type_info& type = typeid(*function); type == typeid(torch::autograd::AccumulateGrad)) {
    node.kind = NodeKind::leaf;
  } else if (type == typeid(RecvFunction)) {
    node.kind = NodeKind::received;
    found.push_back(static_cast<const RecvFunction*>(function));
  }
  return index;
}

void PassGraph::follow(std::uint32_t node, Edges from) {
  nodes[node].first_edge = static_cast<std::uint32_t>(edges.size());
  nodes[node].edge_count = static_cast<std::uint32_t>(from.size());
  for (const torch::autograd::Edge& edge : from) {
    GraphEdge& added = edges.emplace_back();
    if (!edge.is_valid()) continue;
    added.target = visit(edge.function.get());
    added.input = edge.input_nr;
    ++nodes[added.target].waits;
  }
}

bool PassGraph::expand(std::size_t limit) {
  for (; limit > 0 && !open_.empty(); --limit) {
    const std::uint32_t index = open_.back();
    open_.pop_back();
    follow(index, nodes[index].function->next_edges());
  }
  return open_.empty();
}

/// Returns whether the nodes, which run in descending sequence number as in torch's engine, give their contributions in
/// the order of summation, so that no ranks are needed: one thread recorded them in one span or in none, and
/// none is a send.
bool PassGraph::comes_in_order(const SpanIndex& spans) const {
  return !ranked_ && one_thread_ && (spans.size() == 0 || spans.is_one_with(thread_id_, first_nr_, last_nr_));
}

void PassGraph::close(const SpanIndex& spans) {
  ranked_ = !comes_in_order(spans);
  if (!ranked_) return;
  std::vector<Producer> producers = number_producers();
  order(producers, spans);
  rank(producers);
}

/// Numbers the producers depth-first from the root, then from the sends by order key, so that the numbers do not depend
/// on which mark came first.
std::vector<PassGraph::Producer> PassGraph::number_producers() {
  std::sort(sources_.begin(), sources_.end(), [this](const Source& a, const Source& b) {
    const bool a_sends = nodes[a.node].kind == NodeKind::send;
    const bool b_sends = nodes[b.node].kind == NodeKind::send;
    return std::tie(a_sends, a.order_key) < std::tie(b_sends, b.order_key);
  });
  std::vector<bool> numbered(nodes.size(), false);
  std::vector<Producer> producers;
  producers.reserve(nodes.size());
  std::vector<std::uint32_t> stack;
  for (const Source& source : sources_) {
    stack.push_back(source.node);
    while (!stack.empty()) {
      const std::uint32_t index = stack.back();
      stack.pop_back();
      const GraphNode& node = nodes[index];
      if (node.edge_count == 0 || numbered[index]) continue;
      numbered[index] = true;
      Producer& producer = producers.emplace_back();
      producer.node = index;
      producer.found = static_cast<std::uint32_t>(producers.size());
      producer.sequence_nr = node.function ? node.function->sequence_nr() : source.sequence_nr;
      producer.thread_id = node.function ? node.function->thread_id() : source.thread_id;
      for (std::uint32_t i = node.edge_count; i-- > 0;) {
        if (const std::uint32_t target = edges[node.first_edge + i].target; target != kNone) stack.push_back(target);
      }
    }
  }
  return producers;
}

void PassGraph::order(std::vector<Producer>& producers, const SpanIndex& spans) const {
  for (Producer& producer : producers) {
    const GraphNode& node = nodes[producer.node];
    if (node.kind == NodeKind::root) {
      producer.late = std::numeric_limits<std::uint64_t>::max();
      continue;
    }
    const std::optional<std::uint64_t> span = spans.find(producer.thread_id, producer.sequence_nr);
    producer.loose = !span;
    producer.span = span.value_or(0);
    if (producer.loose) {
      // The source of a send has no function: it comes before all nodes that it leads to.
      producer.late = node.function ? node.function->topological_nr() : std::numeric_limits<std::uint64_t>::max();
    } else {
      producer.late = producer.sequence_nr;
    }
  }
  // The root is the first producer that was found.
  std::sort(producers.begin(), producers.end(), [](const Producer& a, const Producer& b) {
    return std::tie(a.loose, a.span, b.late, a.found) < std::tie(b.loose, b.span, a.late, b.found);
  });
}

/// Ranks the producers. Where an input has several contributions, gives each contribution its position in the order of
/// addition.
void PassGraph::rank(const std::vector<Producer>& producers) {
  std::uint32_t rank = 0;
  for (const Producer& producer : producers) {
    GraphNode& from = nodes[producer.node];
    from.rank = rank++;
    for (std::uint32_t i = 0; i < from.edge_count; ++i) {
      GraphEdge& edge = edges[from.first_edge + i];
      if (edge.target == kNone) continue;
      GraphNode& target = nodes[edge.target];
      if (target.kind == NodeKind::leaf) target.rank = from.rank;
      if (target.waits < 2) continue;
      if (target.slots == kNone) {
        target.slots = static_cast<std::uint32_t>(slots.size());
        slots.resize(slots.size() + target.function->num_inputs());
      }
      edge.position = slots[target.slots + edge.input].count++;
    }
  }
  for (InputSlot& slot : slots) {
    slot.early = early_count;
    early_count += slot.count;
  }
}

}  // namespace caftan::autograd

/// `SpanIndex`: which span recorded a node, from the node's thread and sequence number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/autograd/internal/nodes.hpp"

namespace caftan::autograd {

class SpanIndex {
 public:
  /// Spans that share a key are left out: which of them recorded first is not known.
  explicit SpanIndex(std::vector<CodeSpan> spans);

  std::size_t size() const noexcept { return spans_.size(); }
  /// Returns whether there is exactly one span and it has recorded all of [first, last].
  bool is_one_with(std::uint64_t thread_id, std::uint64_t first, std::uint64_t last) const;
  /// Returns the key of the innermost span, nothing for a node outside all.
  std::optional<std::uint64_t> find(std::uint64_t thread_id, std::uint64_t sequence_nr) const;

 private:
  /// Ordered by thread and first number; of two spans with the same first number the outer one comes first.
  std::vector<CodeSpan> spans_;
  /// For each span, the index of the span around it; its own index where there is none.
  std::vector<std::size_t> outer_;
};

}  // namespace caftan::autograd

/// `BodyIndex`: which body recorded a node, from the node's thread and sequence number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/autograd/nodes.hpp"

namespace caftan::autograd {

class BodyIndex {
 public:
  /// Bodies that share a key are left out: which of them recorded first is not known.
  explicit BodyIndex(std::vector<CodeSpan> bodies);

  std::size_t size() const noexcept { return bodies_.size(); }
  /// Returns whether there is just one body and it recorded all of [first, last].
  bool is_one_with(std::uint64_t thread_id, std::uint64_t first, std::uint64_t last) const;
  /// Returns the key of the innermost body, nothing for a node outside all.
  std::optional<std::uint64_t> find(std::uint64_t thread_id, std::uint64_t sequence_nr) const;

 private:
  std::vector<CodeSpan> bodies_;    ///< by thread and first number; of two with the same, the outer one first
  std::vector<std::size_t> outer_;  ///< of each, the one around it; its own index when there is none
};

}  // namespace caftan::autograd

/// `NodeTable`: from a torch node's address to its index in the pass. Open addressing: a pass looks up each edge once,
/// which is most of what finding the graph costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "caftan/base/ids.hpp"

namespace caftan::autograd {

class NodeTable {
 public:
  NodeTable() : cells_(64) {}

  /// Returns the index stored for `key`, and whether it was there; stores `index` if not.
  std::pair<std::uint32_t, bool> find_or_insert(const void* key, std::uint32_t index) {
    if (2 * (count_ + 1) > cells_.size()) grow();
    Cell& cell = cells_[place_of(key)];
    if (cell.key) return {cell.index, true};
    cell = {key, index};
    ++count_;
    return {index, false};
  }

 private:
  struct Cell {
    const void* key = nullptr;
    std::uint32_t index = 0;
  };

  /// Returns where `key` is or belongs.
  std::size_t place_of(const void* key) const noexcept {
    std::size_t place = mix64(reinterpret_cast<std::uintptr_t>(key)) & (cells_.size() - 1);
    while (cells_[place].key && cells_[place].key != key) place = (place + 1) & (cells_.size() - 1);
    return place;
  }

  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.key) cells_[place_of(cell.key)] = cell;
    }
  }

  std::vector<Cell> cells_;  ///< a power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace caftan::autograd

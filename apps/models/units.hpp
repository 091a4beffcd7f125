/// `UnitRange`: which of a model's units a part of it has. A model can be cut between two units.
#pragma once

#include <cstddef>
#include <limits>

namespace caftan::models {

/// The units first..end-1 of a model; by default all.
struct UnitRange {
  std::size_t first = 0;
  std::size_t end = std::numeric_limits<std::size_t>::max();

  bool has(std::size_t unit) const noexcept { return unit >= first && unit < end; }
};

}  // namespace caftan::models

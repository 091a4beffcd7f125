/// Runs of many histories of the backward model until one is bad.
#pragma once

#include <cstdint>
#include <utility>

#include "backward_model_world.hpp"
#include "histories.hpp"

namespace caftan::autograd::model {

struct Found {
  bool bad = false;
  std::uint64_t histories = 0;  ///< that were run
  int ok = 0;                   ///< passes that ended ok
  int failed = 0;
  History history;  ///< the bad one, as it was drawn
};

/// Runs the histories [first, last) of `seed` until one is bad.
inline Found first_bad_history(Without without, std::uint64_t seed, std::uint64_t first, std::uint64_t last) {
  Found found;
  for (std::uint64_t index = first; index < last; ++index) {
    History history = make_history(seed, index);
    World world(without);
    found.bad = !world.run(history).empty();
    found.histories = index - first + 1;
    found.ok += world.passes_ended().first;
    found.failed += world.passes_ended().second;
    if (!found.bad) continue;
    found.history = std::move(history);
    break;
  }
  return found;
}

}  // namespace caftan::autograd::model

/// Runs of many histories of the backward model, and the report of the first bad one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backward_model_world.hpp"

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

/// Returns the trace of the shortest history that is still bad, one line for each thing that happened.
inline std::string report(const Found& found, Without without) {
  if (!found.bad) return "no bad history";
  const History shortest =
      shrink(found.history, [&](const History& history) { return !World(without).run(history).empty(); });
  std::vector<std::string> trace;
  World(without, &trace).run(shortest);
  std::string text = "bad after " + std::to_string(found.histories) + " histories; the shortest has " +
                     std::to_string(shortest.steps.size()) + " steps:\n";
  for (const std::string& line : trace) text += "  " + line + "\n";
  return text;
}

}  // namespace caftan::autograd::model

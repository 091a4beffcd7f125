/// What the models of the protocols do alike with their random histories: draw, cut down, report. A model brings its
/// own `History` (a list `steps` of choices), its `World` (`World(without, trace).run(history)` returns what went
/// wrong, or nothing) and its `Without` (the rule that its world lacks). Start with `report`.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace caftan::test {

/// Returns a number in [0, bound), the same with every standard library.
inline std::uint32_t below(std::mt19937_64& random, std::uint32_t bound) {
  return static_cast<std::uint32_t>(((random() >> 32) * bound) >> 32);
}

/// Takes out chunks of steps, from halves down to single steps, until each step left is needed for `is_bad` to hold.
template <class History>
History without_needless_steps(History bad, const std::function<bool(const History&)>& is_bad) {
  for (std::size_t chunk = std::max<std::size_t>(bad.steps.size() / 2, 1);;) {
    bool cut = false;
    for (std::size_t at = 0; at < bad.steps.size();) {
      History shorter = bad;
      const auto first = shorter.steps.begin() + static_cast<std::ptrdiff_t>(at);
      shorter.steps.erase(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, bad.steps.size() - at)));
      if (is_bad(shorter)) {
        bad = std::move(shorter);
        cut = true;
      } else {
        at += chunk;
      }
    }
    if (chunk == 1 && !cut) return bad;
    if (!cut) chunk /= 2;
  }
}

/// Returns the model's `shrink` of `bad`: the shortest history found that is still bad without that rule.
template <class World, class History, class Without>
History shortest_bad(const History& bad, Without without) {
  return shrink(bad, [without](const History& history) { return !World(without).run(history).empty(); });
}

/// Returns the trace of the shortest history that is still bad, one line for each thing that happened.
/// @param found  of the model: `bad`, how many `histories` were run, and the bad `history`
template <class World, class Found, class Without>
std::string report(const Found& found, Without without) {
  if (!found.bad) return "no bad history";
  const auto shortest = shortest_bad<World>(found.history, without);
  std::vector<std::string> trace;
  World(without, &trace).run(shortest);
  std::string text = "bad after " + std::to_string(found.histories) + " histories; the shortest has " +
                     std::to_string(shortest.steps.size()) + " steps:\n";
  for (const std::string& line : trace) text += "  " + line + "\n";
  return text;
}

/// Returns a rule's name as that of a test: "RR-2 one order" becomes "RR2_one_order".
inline std::string test_name(const std::string& rule) {
  std::string name;
  for (const char letter : rule) {
    if (letter != '-') name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  }
  return name;
}

}  // namespace caftan::test

#include "rref_model_history.hpp"

#include <array>
#include <cstddef>
#include <random>
#include <utility>

#include "histories.hpp"

namespace caftan::rpc::model {
namespace {

using test::below;

// The relative frequency of each Act, in the order of the enum. Frames and mailboxes must move faster than they fill;
// faults are rare enough to build up state.
using Weights = std::array<std::uint32_t, kActs>;
constexpr Weights kCalm = {14, 6, 3, 4, 10, 2, 10, 34, 22, 2, 2, 2, 2, 3, 1, 3, 1};
// Weights with which workers come and go, so that what outlives a life or a connection meets the next one.
constexpr Weights kStormy = {16, 4, 8, 2, 6, 1, 4, 30, 16, 1, 1, 2, 8, 12, 4, 12, 1};

Act draw_act(std::mt19937_64& random, const Weights& weights) {
  std::uint32_t total = 0;
  for (const std::uint32_t weight : weights) total += weight;
  std::uint32_t left = below(random, total);
  std::size_t act = 0;
  while (left >= weights[act]) left -= weights[act++];
  return static_cast<Act>(act);
}

// Replaces choices of a bad history by 0 or 1 where the history stays bad. Returns true if any was replaced.
bool made_simpler(History& bad, const std::function<bool(const History&)>& is_bad) {
  bool simpler = false;
  for (std::size_t at = 0; at < bad.steps.size(); ++at) {
    for (std::uint32_t Step::*choice : {&Step::a, &Step::b, &Step::c}) {
      for (std::uint32_t smaller : {0u, 1u}) {
        if (bad.steps[at].*choice <= smaller) break;
        History other = bad;
        other.steps[at].*choice = smaller;
        if (!is_bad(other)) continue;
        bad = std::move(other);
        simpler = true;
        break;
      }
    }
  }
  return simpler;
}

}  // namespace

History make_history(std::uint64_t seed, std::uint64_t index) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ULL + index);
  History history;
  history.workers = 3 + static_cast<int>(below(random, 4) == 0);
  history.prompt = below(random, 2) == 0;
  Weights weights = below(random, 3) == 0 ? kStormy : kCalm;
  // Slow actors: much has changed around them by the time they read what they were sent.
  if (below(random, 3) == 0) weights[static_cast<std::size_t>(Act::run_actor)] /= 4;
  history.steps.resize(10 + below(random, 80));
  for (Step& step : history.steps) {
    step.act = draw_act(random, weights);
    step.a = static_cast<std::uint32_t>(random() >> 40);
    step.b = static_cast<std::uint32_t>(random() >> 40);
    step.c = static_cast<std::uint32_t>(random() >> 40);
  }
  return history;
}

History shrink(History bad, const std::function<bool(const History&)>& is_bad) {
  if (History prompt = bad; !prompt.prompt) {
    prompt.prompt = true;
    if (is_bad(prompt)) bad = prompt;
  }
  do {
    bad = test::without_needless_steps(std::move(bad), is_bad);
  } while (made_simpler(bad, is_bad));
  return bad;
}

}  // namespace caftan::rpc::model

#include "backward_model_history.hpp"

#include <array>
#include <cstddef>
#include <random>
#include <utility>

#include "histories.hpp"

namespace caftan::autograd::model {
namespace {

using test::below;

// The relative frequency of each Act, in the order of the enum. Messages must move faster than they are made; faults
// are rare enough to build up state.
using Weights = std::array<std::uint32_t, kActs>;
constexpr Weights kSlow = {3, 20, 8, 30, 16, 1, 1, 1, 1, 1, 1, 1, 2, 2};
// Weights with which much of the graph is recorded before the first pass, and one pass follows another.
constexpr Weights kBusy = {2, 10, 14, 40, 26, 2, 1, 1, 1, 1, 1, 1, 2, 2};
// Weights with which connections come and go, so that what was lost with one connection meets messages of the next.
constexpr Weights kStormy = {2, 14, 10, 36, 22, 1, 1, 1, 1, 1, 5, 2, 4, 6};

Act draw_act(std::mt19937_64& random, const Weights& weights, int acts) {
  std::uint32_t total = 0;
  for (int act = 0; act < acts; ++act) total += weights[act];
  std::uint32_t left = below(random, total);
  std::size_t act = 0;
  while (left >= weights[act]) left -= weights[act++];
  return static_cast<Act>(act);
}

Step draw_step(std::mt19937_64& random, Act act) {
  const auto draw = [&] { return static_cast<std::uint32_t>(random() >> 40); };
  const std::uint32_t a = draw(), b = draw(), c = draw();
  return {act, a, b, c};
}

}  // namespace

History make_history(std::uint64_t seed, std::uint64_t index) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ULL + index);
  History history;
  history.workers = 2 + static_cast<int>(below(random, 3));
  history.calm = below(random, 3) == 0;
  const bool busy = below(random, 2) == 0;
  const bool stormy = !history.calm && below(random, 3) == 0;
  const Weights& weights = stormy ? kStormy : busy ? kBusy : kSlow;
  const int acts = history.calm ? kCalmActs : kActs;
  history.steps.push_back(draw_step(random, Act::create));
  const std::uint32_t forward = below(random, 12);
  for (std::uint32_t i = 0; i < 2 * forward; ++i) {
    history.steps.push_back(draw_step(random, i % 2 == 0 ? Act::call : Act::deliver));
  }
  const std::uint32_t steps = 10 + below(random, 90);
  for (std::uint32_t i = 0; i < steps; ++i) {
    history.steps.push_back(draw_step(random, draw_act(random, weights, acts)));
  }
  return history;
}

History shrink(History bad, const std::function<bool(const History&)>& is_bad) {
  return test::without_needless_steps(std::move(bad), is_bad);
}

}  // namespace caftan::autograd::model

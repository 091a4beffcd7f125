// Steps per second of vector environments on one core, resets included, with random actions: those that ship, and
// Gymnasium's CartPole through its process where python3 has it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "caftan/rl/environments.hpp"
#include "caftan/rl/random.hpp"

namespace {

using caftan::rl::VectorEnvironment;

constexpr std::size_t kRows = 64;  // of actions, which are drawn before the clock starts

/// Returns the steps per second in the best of `rounds`.
double measure(VectorEnvironment& environment, double seconds, int rounds) {
  using Clock = std::chrono::steady_clock;
  const auto& spec = environment.spec();
  const std::size_t n = environment.size();
  caftan::rl::Pcg64 random(1);
  std::vector<std::int32_t> actions;
  std::vector<float> forces;
  for (std::size_t i = 0; i < kRows * n; ++i) {
    actions.push_back(static_cast<std::int32_t>(random.uniform() * spec.actions));
    for (std::size_t j = 0; j < spec.action_size(); ++j) forces.push_back(static_cast<float>(random.uniform(-1, 1)));
  }
  environment.reset(0).value();
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    std::size_t calls = 0;
    const auto start = Clock::now();
    double elapsed = 0;
    do {
      for (std::size_t row = 0; row < kRows; ++row) {
        const std::size_t width = n * spec.action_size();
        if (spec.is_continuous()) {
          environment.step_continuous(std::span(forces).subspan(row * width, width)).value();
        } else {
          environment.step(std::span(actions).subspan(row * n, n)).value();
        }
      }
      calls += kRows;
      elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    } while (elapsed < seconds);
    best = std::max(best, static_cast<double>(calls * n) / elapsed);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::stod(argv[1]) : 1;
  const caftan::rl::Environments known;
  std::printf("%-28s %6s %14s\n", "environment", "n", "steps/s");
  const auto show = [&](const std::string& name, std::size_t n, int rounds) {
    auto environment = known.make_vector(name, n);
    if (!environment) {
      std::printf("%-28s %6zu  %s\n", name.c_str(), n, environment.error().message().c_str());
      return;
    }
    std::printf("%-28s %6zu %14.0f\n", name.c_str(), n, measure(**environment, seconds, rounds));
  };
  for (const std::string& id : known.ids()) show(id, 16, 3);
  show("CartPole-v1", 1, 3);
  show("CartPole-v1", 256, 3);
  for (const std::size_t n : {1, 16}) show("gymnasium:CartPole-v1", n, 3);
  return 0;
}

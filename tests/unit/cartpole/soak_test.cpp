#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "caftan/rl/random.hpp"
#include "cartpole/local.hpp"

namespace caftan::cartpole::soak_test {
namespace {

struct Seeds {
  int solved = 0;
  double median_episodes = 0;
  int balanced = 0;  ///< how many of the solved seeds reach the threshold without dropout as well
};

Seeds train_seeds(std::size_t observers, std::uint64_t count) {
  Seeds seeds;
  std::vector<double> episodes;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    LocalOptions options;
    options.seed = seed;
    for (std::size_t i = 0; i < observers; ++i) options.environment_seeds.push_back(rl::derive_seed({seed, i}));
    const auto report = train_locally(options);
    if (!report) throw std::runtime_error(report.error().message());
    seeds.solved += report->is_solved ? 1 : 0;
    episodes.push_back(static_cast<double>(report->episodes));
    if (!report->is_solved) continue;
    const double sum = std::accumulate(report->evaluation.begin(), report->evaluation.end(), 0.0);
    seeds.balanced += sum / static_cast<double>(report->evaluation.size()) > 475 ? 1 : 0;
  }
  std::sort(episodes.begin(), episodes.end());
  seeds.median_episodes = (episodes[(count - 1) / 2] + episodes[count / 2]) / 2;
  return seeds;
}

// The bounds come from the distribution of episode numbers that PyTorch's tutorial with one observer has.
TEST(CartPoleSeeds, OneObserverSolvesInTheUsualNumberOfEpisodes) {
  const Seeds seeds = train_seeds(1, 40);
  EXPECT_GE(seeds.solved, 38);
  EXPECT_GE(seeds.median_episodes, 350);
  EXPECT_LE(seeds.median_episodes, 750);
  EXPECT_GE(seeds.balanced, 36) << "learned under dropout, a policy can be worse without it";
}

TEST(CartPoleSeeds, MoreObserversSolveInFewerEpisodes) {
  for (const std::size_t observers : {2, 4}) {
    const Seeds seeds = train_seeds(observers, 10);
    EXPECT_EQ(seeds.solved, 10) << observers;
    EXPECT_LT(seeds.median_episodes, 400) << observers;
  }
}

}  // namespace
}  // namespace caftan::cartpole::soak_test

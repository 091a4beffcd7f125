// What the groups of a distributed optimizer are stepped by, as it is set between steps and loaded.
#include "group_rates.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace caftan::optim::group_rates_test {
namespace {

TEST(GroupRates, AStateFromBeforeAnyMomentumWasSetBringsBackTheMomentaOfTheGroups) {
  GroupRates rates(std::vector<Algorithm>{SGD{.lr = 0.1, .momentum = 0.9}});
  rates.add(SGD{.lr = 0.2, .momentum = 0.5});
  SavedState saved;
  rates.write_to(saved);
  EXPECT_TRUE(saved.momenta.empty());
  rates.set_momentum(0, 0.95);  // as a cyclic schedule does
  rates.set_lr(0, 1);
  rates.take(saved);
  EXPECT_EQ(rates.momentum(0), 0.9) << "what the owners step with";
  EXPECT_EQ(rates.momentum(1), 0.5);
  EXPECT_EQ(rates.lr(0), 0.1);
  EXPECT_TRUE(rates.momenta_of(std::vector<std::uint32_t>{0, 1}).empty()) << "none is sent";
}

TEST(GroupRates, AStateWithMomentaBringsThemBack) {
  GroupRates rates(std::vector<Algorithm>{SGD{.lr = 0.1, .momentum = 0.9}});
  rates.set_momentum(0, 0.7);
  SavedState saved;
  rates.write_to(saved);
  rates.set_momentum(0, 0.2);
  rates.take(saved);
  EXPECT_EQ(rates.momentum(0), 0.7);
  EXPECT_EQ(rates.momenta_of(std::vector<std::uint32_t>{0}).size(), 1U);
}

}  // namespace
}  // namespace caftan::optim::group_rates_test

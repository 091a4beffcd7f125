// What the agent decides, without calls: a value for each action in each cell, learned from steps.
#pragma once

#include <algorithm>
#include <array>
#include <caftan/rl/random.hpp>
#include <cstddef>
#include <vector>

#include "meadow.hpp"

struct Step {  // travels: has serialize
  int cell = 0;
  int action = 0;
  double reward = 0;
  int next = 0;
  bool is_last = false;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& cell& action& reward& next& is_last;
  }
};

class Values {
 public:
  // Returns the best action, or with this probability any.
  int choose(int cell, double exploration, caftan::rl::Pcg64& random) const {
    if (random.uniform() < exploration) return static_cast<int>(random.uniform() * Meadow::kActions);
    const auto& values = values_.at(static_cast<std::size_t>(cell));
    return static_cast<int>(std::ranges::max_element(values) - values.begin());
  }

  // Q-learning from the last step to the first. Returns the sum of the rewards.
  double learn(const std::vector<Step>& path) {
    double sum = 0;
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
      const double later = step->is_last ? 0 : std::ranges::max(values_.at(static_cast<std::size_t>(step->next)));
      double& value = values_.at(static_cast<std::size_t>(step->cell)).at(static_cast<std::size_t>(step->action));
      value += 0.1 * (step->reward + later - value);
      sum += step->reward;
    }
    return sum;
  }

 private:
  std::array<std::array<double, Meadow::kActions>, Meadow::kWidth * Meadow::kHeight> values_{};
};

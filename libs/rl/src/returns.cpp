#include "caftan/rl/returns.hpp"

#include <cmath>

namespace caftan::rl {
namespace {

/// Appends the returns of an episode in reverse order.
/// @param running  the return of the step after the last one; becomes that of the first step
void append_reversed(std::vector<double>& reversed, std::span<const double> rewards, double gamma, double& running) {
  for (auto reward = rewards.rbegin(); reward != rewards.rend(); ++reward) {
    running = *reward + gamma * running;
    reversed.push_back(running);
  }
}

}  // namespace

std::vector<double> discounted_returns(std::span<const double> rewards, double gamma) {
  const std::span<const double> episodes[] = {rewards};
  return discounted_returns(episodes, gamma, ReturnScope::per_observer);
}

std::vector<double> discounted_returns(std::span<const std::span<const double>> episodes, double gamma,
                                       ReturnScope scope) {
  std::vector<double> reversed;
  double running = 0;
  for (auto episode = episodes.rbegin(); episode != episodes.rend(); ++episode) {
    if (scope == ReturnScope::per_observer) running = 0;
    append_reversed(reversed, *episode, gamma, running);
  }
  return {reversed.rbegin(), reversed.rend()};
}

void normalize(std::span<double> values, double epsilon) {
  if (values.empty()) return;
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0.0;
  for (double& value : values) value = (value - mean) / (deviation + epsilon);
}

}  // namespace caftan::rl

#include "actor_critic/running_scale.hpp"

#include <cmath>

namespace caftan::actor_critic {

void RunningScale::add(std::span<const float> observations) {
  const std::size_t size = mean.size();
  const std::size_t rows = size == 0 ? 0 : observations.size() / size;
  if (rows == 0) return;
  const auto added = static_cast<double>(rows);
  const double together = count + added;
  for (std::size_t part = 0; part < size; ++part) {
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += static_cast<double>(observations[row * size + part]);
    const double new_mean = sum / added;
    double distances = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const double distance = static_cast<double>(observations[row * size + part]) - new_mean;
      distances += distance * distance;
    }
    const double difference = new_mean - mean[part];
    squares[part] += distances + difference * difference * count * added / together;
    mean[part] += difference * added / together;
  }
  count = together;
}

std::vector<float> RunningScale::weights() const {
  constexpr double kLeastVariance = 1e-8;
  std::vector<float> weights(mean.begin(), mean.end());
  for (const double sum : squares) {
    const double variance = count > 0 ? sum / count : 1;
    weights.push_back(variance > kLeastVariance ? static_cast<float>(1 / std::sqrt(variance)) : 1.0F);
  }
  return weights;
}

}  // namespace caftan::actor_critic

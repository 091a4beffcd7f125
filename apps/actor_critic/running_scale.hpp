/// Mean and deviation of each part of all observations so far, by which networks see them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace caftan::actor_critic {

/// A value. Source: Chan, Golub and LeVeque 1983, the update of several values at once.
struct RunningScale {
  double count = 0;
  std::vector<double> mean{};     ///< [observation]
  std::vector<double> squares{};  ///< [observation]: sum of squared distances from the mean

  /// For observations of this size, with mean 0 and scale 1 until the first `add`.
  static RunningScale of(std::size_t size) {
    return {.mean = std::vector(size, 0.0), .squares = std::vector(size, 0.0)};
  }

  /// Adds observations, [n, observation].
  void add(std::span<const float> observations);

  /// Returns means, then the factors 1 / deviation, [2, observation]: where policy.hpp's weights begin. A part that has
  /// not changed so far is not scaled.
  std::vector<float> weights() const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& count& mean& squares;
  }
};

}  // namespace caftan::actor_critic

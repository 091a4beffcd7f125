/// What an observation looks like: some lines and discs in a plane, which terminal.hpp and film.hpp draw.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "caftan/rl/environment.hpp"

namespace caftan::play {

struct Place {
  double x = 0;
  double y = 0;  ///< upwards
  bool operator==(const Place&) const = default;
};

/// What a part of a scene is, which decides its colour and its mark.
enum class Part { ground, body, limb, goal };

struct Stroke {
  Place from{};
  Place to{};
  Part part = Part::body;
};

struct Disc {
  Place middle{};
  double radius = 0;
  Part part = Part::body;
};

struct Scene {
  Place low{};   ///< the corner of what is shown
  Place high{};  ///< the opposite one
  std::vector<Stroke> strokes{};
  std::vector<Disc> discs{};
};

/// Returns the picture of an observation: that of CartPole, MountainCar, Pendulum, Acrobot, GridWorld, Catch and
/// those of MuJoCo; of others a bar for each part, where the longest one of `largest` is 1.
/// @param name     of the environment, as files have it
/// @param largest  the largest absolute value of each part of an observation so far, [observation_size]
Scene scene_of(const std::string& name, std::span<const float> observation, std::span<const float> largest);

}  // namespace caftan::play

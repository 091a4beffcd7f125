#include "play/scene.hpp"

#include <algorithm>
#include <cmath>

namespace caftan::play {
namespace {

Scene cart_pole(double x, double angle) {
  constexpr double kPole = 1.0;
  Scene scene{.low = {-2.6, -0.3}, .high = {2.6, 1.3}};
  scene.strokes = {{{-2.4, 0}, {2.4, 0}, Part::ground},
                   {{x - 0.25, 0.1}, {x + 0.25, 0.1}, Part::body},
                   {{x, 0.15}, {x + kPole * std::sin(angle), 0.15 + kPole * std::cos(angle)}, Part::limb}};
  scene.discs = {{{x - 0.15, 0.05}, 0.05, Part::body}, {{x + 0.15, 0.05}, 0.05, Part::body}};
  return scene;
}

double hill(double x) { return std::sin(3 * x) * 0.45 + 0.55; }

Scene mountain_car(std::span<const float> seen, double goal) {
  constexpr int kPieces = 40;
  Scene scene{.low = {-1.25, 0}, .high = {0.65, 1.3}};
  for (int i = 0; i < kPieces; ++i) {
    const double left = -1.2 + 1.8 * i / kPieces;
    const double right = -1.2 + 1.8 * (i + 1) / kPieces;
    scene.strokes.push_back({{left, hill(left)}, {right, hill(right)}, Part::ground});
  }
  scene.strokes.push_back({{goal, hill(goal)}, {goal, hill(goal) + 0.15}, Part::goal});
  const double x = static_cast<double>(seen[0]);
  scene.discs = {{{x, hill(x) + 0.05}, 0.05, Part::body}};
  return scene;
}

Scene pendulum(std::span<const float> seen) {
  Scene scene{.low = {-1.4, -1.2}, .high = {1.4, 1.2}};
  const Place tip{-static_cast<double>(seen[1]), static_cast<double>(seen[0])};
  scene.strokes = {{{0, 0}, tip, Part::limb}};
  scene.discs = {{tip, 0.1, Part::body}, {{0, 0}, 0.04, Part::ground}};
  return scene;
}

Scene acrobot(std::span<const float> seen) {
  Scene scene{.low = {-2.4, -2.2}, .high = {2.4, 2.2}};
  const double first = std::atan2(static_cast<double>(seen[1]), static_cast<double>(seen[0]));
  const double both = first + std::atan2(static_cast<double>(seen[3]), static_cast<double>(seen[2]));
  const Place elbow{std::sin(first), -std::cos(first)};
  const Place hand{elbow.x + std::sin(both), elbow.y - std::cos(both)};
  scene.strokes = {{{-2.2, 1}, {2.2, 1}, Part::goal}, {{0, 0}, elbow, Part::limb}, {elbow, hand, Part::limb}};
  scene.discs = {{{0, 0}, 0.07, Part::ground}, {elbow, 0.1, Part::body}, {hand, 0.1, Part::body}};
  return scene;
}

Scene reacher(std::span<const float> seen) {
  Scene scene{.low = {-0.24, -0.22}, .high = {0.24, 0.22}};
  const double first = std::atan2(static_cast<double>(seen[2]), static_cast<double>(seen[0]));
  const double both = first + std::atan2(static_cast<double>(seen[3]), static_cast<double>(seen[1]));
  const Place elbow{0.1 * std::cos(first), 0.1 * std::sin(first)};
  const Place hand{elbow.x + 0.1 * std::cos(both), elbow.y + 0.1 * std::sin(both)};
  scene.strokes = {{{0, 0}, elbow, Part::limb}, {elbow, hand, Part::limb}};
  scene.discs = {{{static_cast<double>(seen[4]), static_cast<double>(seen[5])}, 0.012, Part::goal},
                 {{0, 0}, 0.008, Part::ground},
                 {elbow, 0.008, Part::body},
                 {hand, 0.008, Part::body}};
  return scene;
}

Scene grid_world(std::span<const float> seen) {
  Scene scene{.low = {-1.4, -1.4}, .high = {1.4, 1.4}};
  for (const double side : {-1.25, 1.25}) {
    scene.strokes.push_back({{side, -1.25}, {side, 1.25}, Part::ground});
    scene.strokes.push_back({{-1.25, side}, {1.25, side}, Part::ground});
  }
  const auto place = [&](std::size_t at) {
    return Place{static_cast<double>(seen[at]), static_cast<double>(seen[at + 1])};
  };
  scene.discs = {{place(2), 0.2, Part::goal}, {place(0), 0.12, Part::body}};
  return scene;
}

Scene cells(std::span<const float> seen) {
  constexpr std::size_t kColumns = 5;
  const std::size_t rows = seen.size() / kColumns;
  Scene scene{.low = {-0.5, -0.5}, .high = {kColumns + 0.5, static_cast<double>(rows) + 0.5}};
  scene.strokes = {{{0, 0}, {kColumns, 0}, Part::ground}};
  for (std::size_t cell = 0; cell < seen.size(); ++cell) {
    if (seen[cell] == 0) continue;
    const std::size_t row = cell / kColumns;
    const Place middle{static_cast<double>(cell % kColumns) + 0.5, static_cast<double>(rows - row) - 0.5};
    const bool is_paddle = row + 1 == rows;
    if (is_paddle) {
      scene.strokes.push_back({{middle.x - 0.5, middle.y}, {middle.x + 0.5, middle.y}, Part::body});
    } else {
      scene.discs.push_back({middle, 0.3, Part::goal});
    }
  }
  return scene;
}

Scene bars(std::span<const float> seen, std::span<const float> largest) {
  const auto rows = static_cast<double>(seen.size());
  Scene scene{.low = {-1.1, -0.5}, .high = {1.1, rows + 0.5}};
  scene.strokes = {{{0, 0}, {0, rows}, Part::ground}};
  for (std::size_t part = 0; part < seen.size(); ++part) {
    const double y = rows - static_cast<double>(part) - 0.5;
    const double length = largest[part] > 0 ? static_cast<double>(seen[part] / largest[part]) : 0;
    scene.strokes.push_back({{0, y}, {length, y}, Part::limb});
  }
  return scene;
}

}  // namespace

Scene scene_of(const std::string& name, std::span<const float> observation, std::span<const float> largest) {
  const auto is = [&](const char* start, std::size_t size) {
    const std::size_t colon = name.find(':');  // "gymnasium:CartPole-v1" looks alike
    return name.compare(colon == std::string::npos ? 0 : colon + 1, std::string(start).size(), start) == 0 &&
           observation.size() == size;
  };
  const auto part = [&](std::size_t at) { return static_cast<double>(observation[at]); };
  if (is("CartPole", 4)) return cart_pole(part(0), part(2));
  if (is("MujocoCartPole", 4)) return cart_pole(part(0), part(1));
  if (is("MujocoReacher", 10)) return reacher(observation);
  if (is("MountainCarContinuous", 2)) return mountain_car(observation, 0.45);
  if (is("MountainCar", 2)) return mountain_car(observation, 0.5);
  if (is("Pendulum", 3)) return pendulum(observation);
  if (is("Acrobot", 6)) return acrobot(observation);
  if (is("GridWorld", 4)) return grid_world(observation);
  if (is("Catch", 50)) return cells(observation);
  return bars(observation, largest);
}

}  // namespace caftan::play

#include "play/scene.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "play/terminal.hpp"

namespace caftan::play::scene_test {
namespace {

const Stroke& limb_of(const Scene& scene) { return *std::ranges::find(scene.strokes, Part::limb, &Stroke::part); }

void expect_near(const Place& place, double x, double y) {
  EXPECT_NEAR(place.x, x, 1e-6);
  EXPECT_NEAR(place.y, y, 1e-6);
}

TEST(SceneOf, ShowsWhereThingsAre) {
  const float quarter = static_cast<float>(std::acos(0.0));
  const Scene fallen = scene_of("CartPole-v1", std::vector<float>{1, 0, quarter, 0}, {});
  expect_near(limb_of(fallen).to, 2, 0.15);  // to the right of the cart, as high as its foot
  const Scene upright = scene_of("Pendulum-v1", std::vector<float>{1, 0, 0}, {});
  expect_near(limb_of(upright).to, 0, 1);
  const Scene hanging = scene_of("Acrobot-v1", std::vector<float>{1, 0, 1, 0, 0, 0}, {});
  expect_near(hanging.discs.back().middle, 0, -2);
  const Scene raised = scene_of("Acrobot-v1", std::vector<float>{1, 0, -1, 0, 0, 0}, {});
  expect_near(raised.discs.back().middle, 0, 0);
  const Scene valley = scene_of("gymnasium:MountainCar-v0", std::vector<float>{-0.5F, 0}, {});
  EXPECT_NEAR(valley.discs.front().middle.x, -0.5, 1e-6);
  const Scene leaning = scene_of("MujocoCartPole", std::vector<float>{1, quarter, 0, 0}, {});
  expect_near(limb_of(leaning).to, 2, 0.15);
  const Scene bent = scene_of("MujocoReacher", std::vector<float>{1, 0, 0, 1, 0.05F, 0.1F, 0, 0, 0.05F, 0}, {});
  expect_near(bent.discs.front().middle, 0.05, 0.1);
  expect_near(bent.discs.back().middle, 0.1, 0.1);  // the forearm points upwards
  const Scene grid = scene_of("GridWorld", std::vector<float>{-1, 0, 1, 1}, {});
  expect_near(grid.discs.front().middle, 1, 1);
  expect_near(grid.discs.back().middle, -1, 0);
  std::vector<float> cells(50, 0.0F);
  cells[2] = 1;
  cells[45] = 1;
  const Scene falling = scene_of("Catch", cells, {});
  expect_near(falling.discs.front().middle, 2.5, 9.5);
  expect_near(falling.strokes.back().to, 1, 0.5);
}

TEST(SceneOf, ShowsBarsOfWhatIsNotKnown) {
  const Scene scene = scene_of("Meadow", std::vector<float>{2, -3}, std::vector<float>{4, 3});
  EXPECT_EQ(scene.strokes[1].to.x, 0.5);
  EXPECT_EQ(scene.strokes[2].to.x, -1);
  const Scene other = scene_of("CartPole-v1", std::vector<float>{0, 0}, std::vector<float>{0, 0});
  EXPECT_EQ(other.strokes.size(), 3U) << "another environment by that name: no cart";
}

TEST(RenderText, MarksPartsAndKeepsProportions) {
  Scene scene{.low = {0, 0}, .high = {10, 10}};
  scene.strokes = {{{0, 0.5}, {9.9, 0.5}, Part::ground}};
  scene.discs = {{{5, 9.5}, 1, Part::body}, {{99, 99}, 1, Part::goal}};
  const auto lines = render_text(scene, 20, 5);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], std::string(10, ' ') + "O" + std::string(9, ' ')) << "10 units are 10 characters of 5 lines";
  EXPECT_EQ(lines[4], std::string(5, ' ') + std::string(10, '_') + std::string(5, ' '));
  EXPECT_EQ(lines[2], std::string(20, ' '));
}

}  // namespace
}  // namespace caftan::play::scene_test

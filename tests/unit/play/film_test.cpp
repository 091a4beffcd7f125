#include "play/film.hpp"

#include <gtest/gtest.h>

namespace caftan::play::film_test {
namespace {

Scene made_scene(double x) {
  Scene scene{.low = {0, 0}, .high = {4, 2}};
  scene.strokes = {{{0, 0}, {x, 1}, Part::limb}};
  scene.discs = {{{x, 1}, 0.5, Part::body}};
  return scene;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(RenderFilm, ShowsEachSceneForItsTime) {
  const auto film = render_film({made_scene(1), made_scene(2), made_scene(3), made_scene(4)}, 2, "a <b>");
  ASSERT_TRUE(film);
  EXPECT_EQ(count(*film, "<g "), 4U);
  EXPECT_EQ(count(*film, "display=\"inline\""), 1U);
  EXPECT_EQ(count(*film, "dur=\"2.000s\""), 4U);
  EXPECT_NE(film->find("values=\"inline;none\" keyTimes=\"0;0.250000\""), std::string::npos);
  EXPECT_NE(film->find("values=\"none;inline;none\" keyTimes=\"0;0.250000;0.500000\""), std::string::npos);
  EXPECT_NE(film->find("values=\"none;inline\" keyTimes=\"0;0.750000\""), std::string::npos);
  EXPECT_NE(film->find("a &lt;b&gt;"), std::string::npos);
  EXPECT_NE(film->find("<circle cx=\"120\" cy=\"148\" r=\"60\""), std::string::npos) << *film;
}

TEST(RenderFilm, OfOneSceneStandsStill) {
  const auto film = render_film({made_scene(1)}, 30, "one");
  ASSERT_TRUE(film);
  EXPECT_EQ(film->find("<animate"), std::string::npos);
}

TEST(RenderFilm, RefusesNoSceneAndNoTime) {
  EXPECT_EQ(render_film({}, 30, "none").error().code(), Errc::bad_arguments);
  EXPECT_FALSE(render_film({made_scene(1)}, 0, "none"));
}

}  // namespace
}  // namespace caftan::play::film_test

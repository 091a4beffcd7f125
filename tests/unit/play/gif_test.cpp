// Films as GIF files, which giflib reads again.
#include "play/gif.hpp"

#include <gif_lib.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "caftan/rl/environments.hpp"
#include "folder.hpp"
#include "play/look.hpp"

namespace caftan::play::gif_test {
namespace {

using Colour = std::array<int, 3>;

/// What a decoder reads of a file.
class Decoded {
 public:
  explicit Decoded(const std::string& path) : gif_(DGifOpenFileName(path.c_str(), nullptr), &close) {
    EXPECT_TRUE(gif_) << path;
    EXPECT_EQ(DGifSlurp(gif_.get()), GIF_OK) << GifErrorString(gif_->Error);
  }
  std::size_t pictures() const { return static_cast<std::size_t>(gif_->ImageCount); }
  int width() const { return gif_->SWidth; }
  int height() const { return gif_->SHeight; }
  Colour at(std::size_t picture, int x, int y) const {
    const auto index = gif_->SavedImages[picture].RasterBits[y * gif_->SWidth + x];
    const GifColorType colour = gif_->SColorMap->Colors[index];
    return {colour.Red, colour.Green, colour.Blue};
  }
  /// Returns how long a picture stays, in hundredths of a second.
  int delay(std::size_t picture) const {
    GraphicsControlBlock control{};
    EXPECT_EQ(DGifSavedExtensionToGCB(gif_.get(), static_cast<int>(picture), &control), GIF_OK);
    return control.DelayTime;
  }
  int sum_of_delays() const {
    int sum = 0;
    for (std::size_t picture = 0; picture < pictures(); ++picture) sum += delay(picture);
    return sum;
  }
  /// Returns the name of the extension in front of the first picture.
  std::string application() const {
    const ExtensionBlock& block = gif_->SavedImages[0].ExtensionBlocks[0];
    return {reinterpret_cast<const char*>(block.Bytes), static_cast<std::size_t>(block.ByteCount)};
  }

 private:
  static void close(GifFileType* gif) { DGifCloseFile(gif, nullptr); }
  std::unique_ptr<GifFileType, void (*)(GifFileType*)> gif_;
};

Colour colour_of(Part part) {
  const Look look = look_of(part);
  return {look.red, look.green, look.blue};
}
constexpr Colour kWhite{255, 255, 255};

Scene made_scene(double x) {
  Scene scene{.low = {0, 0}, .high = {4, 2}};
  scene.strokes = {{{0, 1.5}, {4, 1.5}, Part::ground}};
  scene.discs = {{{x, 0.5}, 0.25, Part::goal}};
  return scene;
}

std::vector<Scene> made_scenes(std::size_t count) {
  std::vector<Scene> scenes;
  for (std::size_t i = 0; i < count; ++i) scenes.push_back(made_scene(static_cast<double>(i + 1)));
  return scenes;
}

TEST(WriteGif, HasEachSceneWithItsColoursAndItsTime) {
  const test::Folder folder;
  ASSERT_TRUE(write_gif(folder / "a.gif", made_scenes(3), 30));
  const Decoded gif(folder / "a.gif");
  ASSERT_EQ(gif.pictures(), 3U);
  EXPECT_EQ(gif.width(), 480);
  EXPECT_EQ(gif.height(), 240);
  EXPECT_EQ(gif.application(), "NETSCAPE2.0") << "the pictures come again";
  for (std::size_t picture = 0; picture < 3; ++picture) {
    const int middle = static_cast<int>(120 * (picture + 1));
    EXPECT_EQ(gif.at(picture, middle, 180), colour_of(Part::goal));
    EXPECT_EQ(gif.at(picture, middle + 29, 180), colour_of(Part::goal));
    EXPECT_EQ(gif.at(picture, middle + 31, 180), kWhite);
    EXPECT_EQ(gif.at(picture, 240, 60), colour_of(Part::ground));
    EXPECT_EQ(gif.at(picture, 240, 62), kWhite) << "2 pixels wide";
  }
  EXPECT_EQ(gif.at(1, 120, 180), kWhite) << "the disc has moved";
  EXPECT_EQ(gif.delay(0), 3);
  EXPECT_EQ(gif.delay(1), 4) << "30 a second: 10 hundredths for three";
  EXPECT_EQ(gif.sum_of_delays(), 10);
}

TEST(WriteGif, LeavesScenesOutThatNoViewerShowsInTime) {
  const test::Folder folder;
  ASSERT_TRUE(write_gif(folder / "a.gif", made_scenes(10), 100));
  const Decoded gif(folder / "a.gif");
  ASSERT_EQ(gif.pictures(), 6U) << "scenes 0, 2, 4, 6, 8 and the last";
  EXPECT_EQ(gif.at(1, 360, 180), colour_of(Part::goal)) << "scene 2";
  for (std::size_t picture = 0; picture < 6; ++picture) EXPECT_EQ(gif.delay(picture), 2);
}

TEST(WriteGif, HasTheSameBytesForTheSameScenes) {
  const test::Folder folder;
  ASSERT_TRUE(write_gif(folder / "a.gif", made_scenes(4), 7));
  ASSERT_TRUE(write_gif(folder / "b.gif", made_scenes(4), 7));
  EXPECT_EQ(folder.read("a.gif"), folder.read("b.gif"));
}

TEST(WriteGif, ShowsEachEnvironment) {
  const test::Folder folder;
  for (const std::string& id : rl::Environments().ids()) {
    const auto environment = rl::make_environment(id);
    if (!environment) continue;  // of MuJoCo, in a build without it
    const auto first = (*environment)->reset(1).value();
    const std::vector<float> seen(first.begin(), first.end());
    const Scene scene = scene_of(id, seen, seen);
    ASSERT_TRUE(write_gif(folder / "a.gif", {scene}, 30)) << id;
    const Decoded gif(folder / "a.gif");
    ASSERT_EQ(gif.pictures(), 1U) << id;
    int coloured = 0;
    for (int y = 0; y < gif.height(); ++y) {
      for (int x = 0; x < gif.width(); ++x) coloured += gif.at(0, x, y) == kWhite ? 0 : 1;
    }
    EXPECT_GT(coloured, 200) << id;
  }
}

TEST(WriteGif, RefusesWhatCannotBeShownOrWritten) {
  const test::Folder folder;
  EXPECT_EQ(write_gif(folder / "a.gif", {}, 30).error().code(), Errc::bad_arguments);
  EXPECT_EQ(write_gif(folder / "a.gif", made_scenes(1), 0).error().code(), Errc::bad_arguments);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.gif"));
  const auto nowhere = write_gif(folder / "none/a.gif", made_scenes(1), 30);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code(), Errc::io_error);
  EXPECT_NE(nowhere.error().text().find("none/a.gif cannot be written: "), std::string::npos) << nowhere.error().text();
  EXPECT_NE(nowhere.error().text().find("No such file or directory"), std::string::npos) << nowhere.error().text();
  for (const std::size_t count : {std::size_t{1}, std::size_t{20}}) {  // seen at the end, or before
    const auto full = write_gif("/dev/full", made_scenes(count), 30);
    ASSERT_FALSE(full) << count;
    EXPECT_EQ(full.error().code(), Errc::io_error);
    EXPECT_NE(full.error().text().find("No space left on device"), std::string::npos) << full.error().text();
  }
  Scene lost = made_scene(1);
  lost.discs.front().middle.x = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(write_gif(folder / "a.gif", {lost}, 30)) << "a place that is no number is not drawn";
}

}  // namespace
}  // namespace caftan::play::gif_test

// The data sets that the program makes are the same everywhere, and what is derived from them is right.
#include "image_data/data_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "image_data/made_images.hpp"
#include "image_files.hpp"

namespace caftan::image_data::data_set_test {
namespace {

using ::testing::HasSubstr;

TEST(DataSet, OfShapesHasTenClassesInEqualNumbers) {
  const DataSet data = read_data({.name = DataConfig::Name::shapes}).value();
  EXPECT_EQ(data.train.size(), 2000);
  EXPECT_EQ(data.test.size(), 500);
  EXPECT_EQ(data.classes, 10);
  std::map<int, int> count;
  for (const std::uint8_t label : data.train.labels) ++count[label];
  EXPECT_EQ(count.size(), 10U);
  EXPECT_TRUE(std::ranges::all_of(count, [](const auto& entry) { return entry.second == 200; }));
  EXPECT_NE(draw_shapes(10, 0).pixels, draw_shapes(10, 1).pixels) << "a test with images of the training is none";
}

TEST(DataSet, ThatIsMadeIsTheSameOnEveryMachine) {
  EXPECT_EQ(read_data({.name = DataConfig::Name::shapes}).value().checksum, 2766481971U);
  EXPECT_EQ(read_data({.name = DataConfig::Name::noise}).value().checksum, 2213596302U);
}

TEST(DataSet, OfNoiseHasTheShapeOfTheTutorial) {
  const DataSet data = read_data({.name = DataConfig::Name::noise}).value();
  EXPECT_EQ(data.train.shape, (ImageShape{.channels = 3, .height = 64, .width = 64}));
  EXPECT_EQ(data.train.pixels.size(), static_cast<std::size_t>(data.train.size() * 3 * 64 * 64));
  EXPECT_EQ(data.classes, 30);
  EXPECT_EQ(*std::ranges::max_element(data.train.labels), 29);
  EXPECT_NEAR(data.mean, 0.5, 0.001);
  EXPECT_NEAR(data.deviation, 0.289, 0.001);
}

TEST(DataSet, MeanAndDeviationAreThoseOfTheTrainingImages) {
  const test::Folder folder;
  DataConfig config{.path = test::write_fashion(folder, 2, 5)};
  const DataSet data = read_data(config).value();
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 2; ++i) {
    for (int p = 0; p < 784; ++p) {
      const double pixel = (7 * i + p) % 251 / 255.0;
      sum += pixel;
      squares += pixel * pixel;
    }
  }
  const double mean = sum / 1568;
  EXPECT_NEAR(data.mean, mean, 1e-9);
  EXPECT_NEAR(data.deviation * data.deviation, squares / 1568 - mean * mean, 1e-9);
  EXPECT_THAT(data.source, HasSubstr("Fashion-MNIST of " + folder.path().string()));
}

TEST(DataSet, ALimitKeepsTheFirstImages) {
  const DataSet whole = read_data({.name = DataConfig::Name::shapes}).value();
  const DataSet part = read_data({.name = DataConfig::Name::shapes, .limit = 30}).value();
  EXPECT_EQ(part.train.size(), 30);
  EXPECT_TRUE(std::ranges::equal(part.train.pixels, std::span(whole.train.pixels).first(part.train.pixels.size())));
  EXPECT_EQ(part.test.size(), 500);
  EXPECT_NE(part.checksum, whole.checksum);
  EXPECT_EQ(read_data({.name = DataConfig::Name::shapes, .limit = 5000}).value().train.size(), 2000);
}

TEST(DataSet, APathForImagesThatTheProgramMakesIsRefused) {
  const auto refused = read_data({.name = DataConfig::Name::noise, .path = "/x"});
  EXPECT_EQ(refused.error().code(), Errc::invalid_config);
}

}  // namespace
}  // namespace caftan::image_data::data_set_test

// Images become tensors of mean 0 and deviation 1, and accuracy counts each test image once.
#include "image_training/image_tensors.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/one_hot.h>
#include <gtest/gtest.h>

#include <numeric>

namespace caftan::image_training::image_tensors_test {
namespace {

image_data::DataSet shapes() { return image_data::read_data({.name = image_data::DataConfig::Name::shapes}).value(); }

TEST(ImageTensors, AreNormalisedOverTheTrainingImages) {
  const image_data::DataSet data = shapes();
  std::vector<std::int64_t> all(2000);
  std::iota(all.begin(), all.end(), 0);
  const LabelledImages taken = take_images(data, data.train, all);
  EXPECT_EQ(taken.images.sizes(), at::IntArrayRef({2000, 1, 28, 28}));
  EXPECT_NEAR(taken.images.mean().item<double>(), 0, 1e-4);
  EXPECT_NEAR(taken.images.std().item<double>(), 1, 1e-4);
}

TEST(ImageTensors, HaveThePixelsAndLabelsThatWereAskedFor) {
  const image_data::DataSet data = shapes();
  const LabelledImages taken = take_images(data, data.test, std::vector<std::int64_t>{7, 0});
  EXPECT_EQ(taken.labels[0].item<std::int64_t>(), 7);
  EXPECT_EQ(taken.labels[1].item<std::int64_t>(), 0);
  const double pixel = data.test.pixels[7 * 784 + 100] / 255.0;
  EXPECT_NEAR(taken.images[0][0][3][16].item<double>(), (pixel - data.mean) / data.deviation, 1e-5);
}

TEST(Accuracy, CountsEachTestImageOnceOverAllParts) {
  const image_data::DataSet data = shapes();
  std::int64_t asked = 0;
  // Takes every image for a disc: a tenth is right.
  const Classify discs = [&asked](const at::Tensor& images) -> Result<at::Tensor> {
    asked += images.size(0);
    return at::one_hot(at::arange(1).expand({images.size(0)}), 10);
  };
  const Accuracy whole = measure_accuracy(data, {}, discs).value();
  EXPECT_EQ(whole.images, 500);
  EXPECT_EQ(whole.right, 50);
  EXPECT_DOUBLE_EQ(whole.share(), 0.1);
  asked = 0;
  Accuracy sum;
  for (std::uint32_t part = 0; part < 7; ++part) {
    const Accuracy accuracy = measure_accuracy(data, {.part = part, .parts = 7}, discs).value();
    sum.right += accuracy.right;
    sum.images += accuracy.images;
  }
  EXPECT_EQ(asked, 500);
  EXPECT_EQ(sum.images, 500);
  EXPECT_EQ(sum.right, 50);
  EXPECT_EQ(Accuracy().share(), 0);
}

TEST(Accuracy, AnErrorOfTheModelIsThatOfTheMeasurement) {
  const auto failed = measure_accuracy(
      shapes(), {}, [](const at::Tensor&) -> Result<at::Tensor> { return Error(Errc::peer_down, "gone"); });
  EXPECT_EQ(failed.error().code(), Errc::peer_down);
}

}  // namespace
}  // namespace caftan::image_training::image_tensors_test

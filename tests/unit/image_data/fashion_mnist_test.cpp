// Four files make a data set; what is missing, cut off or does not fit is named.
#include "image_data/fashion_mnist.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_data/data_set.hpp"
#include "image_files.hpp"

namespace caftan::image_data::fashion_mnist_test {
namespace {

using ::testing::HasSubstr;

class FashionMnist : public ::testing::Test {
 protected:
  FashionMnist() { test::write_fashion(folder_, 25, 12); }
  std::string error(Errc code) const {
    const auto read = read_fashion_mnist(folder_.path());
    if (read) return "no error";
    EXPECT_EQ(read.error().code(), code);
    return read.error().text();
  }
  test::Folder folder_;
};

TEST_F(FashionMnist, HasImagesAndLabels) {
  const TrainAndTest read = read_fashion_mnist(folder_.path()).value();
  EXPECT_EQ(read.train.size(), 25);
  EXPECT_EQ(read.test.size(), 12);
  EXPECT_EQ(read.train.shape, (ImageShape{.channels = 1, .height = 28, .width = 28}));
  EXPECT_EQ(read.train.pixels.size(), 25U * 784);
  EXPECT_EQ(read.train.pixels[3 * 784 + 5], (7 * 3 + 5) % 251);
  EXPECT_EQ(read.train.labels[13], 3);
}

TEST_F(FashionMnist, FilesMayBePlain) {
  std::filesystem::remove(folder_.path() / "t10k-labels-idx1-ubyte.gz");
  folder_.write("t10k-labels-idx1-ubyte", test::idx_labels(12));
  EXPECT_EQ(read_fashion_mnist(folder_.path()).value().test.size(), 12);
}

TEST_F(FashionMnist, AMissingFileIsNamed) {
  std::filesystem::remove(folder_.path() / "t10k-images-idx3-ubyte.gz");
  EXPECT_THAT(error(Errc::io_error), HasSubstr("t10k-images-idx3-ubyte.gz: there is no such file"));
}

TEST_F(FashionMnist, ACutFileIsNamed) {
  std::filesystem::resize_file(folder_.path() / "train-images-idx3-ubyte.gz", 100);
  EXPECT_THAT(error(Errc::malformed_payload), HasSubstr("train-images-idx3-ubyte.gz: it is cut off"));
}

TEST_F(FashionMnist, FilesThatDoNotFitAreRefused) {
  folder_.write("train-labels-idx1-ubyte.gz", test::gzipped(test::idx_labels(24)));
  EXPECT_THAT(error(Errc::malformed_payload), HasSubstr("24 labels, train-images-idx3-ubyte.gz has 25 images"));
  std::string labels = test::idx_labels(25);
  labels.back() = '\x0a';
  folder_.write("train-labels-idx1-ubyte.gz", test::gzipped(labels));
  EXPECT_THAT(error(Errc::malformed_payload), HasSubstr("label 10, there are ten classes"));
  folder_.write("train-images-idx3-ubyte.gz", test::gzipped(test::idx_images(25, 32)));
  EXPECT_THAT(error(Errc::malformed_payload), HasSubstr("32x32 pixels, not 28x28"));
}

TEST_F(FashionMnist, WhatIsMissingIsReportedWithTheKeyAndTheWayOut) {
  DataConfig config{.path = folder_.path()};
  EXPECT_TRUE(find_missing(config, "data").empty());
  std::filesystem::resize_file(folder_.path() / "train-labels-idx1-ubyte.gz", 20);
  const auto cut = find_missing(config, "data");
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].keys.front(), "data.path");
  EXPECT_THAT(cut[0].text, HasSubstr("train-labels-idx1-ubyte.gz: it is cut off"));
  config.name = DataConfig::Name::shapes;
  const auto other = find_missing(config, "data");
  ASSERT_EQ(other.size(), 1U);
  EXPECT_EQ(other[0].kind, app::MissingRequirement::Kind::file);
  config.path.reset();
  EXPECT_TRUE(find_missing(config, "data").empty());
}

}  // namespace
}  // namespace caftan::image_data::fashion_mnist_test

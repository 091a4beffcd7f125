/// `DataSet`: the images that a trainer's config names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"
#include "image_data/config.hpp"
#include "image_data/image_set.hpp"

namespace caftan::image_data {

struct DataSet {
  std::string source{};      ///< for people: "Fashion-MNIST of /usr/share/datasets/fashion-mnist"
  std::int64_t classes = 0;  ///< labels are 0..classes-1
  ImageSet train{};
  ImageSet test{};
  double mean = 0;             ///< of the pixels of `train`, 0..1
  double deviation = 1;        ///< standard deviation of them
  std::uint32_t checksum = 0;  ///< CRC-32C of all pixels and labels: two hosts may have to have the same data
};

/// Reads or makes the images.
/// Errors: those of read_fashion_mnist; invalid_config (a path for images that the program makes).
Result<DataSet> read_data(const DataConfig& config);

/// Returns how many training images a config can have at most, without reading any.
std::int64_t most_images(const DataConfig& config);

/// Returns why the images cannot be had here, with the way out: for `requirements` of a role. Reads all files.
/// @param table  of the role's config that has the keys of DataConfig: "data"
std::vector<app::MissingRequirement> find_missing(const DataConfig& config, const std::string& table);

}  // namespace caftan::image_data

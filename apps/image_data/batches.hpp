/// `Batches`: which images a trainer learns from in each of its steps, as a function of the step alone: a resumed
/// training needs nothing but the number of its next step.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/base/result.hpp"
#include "image_data/config.hpp"

namespace caftan::image_data {

struct BatchesOptions {
  std::int64_t images = 0;     ///< of the training data, at least 1
  std::int64_t batch = 0;      ///< images of a step, at least 1
  std::uint32_t trainer = 0;   ///< its number, below `trainers`
  std::uint32_t trainers = 1;  ///< that share the data
  Partition partition = Partition::split;
  std::uint64_t seed = 0;  ///< the same for all trainers, or their parts overlap
};

/// Returns why a trainer has no batch, before any image is read: invalid_config (fewer images than a batch has; the
/// text names the ways out).
Result<void> check_batch(const BatchesOptions& options);

/// With Partition::split the images are dealt in a random order: parts differ by one image at most in size, have no
/// image in common, and together are all. Each epoch has an order of its own; images that do not fill a batch are left
/// out of it. Threads: one at a time.
class Batches {
 public:
  /// Errors: bad_arguments (an option that is out of its range); those of check_batch.
  static Result<Batches> make(const BatchesOptions& options);

  /// Returns the steps of an epoch, at least 1.
  std::int64_t per_epoch() const noexcept { return size() / options_.batch; }
  /// Returns how many images this trainer has.
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(own_.size()); }
  /// Returns the images of a step. @param step  from 0
  std::vector<std::int64_t> at(std::int64_t step);

 private:
  explicit Batches(const BatchesOptions& options) : options_(options) {}

  BatchesOptions options_;
  std::vector<std::int64_t> own_;    // this trainer's images
  std::vector<std::int64_t> order_;  // the same in the order of `epoch_`
  std::int64_t epoch_ = -1;
};

}  // namespace caftan::image_data

#include "image_data/batches.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "caftan/base/keyed_random.hpp"

namespace caftan::image_data {
namespace {

// RandomKey::context: how the images are dealt, and from here on the order of each epoch.
constexpr std::uint64_t kDeal = 0;
constexpr std::uint64_t kFirstEpoch = 1;

/// Brings the numbers into a random order (Fisher and Yates), a function of the key.
void shuffle(std::vector<std::int64_t>& numbers, const base::RandomKey& key) {
  for (std::size_t left = numbers.size(); left > 1; --left) {
    const auto block = base::random_block(key, left);
    const std::uint64_t random = (std::uint64_t{block[0]} << 32U) | block[1];
    std::swap(numbers[left - 1], numbers[random % left]);  // below 2^-30 from uniform
  }
}

}  // namespace

Result<void> check_batch(const BatchesOptions& options) {
  const bool split = options.partition == Partition::split;
  std::int64_t images = options.images;
  if (split) images = images > options.trainer ? (images - options.trainer - 1) / options.trainers + 1 : 0;
  if (images >= options.batch) return {};
  return Error(Errc::invalid_config, "a trainer has " + std::to_string(images) + " images, fewer than a batch of " +
                                         std::to_string(options.batch) + "; lower batch, raise data.limit" +
                                         (split && options.trainers > 1 ? ", or take data.partition = \"full\"" : ""));
}

Result<Batches> Batches::make(const BatchesOptions& options) {
  if (options.images < 1 || options.batch < 1 || options.trainer >= options.trainers) {
    return Error(Errc::bad_arguments, "there are no batches of " + std::to_string(options.batch) + " from " +
                                          std::to_string(options.images) + " images for trainer " +
                                          std::to_string(options.trainer) + " of " + std::to_string(options.trainers));
  }
  if (const auto enough = check_batch(options); !enough) return enough.error();
  Batches batches(options);
  std::vector<std::int64_t> all(static_cast<std::size_t>(options.images));
  std::iota(all.begin(), all.end(), 0);
  if (options.partition == Partition::full) {
    batches.own_ = std::move(all);
  } else {
    shuffle(all, {.seed = options.seed, .context = kDeal});
    for (std::size_t i = options.trainer; i < all.size(); i += options.trainers) batches.own_.push_back(all[i]);
  }
  return batches;
}

std::vector<std::int64_t> Batches::at(std::int64_t step) {
  const std::int64_t epoch = step / per_epoch();
  if (epoch != epoch_) {
    order_ = own_;
    shuffle(
        order_,
        {.seed = options_.seed, .context = kFirstEpoch + static_cast<std::uint64_t>(epoch), .call = options_.trainer});
    epoch_ = epoch;
  }
  const auto first = order_.begin() + (step % per_epoch()) * options_.batch;
  return {first, first + options_.batch};
}

}  // namespace caftan::image_data

#include "ps_bench/data.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "caftan/base/keyed_random.hpp"

namespace caftan::ps_bench {
namespace {

/// What a stream of random numbers is for.
enum Purpose : std::uint64_t { kValues, kInputs, kTargets };

/// Returns a number below `end`, below 2^-32 from uniform.
std::int64_t draw(std::uint64_t seed, Purpose purpose, std::int64_t index, std::int64_t end) {
  const auto block = base::random_block({.seed = seed, .context = purpose}, static_cast<std::uint64_t>(index));
  const std::uint64_t bits = (std::uint64_t{block[0]} << 32U) | block[1];
  return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(end));
}

}  // namespace

std::int64_t used_values(const DataConfig& config) { return config.max_value * (100 - config.sparsity) / 100; }

Samples make_samples(const DataConfig& config, std::uint64_t seed) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(config.max_value));
  std::iota(values.begin(), values.end(), 0);
  for (std::int64_t left = config.max_value; left > 1; --left) {
    std::swap(values[static_cast<std::size_t>(left - 1)],
              values[static_cast<std::size_t>(draw(seed, kValues, left, left))]);
  }
  const std::int64_t used = used_values(config);
  Samples samples{.inputs = at::empty({config.samples, config.length}, at::kLong),
                  .targets = at::empty({config.samples}, at::kLong)};
  std::int64_t* input = samples.inputs.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < samples.inputs.numel(); ++i) {
    input[i] = values[static_cast<std::size_t>(draw(seed, kInputs, i, used))];
  }
  std::int64_t* target = samples.targets.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < config.samples; ++i) target[i] = draw(seed, kTargets, i, config.max_value);
  return samples;
}

std::int64_t batches_of_each(std::int64_t samples, std::int64_t batch, std::uint32_t trainers) {
  return (samples + batch - 1) / batch / static_cast<std::int64_t>(trainers);
}

std::vector<Samples> deal(const Samples& samples, std::int64_t batch, std::uint32_t trainer, std::uint32_t trainers) {
  const std::int64_t all = samples.targets.size(0);
  std::vector<Samples> batches;
  for (std::int64_t i = 0; i < batches_of_each(all, batch, trainers); ++i) {
    const std::int64_t first = (i * trainers + trainer) * batch;
    const std::int64_t size = std::min(batch, all - first);
    batches.push_back({samples.inputs.narrow(0, first, size), samples.targets.narrow(0, first, size)});
  }
  return batches;
}

}  // namespace caftan::ps_bench

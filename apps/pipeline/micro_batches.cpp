#include "pipeline/micro_batches.hpp"

#include <algorithm>
#include <string>

namespace caftan::pipeline {

Result<std::vector<Rows>> cut_batch(const MasterConfig& config) {
  if (config.micro_batch_size && config.num_micro_batches) {
    return Error(Errc::invalid_config,
                 "micro_batch_size and num_micro_batches say the same thing twice; leave one of them out");
  }
  const std::string of_batch = ", the batch has " + std::to_string(config.batch) + " images; lower it, or raise batch";
  std::vector<Rows> rows;
  if (config.micro_batch_size) {
    const std::int64_t size = *config.micro_batch_size;
    if (size > config.batch) {
      return Error(Errc::invalid_config, "micro_batch_size = " + std::to_string(size) + of_batch);
    }
    for (std::int64_t first = 0; first < config.batch; first += size) {
      rows.push_back({first, std::min(first + size, config.batch)});
    }
    return rows;
  }
  const std::int64_t count = config.num_micro_batches.value_or(1);
  if (count > config.batch) {
    return Error(Errc::invalid_config, "num_micro_batches = " + std::to_string(count) + of_batch);
  }
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t size = config.batch / count + (i < config.batch % count ? 1 : 0);
    rows.push_back({first, first + size});
    first += size;
  }
  return rows;
}

}  // namespace caftan::pipeline

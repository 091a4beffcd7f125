/// `MicroBatches`: how a batch is cut into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/base/result.hpp"
#include "pipeline/config.hpp"

namespace caftan::pipeline {

/// Rows first..end-1 of a batch.
struct Rows {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t size() const noexcept { return end - first; }
  bool operator==(const Rows&) const = default;
};

/// Returns the micro-batches of a batch in their order: all rows, each once, none empty. Of `num_micro_batches` the
/// first ones have a row more where the batch is no multiple; of `micro_batch_size` the last one has what is left.
/// Errors: invalid_config (both keys are given; more pieces than images; a micro-batch that is larger than the batch).
Result<std::vector<Rows>> cut_batch(const MasterConfig& config);

}  // namespace caftan::pipeline

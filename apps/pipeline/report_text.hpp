/// The lines that a pipeline reports. Scripts read them: tests hold their form.
#pragma once

#include <cstdint>
#include <string>

namespace caftan::pipeline {

/// Where a training stands.
struct Standing {
  std::int64_t batch = 0;
  std::int64_t batches = 0;
  double loss = 0;         ///< nats
  double s_per_batch = 0;  ///< mean of this run
  double bubble = 0;       ///< mean idle share of the stages, 0..1
};

/// Returns "batch 12 of 60  loss 1.234  0.412 s/batch, bubble 23 %".
std::string batch_line(const Standing& standing);

/// Returns "trained: 60 batches, loss 0.321, 0.412 s/batch, 24.7 s".
std::string trained_line(const Standing& standing, double seconds);

/// What one stage did in a run.
struct StageSummary {
  std::string name{};            ///< "stage-0"
  std::string units{};           ///< "conv1..layer2.1"
  double bubble = 0;             ///< mean idle share, 0..1
  std::uint32_t most_held = 0;   ///< micro-batches
  std::int64_t memory = 0;       ///< bytes, when its stage was made
  std::int64_t peak_memory = 0;  ///< bytes; 0 = the kernel does not say
  bool is_apart = true;          ///< no other worker of the pipeline is in its process
};

/// Returns "stage-0 (conv1..layer2.1): bubble 31 %, held at most 2 micro-batches, peak memory 212 MB (85 MB more than
/// before the first batch)". Of a process with several workers the memory is that of all.
std::string stage_line(const StageSummary& summary);

}  // namespace caftan::pipeline

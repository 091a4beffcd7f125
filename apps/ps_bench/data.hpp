/// The benchmark's samples: random numbers that stand for nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "ps_bench/config.hpp"

namespace caftan::ps_bench {

struct Samples {
  at::Tensor inputs{};   ///< [n, length], int64
  at::Tensor targets{};  ///< [n], int64

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& inputs& targets;
  }
};

/// Returns how many of the values below max_value samples may have.
std::int64_t used_values(const DataConfig& config);

/// Makes the samples: each number is one of `used_values` values that are drawn first, each target one below max_value.
/// Precondition: used_values(config) > 0.
/// Source: DummyData of PyTorch's benchmarks/distributed/rpc/parameter_server.
Samples make_samples(const DataConfig& config, std::uint64_t seed);

/// Returns how many batches each trainer has: the same number, so that no round waits for a trainer that is done.
std::int64_t batches_of_each(std::int64_t samples, std::int64_t batch, std::uint32_t trainers);

/// Returns the batches of one trainer: those of the numbers trainer, trainer + trainers, and so on.
std::vector<Samples> deal(const Samples& samples, std::int64_t batch, std::uint32_t trainer, std::uint32_t trainers);

}  // namespace caftan::ps_bench

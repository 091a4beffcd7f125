/// The parameters of the benchmark's model by their sizes alone, and the buckets in which their gradients travel: what
/// master, server and trainer agree on without making a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps_bench/config.hpp"

namespace caftan::ps_bench {

struct ParameterShape {
  std::vector<std::int64_t> sizes{};
  bool sparse = false;  ///< its gradient
  bool operator==(const ParameterShape&) const = default;
};

/// Returns the parameters of the model: the embedding table [num_embeddings, embedding_dim], then weight
/// [embedding_dim, embedding_dim] and bias [embedding_dim] of each dense layer. All are float32.
std::vector<ParameterShape> shapes_of(const ModelConfig& model);

/// Returns the number of elements. Threads: any.
std::int64_t count_elements(const ParameterShape& shape);

/// Numbers of parameters whose gradients travel together.
using Bucket = std::vector<std::size_t>;

/// Deals the parameters to buckets, the last parameter first, as its gradient is there first in a backward pass. A
/// bucket of dense gradients has `bytes` at most, or a single larger one; a sparse gradient has its own bucket.
/// Source: the buckets of torch.nn.parallel.DistributedDataParallel, without its smaller first one.
std::vector<Bucket> make_buckets(const std::vector<ParameterShape>& shapes, std::int64_t bytes);

/// Some trainers in a row.
struct TrainerRange {
  std::uint32_t first = 0;
  std::uint32_t count = 1;

  bool contains(std::uint32_t trainer) const noexcept { return trainer >= first && trainer - first < count; }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& first& count;
  }
};

/// Returns the trainers of a server. Precondition: with groups, `trainers` is a multiple of `servers`.
TrainerRange trainers_of(Layout layout, std::uint32_t server, std::uint32_t servers, std::uint32_t trainers);
/// Returns the server that takes the gradients of a trainer for a bucket. Precondition: as trainers_of.
std::uint32_t server_of(Layout layout, std::uint32_t trainer, std::size_t bucket, std::uint32_t servers,
                        std::uint32_t trainers);

}  // namespace caftan::ps_bench

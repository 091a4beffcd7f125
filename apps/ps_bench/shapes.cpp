#include "ps_bench/shapes.hpp"

#include <functional>
#include <numeric>

namespace caftan::ps_bench {
namespace {

constexpr std::int64_t kBytesOfFloat = 4;

}  // namespace

std::vector<ParameterShape> shapes_of(const ModelConfig& model) {
  std::vector<ParameterShape> shapes{{{model.num_embeddings, model.embedding_dim}, model.sparse}};
  for (std::int64_t layer = 0; layer < model.dense_layers; ++layer) {
    shapes.push_back({.sizes = {model.embedding_dim, model.embedding_dim}});
    shapes.push_back({.sizes = {model.embedding_dim}});
  }
  return shapes;
}

std::int64_t count_elements(const ParameterShape& shape) {
  return std::accumulate(shape.sizes.begin(), shape.sizes.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
}

std::vector<Bucket> make_buckets(const std::vector<ParameterShape>& shapes, std::int64_t bytes) {
  std::vector<Bucket> buckets;
  std::int64_t room = 0;  // of the last bucket
  for (std::size_t number = shapes.size(); number-- > 0;) {
    const std::int64_t size = count_elements(shapes[number]) * kBytesOfFloat;
    const bool alone = shapes[number].sparse;
    if (alone || size > room) {
      buckets.emplace_back();
      room = bytes;
    }
    buckets.back().push_back(number);
    room = alone ? 0 : room - size;
  }
  return buckets;
}

TrainerRange trainers_of(Layout layout, std::uint32_t server, std::uint32_t servers, std::uint32_t trainers) {
  if (layout == Layout::shards) return {.first = 0, .count = trainers};
  const std::uint32_t each = trainers / servers;
  return {.first = server * each, .count = each};
}

std::uint32_t server_of(Layout layout, std::uint32_t trainer, std::size_t bucket, std::uint32_t servers,
                        std::uint32_t trainers) {
  if (layout == Layout::shards) return static_cast<std::uint32_t>(bucket % servers);
  return trainer / (trainers / servers);
}

}  // namespace caftan::ps_bench

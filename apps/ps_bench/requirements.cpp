#include "ps_bench/requirements.hpp"

#include <algorithm>
#include <string>

#include "ps_bench/data.hpp"
#include "ps_bench/report.hpp"
#include "ps_bench/shapes.hpp"

namespace caftan::ps_bench {
namespace {

using Kind = app::MissingRequirement::Kind;
using Missing = std::vector<app::MissingRequirement>;

constexpr std::int64_t kMostNumbers = 1 << 26;     // in all samples
constexpr std::int64_t kMostElements = 1LL << 30;  // in all parameters

void check_layout(const MasterConfig& config, std::uint32_t servers, std::uint32_t trainers, Missing& missing) {
  if (config.layout == Layout::groups && trainers % servers != 0) {
    missing.push_back({.keys = {"layout"},
                       .text = "groups: " + count_of(trainers, "trainer") + " cannot be dealt to " +
                               count_of(servers, "server") +
                               " in groups of one size; change a number of replicas, or take layout = \"shards\"",
                       .kind = Kind::file});
  }
  if (config.layout != Layout::shards) return;
  const std::size_t buckets = make_buckets(shapes_of(config.model), config.bucket.bytes).size();
  if (buckets < servers) {
    missing.push_back({.keys = {"bucket", "layout"},
                       .text = "shards: " + count_of(servers, "server") + " for " +
                               count_of(static_cast<std::int64_t>(buckets), "bucket") +
                               ", so that a server has none; take a smaller bucket or fewer servers",
                       .kind = Kind::file});
  }
}

void check_data(const MasterConfig& config, std::uint32_t trainers, Missing& missing) {
  const DataConfig& data = config.data;
  const std::int64_t most = std::min(config.model.num_embeddings, config.model.embedding_dim);
  if (data.max_value > most) {
    missing.push_back({.keys = {"data.max_value", "model.num_embeddings", "model.embedding_dim"},
                       .text = "max_value is " + std::to_string(data.max_value) + ", but the model has " +
                               std::to_string(config.model.num_embeddings) + " rows for numbers and " +
                               std::to_string(config.model.embedding_dim) +
                               " outputs for targets: max_value is at most the smaller",
                       .kind = Kind::file});
  }
  if (used_values(data) < 1) {
    missing.push_back({.keys = {"data.sparsity", "data.max_value"},
                       .text = "a sparsity of " + std::to_string(data.sparsity) + " per cent leaves none of " +
                               count_of(data.max_value, "value"),
                       .kind = Kind::file});
  }
  if (data.samples * data.length > kMostNumbers) {
    missing.push_back({.keys = {"data.samples", "data.length"},
                       .text = count_of(data.samples, "sample") + " of " + std::to_string(data.length) +
                               " numbers are more than " + std::to_string(kMostNumbers) + " numbers",
                       .kind = Kind::file});
  }
  const std::int64_t batches = (data.samples + config.batch - 1) / config.batch;
  const std::int64_t each = batches_of_each(data.samples, config.batch, trainers);
  if (each == 0) {
    missing.push_back({.keys = {"batch", "data.samples"},
                       .text = count_of(data.samples, "sample") + " are " + std::to_string(batches) + " batches of " +
                               std::to_string(config.batch) + " for " + count_of(trainers, "trainer") +
                               ": each needs one at least",
                       .kind = Kind::file});
  } else if (batches % trainers != 0) {
    missing.push_back({.keys = {"data.samples", "batch"},
                       .text = "of " + std::to_string(batches) + " batches " + std::to_string(batches % trainers) +
                               " are left out, since each of " + std::to_string(trainers) + " trainers has " +
                               std::to_string(each),
                       .kind = Kind::doubt});
  }
}

void check_model(const ModelConfig& model, Missing& missing) {
  std::int64_t elements = 0;
  for (const ParameterShape& shape : shapes_of(model)) elements += count_elements(shape);
  if (elements <= kMostElements) return;
  missing.push_back({.keys = {"model.embedding_dim", "model.num_embeddings", "model.dense_layers"},
                     .text = "a model of " + std::to_string(elements) + " parameters; at most " +
                             std::to_string(kMostElements) + " are possible",
                     .kind = Kind::file});
}

}  // namespace

Missing find_missing(const MasterConfig& config, std::uint32_t servers, std::uint32_t trainers) {
  Missing missing;
  check_layout(config, servers, trainers, missing);
  check_data(config, trainers, missing);
  check_model(config.model, missing);
  return missing;
}

}  // namespace caftan::ps_bench

#include "pipeline/requirements.hpp"

#include <algorithm>
#include <string>

#include "caftan/base/settings_io.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"
#include "pipeline/cuts.hpp"
#include "pipeline/micro_batches.hpp"

namespace caftan::pipeline {
namespace {

using Kind = app::MissingRequirement::Kind;

/// Appends what is wrong with the file on every machine.
void check_file(const MasterConfig& config, std::size_t stages, std::vector<app::MissingRequirement>& missing) {
  const auto refuse = [&missing](std::vector<std::string> keys, const Error& error) {
    missing.push_back({.keys = std::move(keys), .text = error.text(), .kind = Kind::file});
  };
  const auto bad = std::ranges::find_if(config.mlp.hidden, [](std::int64_t size) { return size < 1 || size > 65536; });
  if (bad != config.mlp.hidden.end()) {
    refuse({"mlp.hidden", "mlp"},
           Error(Errc::invalid_config, "mlp.hidden: a layer of " + std::to_string(*bad) + " units; each has 1..65536"));
  }
  if (const auto cut = cut_model(config); !cut) {
    refuse({"cuts", "model", "mlp.hidden"}, cut.error());
  } else if (const auto enough = check_workers(config, stages); !enough) {
    refuse({"cuts"}, enough.error());
  }
  if (const auto cut = cut_batch(config); !cut) refuse({"micro_batch_size", "num_micro_batches", "batch"}, cut.error());
  const auto images = image_data::check_batch({.images = image_data::most_images(config.data), .batch = config.batch});
  if (!images) refuse({"batch", "data.limit", "data"}, images.error());
  if (config.goal && config.test_images == 0) {
    refuse({"goal", "test_images"},
           Error(Errc::invalid_config, "goal is an accuracy, and test_images = 0 measures none; raise test_images"));
  }
}

}  // namespace

Result<void> check_workers(const MasterConfig& config, std::size_t stages) {
  const std::size_t wanted = config.cuts.size() + 1;
  if (stages == wanted) return {};
  return Error(Errc::invalid_config, "cuts makes " + std::to_string(wanted) + " stages, and there are " +
                                         std::to_string(stages) +
                                         " workers for them: each stage is on a worker of its own; set replicas of the "
                                         "role of the stages to " +
                                         std::to_string(wanted));
}

std::vector<app::MissingRequirement> find_missing(const MasterConfig& config, std::size_t stages, std::uint64_t seed) {
  std::vector<app::MissingRequirement> missing = image_data::find_missing(config.data, "data");
  check_file(config, stages, missing);
  if (!config.resume) return missing;
  const auto step = checkpoints::check_checkpoint(*config.resume, facts_of(config, seed), config.batches, "batches");
  if (!step) missing.push_back({.keys = {"resume", "batches"}, .text = step.error().text()});
  return missing;
}

checkpoints::Facts facts_of(const MasterConfig& config, std::uint64_t seed) {
  checkpoints::Facts facts{{"model", name_of(config.model)},
                           {"data.name", image_training::name_of(config.data.name)},
                           {"batch", std::to_string(config.batch)},
                           {"image_size", config.image_size ? std::to_string(*config.image_size) : "as they are"},
                           {"optimizer.name", image_training::name_of(config.optimizer.name)},
                           {"the seed of the parameters", std::to_string(seed)}};
  if (config.model != ModelName::mlp) return facts;
  std::string hidden;
  for (const std::int64_t size : config.mlp.hidden) hidden += (hidden.empty() ? "" : ", ") + std::to_string(size);
  facts.emplace_back("mlp.hidden", "[" + hidden + "]");
  facts.emplace_back("mlp.dropout", format_number(config.mlp.dropout));
  return facts;
}

}  // namespace caftan::pipeline

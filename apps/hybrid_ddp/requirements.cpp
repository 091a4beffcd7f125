#include "hybrid_ddp/requirements.hpp"

#include <algorithm>

#include "caftan/collectives/collectives.hpp"

namespace caftan::hybrid_ddp {

using Kind = app::MissingRequirement::Kind;

std::string name_of(BackendName backend) { return backend == BackendName::gloo ? "gloo" : "caftan"; }

checkpoints::Facts facts_of(const MasterConfig& config, const TrainerFacts& trainer, std::size_t trainers,
                            std::uint64_t seed) {
  return {{"emb", std::to_string(config.emb)},
          {"optimizer.name", config.optimizer.name == OptimizerConfig::Name::sgd ? "sgd" : "adagrad"},
          {"trainers", std::to_string(trainers)},
          {"words", std::to_string(trainer.words)},
          {"per_class", std::to_string(trainer.per_class)},
          {"batch", std::to_string(trainer.batch)},
          {"the seed of the parameters", std::to_string(seed)}};
}

std::vector<app::MissingRequirement> find_missing(const MasterConfig& config,
                                                  const std::vector<const TrainerConfig*>& trainers,
                                                  std::uint64_t seed) {
  std::vector<app::MissingRequirement> missing;
  if (config.backend == BackendName::gloo && !collectives::has_gloo()) {
    missing.push_back({.keys = {"backend"},
                       .text = "this build has no backend gloo; apt-get install libgloo-dev and build again, or take "
                               "backend = \"caftan\""});
  }
  if (trainers.empty()) return missing;
  const TrainerConfig& first = *trainers.front();
  const auto differs = [&first](const TrainerConfig* other) {
    return other->words != first.words || other->per_class != first.per_class || other->batch != first.batch ||
           other->corpus.name != first.corpus.name || other->corpus.path != first.corpus.path;
  };
  if (std::ranges::any_of(trainers, differs)) {
    missing.push_back(
        {.keys = {"max_steps"},
         .text = "its trainers differ in corpus, words, per_class or batch: replicas learn one task together",
         .kind = Kind::file});
  }
  if (!config.resume) return missing;
  const auto step = checkpoints::check_checkpoint(
      *config.resume, facts_of(config, {first.words, first.per_class, first.batch}, trainers.size(), seed),
      config.max_steps, "max_steps");
  if (!step) missing.push_back({.keys = {"resume", "max_steps"}, .text = step.error().text()});
  return missing;
}

}  // namespace caftan::hybrid_ddp

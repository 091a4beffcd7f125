/// The settings of the role types of hybrid data parallelism, as [roles.NAME.config] of an application file gives them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoints/checkpoint_config.hpp"
#include "corpus/config.hpp"

namespace caftan::hybrid_ddp {

/// As collectives::Backend, which a launcher without libtorch does not know.
enum class BackendName : std::uint8_t { caftan, gloo };
constexpr bool is_valid(BackendName name) noexcept { return name <= BackendName::gloo; }

struct OptimizerConfig {
  enum class Name : std::uint8_t { sgd, adagrad };

  Name name = Name::adagrad;
  double lr = 0.1;

  static void settings(auto& s, OptimizerConfig& c) {
    s("name", c.name, "how the parameters of all workers change; both take sparse gradients")
        .one_of({{"sgd"}, {"adagrad"}});
    s("lr", c.lr, "learning rate").greater_than(0).at_most(1000);
  }
};

constexpr bool is_valid(OptimizerConfig::Name name) noexcept { return name <= OptimizerConfig::Name::adagrad; }

/// What the role type "hybrid_ddp.master" reads.
struct MasterConfig {
  std::int64_t emb = 16;
  bool sparse = true;
  OptimizerConfig optimizer;
  BackendName backend = BackendName::caftan;
  std::uint64_t bucket = std::uint64_t{1} << 20;
  std::int64_t max_steps = 400;
  std::int64_t measure_every = 100;
  std::int64_t check_every = 1;
  std::optional<double> goal;
  checkpoints::CheckpointConfig checkpoint;
  std::optional<std::filesystem::path> resume;

  static void settings(auto& s, MasterConfig& c) {
    s("emb", c.emb, "size of a word's embedding").range(1, 65536).unit("units");
    s("sparse", c.sparse, "gradients of the embedding have only the rows of the words of a batch");
    s("optimizer", c.optimizer, "how the parameters of all workers change");
    s("backend", c.backend, "who carries the gradients of the replicas")
        .one_of({{"caftan", "calls between the trainers"},
                 {"gloo", "libtorch's ProcessGroupGloo, in builds on machines with the package libgloo-dev"}});
    s("bucket", c.bucket, "gradients of the replicas that travel together").at_least(1).unit("bytes");
    s("max_steps", c.max_steps, "training steps of each trainer").at_least(1);
    s("measure_every", c.measure_every, "training steps between two measurements of accuracy, 0 = only at the end")
        .at_least(0)
        .unit("steps");
    s("check_every", c.check_every, "training steps between two comparisons of the replicas' bits, 0 = only at the end")
        .at_least(0)
        .unit("steps");
    s("goal", c.goal, "an accuracy at the end below this many times the largest class's share = failure (exit 1)")
        .greater_than(0)
        .default_text("none");
    s("checkpoint", c.checkpoint, "what a later run can go on from, in the run's folder");
    checkpoints::resume_setting(s, c.resume);
  }
};

/// What the role type "hybrid_ddp.trainer" reads.
struct TrainerConfig {
  corpus::CorpusConfig corpus;
  std::int64_t words = 20;
  std::int64_t per_class = 60;
  std::int64_t batch = 16;

  static void settings(auto& s, TrainerConfig& c) {
    s("corpus", c.corpus, "texts; which of them a passage is from is what the model learns");
    s("words", c.words, "length of a passage").range(1, 65536).unit("words");
    s("per_class", c.per_class, "most passages of one text, from its beginning: long texts are no easy guess then")
        .at_least(10)
        .unit("passages");
    s("batch", c.batch, "passages of a gradient").range(1, 65536);
  }
};

}  // namespace caftan::hybrid_ddp

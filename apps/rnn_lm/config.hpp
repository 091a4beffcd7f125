/// The settings of the two language model role types, as [roles.NAME.config] of an application file gives them. Each
/// struct is declared once, in `settings`: parsing, ranges, `caftan help` and docs/configuration.md come from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoints/checkpoint_config.hpp"
#include "corpus/config.hpp"

namespace caftan::rnn_lm {

struct OptimizerConfig {
  enum class Name { adam, sgd };

  Name name = Name::adam;
  double lr = 2e-3;
  double clip = 1.0;
  double decay = 1.0;

  static void settings(auto& s, OptimizerConfig& c) {
    s("name", c.name, "who makes steps of gradients").one_of({{"adam"}, {"sgd"}});
    s("lr", c.lr, "learning rate; with resume that of the checkpoint is used, and resolved.toml says so")
        .greater_than(0)
        .at_most(1000);
    s("clip", c.clip, "largest norm of all gradients together; 0 = no clipping").at_least(0);
    s("decay", c.decay, "the learning rate is multiplied by this when a validation brought nothing better")
        .greater_than(0)
        .at_most(1);
  }
};

struct GenerateConfig {
  std::int64_t chars = 400;
  double temperature = 0.8;

  static void settings(auto& s, GenerateConfig& c) {
    s("chars", c.chars, "length of the sample that is printed at the end").at_least(0).unit("characters");
    s("temperature", c.temperature, "below 1 = more probable characters").greater_than(0);
  }
};

/// What the role type "rnn_lm.trainer" reads.
struct TrainerConfig {
  corpus::CorpusConfig corpus;
  std::int64_t emb = 32;
  std::int64_t hid = 128;
  std::int64_t layers = 1;
  double dropout = 0;
  std::int64_t bptt = 64;
  std::int64_t batch = 32;
  OptimizerConfig optimizer;
  std::int64_t max_steps = 600;
  std::int64_t validate_every = 100;
  std::optional<double> goal;
  checkpoints::CheckpointConfig checkpoint;
  std::optional<std::filesystem::path> resume;
  GenerateConfig generate;

  static void settings(auto& s, TrainerConfig& c) {
    s("corpus", c.corpus, "the text that the model learns, character by character");
    s("emb", c.emb, "size of a character's embedding").range(1, 65536).unit("units");
    s("hid", c.hid, "size of each LSTM layer").range(1, 65536).unit("units");
    s("layers", c.layers, "LSTM layers").range(1, 64);
    s("dropout", c.dropout, "probability of dropping a unit while learning: embedding, between layers, decoder")
        .at_least(0)
        .less_than(1);
    s("bptt", c.bptt, "length of the windows that gradients go back through").range(1, 65536).unit("characters");
    s("batch", c.batch, "windows side by side").range(1, 65536);
    s("optimizer", c.optimizer, "how the parameters of all workers change");
    s("max_steps", c.max_steps, "training steps").at_least(1);
    s("validate_every", c.validate_every, "training steps between validations; there is one at the end too")
        .at_least(1)
        .unit("steps");
    s("goal", c.goal, "a last validation loss above this = failure (exit 1)")
        .greater_than(0)
        .unit("nats per character")
        .default_text("none");
    s("checkpoint", c.checkpoint, "what a later run can go on from, in the run's folder");
    checkpoints::resume_setting(s, c.resume);
    s("generate", c.generate, "a sample of what was learned");
  }
};

}  // namespace caftan::rnn_lm

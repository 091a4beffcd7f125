/// The settings of the benchmark of parameter servers, as [roles.NAME.config] of an application file gives them: all
/// are the master's, its servers and trainers have none. Without libtorch.
#pragma once

#include <cstdint>

#include "caftan/base/settings.hpp"

namespace caftan::ps_bench {

/// What a server makes of the gradients of its trainers.
enum class Rule : std::uint8_t {
  average_batch,  ///< keeps them, and averages them when the last has come
  average,        ///< adds each as it comes, and divides the sum when the last has come
  immediate,      ///< makes a step of each at once, and replies with the parameters: no trainer waits for another
};
constexpr bool is_valid(Rule rule) noexcept { return rule <= Rule::immediate; }

/// Which server a gradient goes to.
enum class Layout : std::uint8_t {
  groups,  ///< each server has as many trainers, and takes all gradients of these
  shards,  ///< each server has some of the buckets, and takes those of all trainers
};
constexpr bool is_valid(Layout layout) noexcept { return layout <= Layout::shards; }

struct DataConfig {
  std::int64_t samples = 100;
  std::int64_t length = 100;
  std::int64_t max_value = 100;
  std::int64_t sparsity = 20;  ///< per cent

  static void settings(auto& s, DataConfig& c) {
    s("samples", c.samples, "how many there are, for all trainers together").range(1, 1'000'000);
    s("length", c.length, "numbers in a sample").range(1, 65536);
    s("max_value", c.max_value, "numbers and targets are below this").range(1, 1 << 24);
    s("sparsity", c.sparsity, "share of these values that no sample has").range(0, 99).unit("per cent");
  }
};

struct ModelConfig {
  std::int64_t num_embeddings = 1024;
  std::int64_t embedding_dim = 1024;
  std::int64_t dense_layers = 8;
  bool sparse = true;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& num_embeddings& embedding_dim& dense_layers& sparse;
  }
  static void settings(auto& s, ModelConfig& c) {
    s("num_embeddings", c.num_embeddings, "rows of the embedding table").range(1, 1 << 24);
    s("embedding_dim", c.embedding_dim, "columns of the table; inputs and outputs of each dense layer").range(1, 65536);
    s("dense_layers", c.dense_layers, "linear layers behind the table").range(0, 1024);
    s("sparse", c.sparse, "the gradient of the table is sparse: only the rows that a batch has used");
  }
};

/// What the role type "ps_bench.master" reads.
struct MasterConfig {
  Rule rule = Rule::average_batch;
  Layout layout = Layout::groups;
  double lr = 1e-4;
  std::int64_t batch = 10;
  std::int64_t epochs = 10;
  std::int64_t warm_up = 10;  ///< epochs
  ByteSize bucket = ByteSize::mib(25);
  DataConfig data{};
  ModelConfig model{};

  static void settings(auto& s, MasterConfig& c) {
    s("rule", c.rule, "what a server makes of gradients")
        .one_of({{"average_batch", "keeps them, and averages when the last has come"},
                 {"average", "adds each as it comes, and divides when the last has come"},
                 {"immediate", "makes a step of each at once and replies with the parameters"}});
    s("layout", c.layout, "which server a gradient goes to")
        .one_of({{"groups", "each server has as many trainers and takes all of their gradients"},
                 {"shards", "each server has some of the buckets and takes these of all trainers"}});
    s("lr", c.lr, "learning rate of the steps, SGD").greater_than(0).at_most(1000);
    s("batch", c.batch, "samples of a gradient").range(1, 65536).unit("samples");
    s("epochs", c.epochs, "how often each trainer goes through its samples, measured").range(1, 1'000'000);
    s("warm_up", c.warm_up, "epochs before these, which are not measured").range(0, 1'000'000).unit("epochs");
    s("bucket", c.bucket, "dense gradients travel together up to so much; a sparse one travels alone")
        .range(ByteSize{1}, ByteSize::gib(1));
    s("data", c.data, "the samples, which are random");
    s("model", c.model, "what is trained");
  }
};

}  // namespace caftan::ps_bench

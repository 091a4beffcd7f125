/// `StagedModel`: the stages of a pipeline as one model: the module of each stage at its worker, the optimizer over the
/// parameters of all, and the values of all in the order of the layers, wherever the model is cut.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/rpc/call_site.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "models/units.hpp"
#include "pipeline/batch_run.hpp"
#include "pipeline/stage_module.hpp"

namespace caftan::pipeline {

/// Threads: one at a time.
class StagedModel {
 public:
  struct Place {
    std::string worker{};
    models::UnitRange units{};
  };
  struct Options {
    std::vector<Place> places{};  ///< of the stages, in their order
    std::string home{};           ///< name of the worker that the last stage gives its results
    StageSpec spec{};             ///< what all stages have in common; units and `next` follow from the places
    optim::Algorithm algorithm{};
  };
  /// Values of the model, in the order of its layers.
  struct Tensors {
    std::vector<at::Tensor> parameters{};
    std::vector<at::Tensor> buffers{};
  };

  /// Makes the stages and the optimizer, and waits for them. Errors: those of constructors and of calls.
  static Result<StagedModel> try_make(const CallSite& site, const Options& options);

  const std::vector<RemoteStage>& stages() const noexcept { return stages_; }
  optim::DistributedOptimizer& optimizer() noexcept { return optimizer_; }

  /// Returns copies of all values. Errors: those of calls.
  Result<Tensors> tensors() const;
  /// Takes over the values of a checkpoint and the state of its optimizer, learning rate and momentum too.
  /// @param file  what an error names
  /// Errors: invalid_config (a checkpoint of another model; nothing has changed then), those of calls.
  Result<void> load(const checkpoints::ModelCheckpoint& checkpoint, const std::string& file);
  /// Returns what each stage did since the last time. Errors: those of calls.
  Result<std::vector<StageReport>> reports() const;

 private:
  /// What one stage has: its parameters, then its buffers.
  struct StageValues {
    nn::StateDict state{};
    std::size_t parameters = 0;
  };

  StagedModel(std::vector<RemoteStage> stages, optim::DistributedOptimizer optimizer)
      : stages_(std::move(stages)), optimizer_(std::move(optimizer)) {}
  Result<std::vector<StageValues>> values() const;

  std::vector<RemoteStage> stages_;
  optim::DistributedOptimizer optimizer_;
};

}  // namespace caftan::pipeline

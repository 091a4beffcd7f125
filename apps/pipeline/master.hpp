/// The role type "pipeline.master": has the images, the loss and the loop. It drives. The model is at the stages; what
/// goes from stage to stage never comes here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/named_tensor.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "image_training/model_checkpoint.hpp"
#include "models/units.hpp"
#include "pipeline/batch_run.hpp"
#include "pipeline/config.hpp"
#include "pipeline/images.hpp"
#include "pipeline/report_text.hpp"
#include "pipeline/stage.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::pipeline {

class Master {
 public:
  using Config = MasterConfig;

  /// Returns what is wrong with the file, the images or the checkpoint.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  Master(RoleContext& context, Config config);

  /// Makes the stages, trains them, measures the accuracy, and reports how the stages were used.
  /// Errors: goal_missed; invalid_config (the settings do not fit together; it diverged); those of the images, of the
  ///   checkpoint and of the stages; cancelled (`stop` was requested); those of calls, passes and steps.
  Result<void> run(std::stop_token stop);

 private:
  Result<void> prepare();
  Result<void> make_stages();
  Result<void> resume();
  Result<void> train(const std::stop_token& stop);
  Result<void> train_batch(const std::stop_token& stop);
  Result<void> note_batch(double loss, double seconds, double window, std::vector<StageReport> reports);
  Result<std::vector<StageReport>> reports() const;
  Result<void> write_checkpoint();
  Result<std::vector<nn::StateDict>> states() const;
  Result<void> take_tensors(std::vector<at::Tensor>& parameters, std::vector<at::Tensor>& buffers) const;
  Result<void> measure();
  Result<void> draw() const;
  Result<void> finish();
  double traffic() const;

  RoleContext& context_;
  Config config_;
  std::vector<std::string> workers_;        // of the stages
  std::vector<models::UnitRange> units_{};  ///< of each stage; from `run` on, like all below
  std::optional<Images> images_{};
  std::vector<RemoteStage> stages_{};
  std::optional<optim::DistributedOptimizer> optimizer_{};
  std::vector<StageSummary> summaries_{};  // their `bubble` is the sum over all batches of this run
  Standing standing_{};
  std::int64_t first_ = 0;  // batches of earlier runs
  double seconds_ = 0;      // in batches of this run
  std::optional<image_training::Accuracy> accuracy_{};
  std::int64_t saved_at_ = -1;
  std::vector<StageReport> last_{};  // of the last batch
};

}  // namespace caftan::pipeline

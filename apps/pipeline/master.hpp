/// The role type "pipeline.master": has the images and the loss, and drives the training. The model is at the stages;
/// what one stage gives the next never comes here.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"
#include "image_training/image_tensors.hpp"
#include "models/units.hpp"
#include "pipeline/config.hpp"
#include "pipeline/images.hpp"
#include "pipeline/report_text.hpp"
#include "pipeline/stage_module.hpp"
#include "pipeline/staged_model.hpp"

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
  Result<void> make_stages(const std::vector<models::UnitRange>& units);
  Result<void> resume();
  Result<void> train(const std::stop_token& stop);
  Result<void> train_batch(const std::stop_token& stop);
  Result<void> note_batch(double loss, double seconds, double window, std::vector<StageReport> reports);
  Result<void> write_checkpoint();
  Result<void> measure();
  Result<void> draw() const;
  Result<void> finish();
  double traffic() const;

  RoleContext& context_;
  Config config_;
  std::vector<std::string> workers_;  // of the stages
  std::optional<Images> images_{};    ///< from `run` on, like all below
  std::optional<StagedModel> model_{};
  std::vector<StageSummary> summaries_{};  // their `bubble` is the sum over all batches of this run
  Standing standing_{};
  std::int64_t first_ = 0;  // batches of earlier runs
  double seconds_ = 0;      // in batches of this run
  std::optional<image_training::Accuracy> accuracy_{};
  std::int64_t saved_at_ = -1;
  std::vector<StageReport> last_{};  // of the last batch
};

}  // namespace caftan::pipeline

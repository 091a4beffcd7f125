/// The role type "parameter_server.server": owns the model, which its trainers share, and says when they train, measure
/// and stop. It drives. What the trainers see of each other's steps is the mode of nn::SharedModule.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/nn/shared_module.hpp"
#include "caftan/rpc/future.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "image_training/image_tensors.hpp"
#include "parameter_server/config.hpp"
#include "parameter_server/messages.hpp"
#include "parameter_server/trainer.hpp"

namespace caftan::parameter_server {

class Server {
 public:
  using Config = ServerConfig;

  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  Server(RoleContext& context, Config config);

  /// Lets all trainers make their steps, measures the accuracy, and reports the staleness.
  /// Errors: goal_missed; invalid_config (data of the trainers that do not fit together; deterministic = true in a mode
  ///         whose results depend on who is fast; it diverged); those of the checkpoint; cancelled (`stop` was
  ///         requested); those of the trainers and of calls to them.
  Result<void> run(std::stop_token stop);

 private:
  Result<void> prepare();
  Result<void> open();
  Result<void> share();
  Result<wire::Bytes> optimizer_state(const checkpoints::ModelCheckpoint& checkpoint) const;
  Result<void> resume();
  Result<void> train(std::stop_token stop);
  Result<void> train_until(std::int64_t end, const std::stop_token& stop);
  Result<void> end_part();
  Result<void> measure();
  Result<void> write_checkpoint();
  Result<void> lose(std::size_t trainer, const Error& error);
  void give_up_seat(std::size_t trainer) const;
  void show() const;
  Result<void> finish();
  checkpoints::Facts facts() const;
  std::string step_log() const;

  RoleContext& context_;
  Config config_;
  std::vector<RRef<Trainer>> trainers_;
  std::vector<bool> is_lost_;  // of each trainer
  std::vector<DataFacts> data_{};
  nn::SharedModule<ServedModel> model_{};  ///< from `run` on, like all below
  std::int64_t step_ = 0;                  ///< that all trainers have made
  std::int64_t first_ = 0;                 ///< that this run begins with
  std::int64_t total_ = 0;                 ///< steps of each trainer
  TrainReport sum_{};                      ///< of all trainers
  std::optional<image_training::Accuracy> accuracy_{};
  std::int64_t measured_at_ = -1;
  std::int64_t saved_at_ = -1;
  base::SteadyClock clock_{};
  base::TimePoint started_{};
};

}  // namespace caftan::parameter_server

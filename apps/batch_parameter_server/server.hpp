/// The role type "batch_parameter_server.server": owns the model, and makes a step of it from one gradient of each
/// trainer. Its method `update` is batched: one run takes the gradients that have come, of a whole round if all come
/// together, and their replies are the model after the round. What belongs to a round and when it is closed is decided
/// in rounds.hpp, the step in averaged_model.hpp; here are the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "batch_parameter_server/averaged_model.hpp"
#include "batch_parameter_server/config.hpp"
#include "batch_parameter_server/messages.hpp"
#include "batch_parameter_server/requirements.hpp"
#include "batch_parameter_server/rounds.hpp"
#include "batch_parameter_server/trainer.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/rpc/future.hpp"
#include "image_training/image_tensors.hpp"

namespace caftan::batch_parameter_server {

class Server {
 public:
  using Config = ServerConfig;

  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);
  /// Returns when a run of `update` begins.
  static BatchLimits update_limits(const Config& config, const app::RolePlace& place);

  Server(RoleContext& context, Config config);

  /// Lets all trainers train until the last round is closed, then measures the accuracy.
  /// Errors: goal_missed; invalid_config (data of the trainers that do not fit together, it diverged); those of the
  ///         checkpoint; cancelled (`stop` was requested); those of the trainers and of calls to them; peer_down (so
  ///         many trainers were lost that no quorum is left).
  Result<void> run(std::stop_token stop);

  /// Returns the model as it is. Errors: bad_arguments (the server has not begun).
  Result<Update> pull();

  /// Takes gradients, and answers each with the model of the next version, once its round is closed.
  /// Errors: bad_arguments (of another model; or as Rounds::arrive), invalid_config (a loss that is not finite), those
  /// of
  ///         the step, peer_down (no quorum is left).
  std::vector<Future<Update>> update(const Batch<Contribution>& batch);

 private:
  /// A gradient that waits for the end of its round.
  struct Waiting {
    Contribution contribution;
    Promise<Update> reply;
  };

  Result<void> prepare();
  Result<void> check_data(const std::vector<DataFacts>& facts) const;
  Result<void> resume();
  Result<void> train(std::stop_token stop);
  Result<void> lose(std::uint32_t trainer, const Error& error);
  void take(Contribution contribution, Promise<Update> reply);
  void close_rounds();
  Result<void> close_round(std::vector<Waiting>& round);
  base::Duration patience() const;
  Result<void> step(const std::vector<Waiting>& round);
  void fail(std::vector<Waiting> waiting, const Error& error);
  Update current(bool counted) const;
  Result<void> end_round(const std::vector<Waiting>& round);
  Result<image_training::Accuracy> measure();
  Result<void> write_checkpoint();
  void show(const std::vector<Waiting>& round);
  Result<void> finish();
  double seconds() const;
  checkpoints::Facts facts() const;

  RoleContext& context_;
  Config config_;
  std::vector<RRef<Trainer>> trainers_;
  std::vector<image_training::TrainerFacts> trainer_facts_{};
  std::uint32_t data_checksum_ = 0;
  std::optional<AveragedModel> model_{};  ///< from `run` on, like all below
  std::optional<Rounds> rounds_{};
  std::vector<at::Tensor> parameters_{};  ///< of the newest version; never changed, replies and calls have them
  std::vector<Waiting> waiting_{};
  bool is_closing_ = false;  ///< what follows the last round is going on
  std::optional<image_training::Accuracy> accuracy_{};
  std::int64_t measured_at_ = -1;  ///< version
  std::int64_t saved_at_ = -1;     ///< version
  std::int64_t first_ = 0;         ///< version
  double loss_ = 0;
  base::SteadyClock clock_{};
  base::TimePoint started_{};
};

}  // namespace caftan::batch_parameter_server

/// The learner's whole state apart from calls: networks, optimizer, scale of observations, and where the training
/// stands. The role gives it what actors sent, `train_locally` what it has played itself. Start with `make` and
/// `update`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "actor_critic/config.hpp"
#include "actor_critic/model.hpp"
#include "actor_critic/player.hpp"
#include "actor_critic/running_scale.hpp"
#include "caftan/base/result.hpp"
#include "caftan/optim/local_optimizer.hpp"

namespace caftan::actor_critic {

/// What decides how a training goes on, apart from parameters, optimizer and seeds.
struct LearningState {
  std::int64_t frames = 0;                                 ///< that were learned from
  std::int64_t updates = 0;                                ///< the version of the weights
  std::int64_t part = 0;                                   ///< how often the actors have begun anew
  std::uint64_t history = 0;                               ///< a mix of the bits of all losses and returns so far
  std::int64_t evaluated_at = -1;                          ///< frames of the newest evaluation; -1 = none
  double evaluation = 0;                                   ///< its mean return
  double best = -std::numeric_limits<double>::infinity();  ///< the best evaluation's mean return so far
  RunningScale scale{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& frames& updates& part& history& evaluated_at& evaluation& best& scale;
  }
};

/// What one update gave, as means over its rows.
struct UpdateReport {
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double norm = 0;   ///< of all gradients, before clipping, in the last step of the optimizer
  double ratio = 0;  ///< of the probabilities of actions: learner's by actor's
  double lag = 0;    ///< updates between the weights that acted and these
  std::int64_t frames = 0;
};

struct LearningOptions {
  LearnerConfig config{};
  agents::PolicyShape shape{};
  std::uint64_t seed = 0;
  bool deterministic = false;  ///< the same bits whatever torch's number of threads is
};

/// Returns the seed of the episodes of an evaluation. @param number  frames that were learned from
std::uint64_t evaluation_seed(std::uint64_t seed, std::uint64_t number);

/// Returns the learning rate after a share of the training. @param share  0..1
double learning_rate_at(const OptimizerConfig& config, double share) noexcept;

/// Threads: one at a time.
class Learning {
 public:
  /// Errors: those of LocalOptimizer::make.
  static Result<Learning> make(const LearningOptions& options);

  const LearningState& state() const noexcept { return state_; }
  const agents::PolicyShape& shape() const noexcept { return options_.shape; }
  const std::vector<at::Tensor>& parameters() const noexcept { return model_->parameters(); }
  const optim::LocalOptimizer& optimizer() const noexcept { return *optimizer_; }

  /// Learns from trajectories, in this order.
  /// Errors: bad_arguments (arrays that do not fit; nothing has changed then), invalid_config (a loss or the norm of
  ///         gradients is not finite: the training has diverged, and this step was not taken).
  Result<UpdateReport> update(const std::vector<Trajectories>& trajectories);

  /// Returns the weights of the policy that acts from now on (policy.hpp).
  std::vector<float> weights() const;

  /// Lets actors begin anew, which a checkpoint does: a training that goes on from there plays the same episodes.
  void begin_part() noexcept { ++state_.part; }

  /// Takes the mean return of an evaluation of the weights at `frames`. Returns whether it is the best so far.
  bool take_evaluation(std::int64_t frames, double mean);

  /// Goes on from a state. Errors: bad_arguments (it is of another policy); those of LocalOptimizer::load. Nothing has
  /// changed then.
  Result<void> resume(const LearningState& state, const std::vector<at::Tensor>& parameters, wire::ByteView optimizer);

  /// Returns a fingerprint of where the training stands: all losses so far, all parameters, and the scale.
  std::string fingerprint() const;

 private:
  struct Rows;
  explicit Learning(const LearningOptions& options);
  Result<Rows> make_rows(const std::vector<Trajectories>& trajectories) const;
  Result<void> add_targets(const std::vector<Trajectories>& trajectories, Rows& rows) const;
  Result<void> step(const Rows& rows, const at::Tensor& which, UpdateReport& report);
  Error diverged(const char* what, double value) const;

  LearningOptions options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<optim::LocalOptimizer> optimizer_;
  LearningState state_;
};

}  // namespace caftan::actor_critic

#include "actor_critic/learner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "actor_critic/actor.hpp"
#include "actor_critic/evaluator.hpp"
#include "actor_critic/requirements.hpp"
#include "agents/greedy.hpp"
#include "caftan/app/seeds.hpp"
#include "caftan/base/peer_loss.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"

namespace caftan::actor_critic {
namespace {

double seconds_of(base::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::vector<app::MissingRequirement> Learner::requirements(const Config& config, const app::RolePlace& place) {
  constexpr std::uint32_t kReplica = 0;
  return find_missing(config, place, app::stream_seed(place.root_seed, place.role, kReplica, kParameterStream));
}

Learner::Learner(RoleContext& context, Config config)
    : context_(context),
      config_(std::move(config)),
      actors_(context.uses<Actor>("actors")),
      evaluators_(context.uses<Evaluator>("evaluator")),
      seats_(actors_.size(), static_cast<std::size_t>(config_.batch), static_cast<std::size_t>(config_.ahead)) {}

Result<void> Learner::run(std::stop_token stop) {
  auto trained = prepare();
  if (trained) trained = train(stop);
  // Whatever has happened, actors that wait for weights return.
  is_over_ = true;
  seats_.end();
  for (auto& playing : playing_) {
    if (!playing) continue;
    const auto ended = std::move(*playing).result();
    if (trained && !ended && !is_loss_of_peer(ended.error())) trained = ended;
  }
  if (!trained) return trained;
  return finish();
}

Result<void> Learner::prepare() {
  const auto spec = open();
  if (!spec) return spec.error();
  auto made = Learning::make({.config = config_,
                              .shape = agents::shape_for(*spec, static_cast<std::size_t>(config_.network.hidden),
                                                         static_cast<std::size_t>(config_.network.layers)),
                              .seed = context_.seed(kParameterStream),
                              .deterministic = context_.deterministic()});
  if (!made) return made.error();
  learning_.emplace(*std::move(made));
  if (config_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  }
  weights_ = to_tensor(learning_->weights());
  meter_ = {.started = clock_.now(), .first_frames = learning_->state().frames};
  schedule_.emplace(config_, learning_->state().frames);
  context_.report("trains on " + spec->id + " with " + std::to_string(actors_.size()) +
                  (actors_.size() == 1 ? " actor" : " actors"));
  return {};
}

/// Lets actors and evaluator make their environments, and returns what all of them have.
Result<rl::EnvironmentSpec> Learner::open() {
  const agents::EnvironmentChoice choice{config_.environment, config_.action_repeat};
  std::vector<std::pair<std::string, Future<EnvironmentFacts>>> opening;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    opening.emplace_back("actor " + std::to_string(i), actors_[i].rpc_async<&Actor::open>(choice));
  }
  for (const auto& evaluator : evaluators_) {
    opening.emplace_back("the evaluator", evaluator.rpc_async<&Evaluator::open>(choice));
  }
  std::optional<rl::EnvironmentSpec> spec;
  for (auto& [name, future] : opening) {
    const auto facts = std::move(future).result();
    if (!facts) return facts.error();
    const rl::EnvironmentSpec here = spec_of(*facts);
    if (!spec) spec = here;
    if (here == *spec) continue;
    return Error(Errc::invalid_config, config_.environment + " is another environment at " + name +
                                           " than at actor 0 (" + std::to_string(here.observation_size) +
                                           " observations, there " + std::to_string(spec->observation_size) +
                                           "; or other actions): all need the same");
  }
  return *spec;
}

Result<void> Learner::resume() {
  const auto checkpoint =
      read_checkpoint(*config_.resume, facts_of(config_, context_.seed(kParameterStream)), config_.max_frames);
  if (!checkpoint) return checkpoint.error();
  if (auto resumed = learning_->resume(checkpoint->state, checkpoint->parameters, checkpoint->optimizer); !resumed) {
    return Error(Errc::invalid_config, config_.resume->string() + ": " + resumed.error().text());
  }
  if (config_.checkpoint.best && !context_.output_directory().empty()) {
    auto carried = agents::carry_best(checkpoint->path.parent_path(),
                                      context_.output_directory() / agents::kCheckpoints, checkpoint->state.frames);
    if (!carried) return carried;
  }
  context_.report(resumed_line(checkpoint->state.frames, config_.resume->string()));
  if (checkpoint->state.frames >= config_.max_frames) context_.report("nothing to train: raise max_frames");
  return {};
}

void Learner::start_actors() {
  PlayOrder order{.unroll = static_cast<std::uint64_t>(config_.unroll),
                  .ahead = static_cast<std::uint64_t>(config_.ahead),
                  .shape = learning_->shape()};
  const RRef<Learner> self = context_.self<Learner>();
  for (const auto& actor : actors_) {
    const auto patient = actor.with({.timeout = base::Duration(0)});
    playing_.emplace_back(patient.rpc_async<&Actor::play>(self, order));
    ++order.actor;
  }
}

Weights Learner::weights_now(std::uint64_t known) const {
  Weights weights{.is_over = is_over_};
  if (is_over_ || !learning_) return weights;
  weights.version = static_cast<std::uint64_t>(learning_->state().updates);
  weights.part = static_cast<std::uint64_t>(learning_->state().part);
  if (known != weights.version + 1) weights.values = weights_;
  return weights;
}

Future<Weights> Learner::weights(std::uint64_t actor, std::uint64_t sent, std::uint64_t known) {
  auto promise = std::make_shared<Promise<Weights>>();
  Future<Weights> future = promise->future();
  if (auto asked = seats_.ask(actor, sent, [this, promise, known] { promise->set(weights_now(known)); }); !asked) {
    promise->set(asked.error());
  }
  return future;
}

void Learner::take(Trajectories trajectories) {
  if (!learning_) return;  // no actor of this learner: these play once it has begun
  auto taken = check_trajectories(trajectories, learning_->shape());
  if (taken) taken = seats_.take(std::move(trajectories));
  if (!taken && !refused_) refused_ = taken.error();
  if (arrival_ && (refused_ || seats_.is_ready())) {
    arrival_->set({});
    arrival_.reset();
  }
}

Result<void> Learner::train(const std::stop_token& stop) {
  start_actors();
  bool is_trained = learning_->state().frames >= config_.max_frames;
  while (!is_trained) {
    if (stop.stop_requested()) {
      return Error(Errc::cancelled, "stopped after " + with_commas(learning_->state().frames) + " frames");
    }
    if (refused_) return *refused_;
    if (auto looked = look_at_actors(); !looked) return looked;
    if (auto ended = end_evaluation(false); !ended) return ended;
    const LearningState& state = learning_->state();
    if (config_.target && state.evaluated_at >= 0 && state.evaluation >= *config_.target) break;
    if (!seats_.is_ready()) {
      if (auto waited = wait_for_trajectories(); !waited) return waited;
      continue;
    }
    if (auto updated = update(); !updated) return updated;
    is_trained = state.frames >= config_.max_frames;
  }
  return {};
}

/// Waits until there is enough for an update, or some time has passed. The turn is free meanwhile.
Result<void> Learner::wait_for_trajectories() {
  const base::TimePoint begin = clock_.now();
  Future<void> arrived = arrival_.emplace().future();
  (void)arrived.wait_for(std::chrono::milliseconds(100));
  arrival_.reset();
  meter_.idle += clock_.now() - begin;
  return {};
}

/// Learns from the next trajectories, and does what is due then.
Result<void> Learner::update() {
  const std::vector<Trajectories> trajectories = seats_.next_batch();
  meter_.queue_sum += static_cast<double>(seats_.queued());
  const auto report = learning_->update(trajectories);
  if (!report) return report.error();
  weights_ = to_tensor(learning_->weights());
  ++meter_.updates;
  meter_.lag_sum += report->lag;
  const Schedule::Due due = schedule_->after(learning_->state().frames);
  if (due.evaluation && !evaluators_.empty()) {
    if (auto ended = end_evaluation(context_.deterministic()); !ended) return ended;
    if (!evaluation_) start_evaluation();
    if (context_.deterministic()) {
      if (auto ended = end_evaluation(true); !ended) return ended;
    }
  }
  if (due.checkpoint) {
    learning_->begin_part();
    if (auto written = write_checkpoint(); !written) return written;
  }
  seats_.answer();
  std::vector<double> returns;
  for (const Trajectories& one : trajectories) returns.insert(returns.end(), one.returns.begin(), one.returns.end());
  show(*report, returns, due.evaluation || due.checkpoint);
  return {};
}

Result<void> Learner::look_at_actors() {
  for (std::size_t i = 0; i < playing_.size(); ++i) {
    if (!playing_[i] || !playing_[i]->ready()) continue;
    const auto ended = std::move(*playing_[i]).result();
    playing_[i].reset();
    const Error error =
        ended ? Error(Errc::bad_arguments, "actor " + std::to_string(i) + " returned too early") : ended.error();
    if (auto lost = lose(i, error); !lost) return lost;
  }
  return {};
}

/// An actor has ended with an error. Returns the error if the training cannot go on.
Result<void> Learner::lose(std::size_t actor, const Error& error) {
  if (!is_loss_of_peer(error) || !context_.goes_on_without("actors")) return error;
  seats_.lose(actor);
  context_.log("actor " + std::to_string(actor) + " is lost: " + error.text());
  return seats_.left() == 0 ? Result<void>(error) : Result<void>();
}

void Learner::start_evaluation() {
  const auto patient = evaluators_.front().with({.timeout = base::Duration(0)});
  const std::int64_t frames = learning_->state().frames;
  evaluation_.emplace(Evaluation{.frames = frames,
                                 .returns = patient.rpc_async<&Evaluator::evaluate>(
                                     learning_->shape(), weights_, static_cast<std::uint64_t>(frames))});
  if (!config_.checkpoint.best || context_.output_directory().empty()) return;
  auto snapshot = snapshot_of(config_, context_.seed(kParameterStream), *learning_);
  if (snapshot) evaluation_->snapshot = *std::move(snapshot);
}

/// Takes the result of an evaluation that has ended. @param wait  for one that has not
Result<void> Learner::end_evaluation(bool wait) {
  if (!evaluation_) return {};
  while (!evaluation_->returns.wait_for(std::chrono::milliseconds(wait ? 100 : 0))) {
    if (!wait) return {};
    if (context_.stop_token().stop_requested()) return Error(Errc::cancelled, "stopped during an evaluation");
  }
  Evaluation ended = *std::move(evaluation_);
  evaluation_.reset();
  const auto returns = std::move(ended.returns).result();
  if (!returns) {
    if (!is_loss_of_peer(returns.error()) || !context_.goes_on_without("evaluator")) return returns.error();
    evaluators_.clear();
    context_.report("the evaluator is lost: the training goes on without evaluations");
    return {};
  }
  const double mean = agents::mean_of(*returns);
  const bool is_best = learning_->take_evaluation(ended.frames, mean);
  context_.metric("evaluation", mean, {.step = ended.frames});
  context_.log(evaluation_line(mean, *std::ranges::min_element(*returns), returns->size(), ended.frames,
                               seconds_of(clock_.now() - meter_.started)));
  if (!is_best || !ended.snapshot) return {};
  const auto written = agents::write_best(context_.output_directory() / agents::kCheckpoints, ended.snapshot->agent,
                                          std::move(ended.snapshot->records));
  if (!written) return written.error();
  return {};
}

Result<void> Learner::write_checkpoint() {
  if (context_.output_directory().empty()) return {};
  auto snapshot = snapshot_of(config_, context_.seed(kParameterStream), *learning_);
  if (!snapshot) return snapshot.error();
  const auto written = agents::write_agent(context_.output_directory() / agents::kCheckpoints, snapshot->agent,
                                           std::move(snapshot->records), config_.checkpoint.keep);
  if (!written) return written.error();
  saved_at_ = learning_->state().frames;
  context_.report("checkpoint: frame " + std::to_string(saved_at_) + " in " + written->string());
  return {};
}

Standing Learner::standing() const {
  const LearningState& state = learning_->state();
  const double seconds = seconds_of(clock_.now() - meter_.started);
  const auto updates = static_cast<double>(std::max<std::int64_t>(meter_.updates, 1));
  Standing standing{.frames = state.frames,
                    .max_frames = config_.max_frames,
                    .frames_per_s = static_cast<double>(state.frames - meter_.first_frames) / seconds,
                    .lag = meter_.lag_sum / updates,
                    .queue = meter_.queue_sum / updates,
                    .idle = seconds_of(meter_.idle) / seconds,
                    .seconds = seconds,
                    .updates = state.updates,
                    .actors = seats_.left()};
  if (state.evaluated_at >= 0) standing.evaluation = state.evaluation;
  if (std::isfinite(state.best)) standing.best = state.best;
  return standing;
}

/// @param always  false: only some updates become points of curves, so that these have some hundred
void Learner::show(const UpdateReport& report, const std::vector<double>& returns, bool always) {
  constexpr std::int64_t kPoints = 300;
  const std::int64_t frames = learning_->state().frames;
  const std::int64_t every = std::max<std::int64_t>(config_.max_frames / kPoints, 1);
  const Standing now = standing();
  context_.progress(frames, config_.max_frames, frames_line(now));
  if (!always && frames / every == (frames - report.frames) / every) return;
  const MetricOptions curve{.step = frames};
  if (!returns.empty()) context_.metric("return", agents::mean_of(returns), curve);
  context_.metric("policy_loss", report.policy_loss, curve);
  context_.metric("value_loss", report.value_loss, curve);
  context_.metric("entropy", report.entropy, curve);
  context_.metric("gradient_norm", report.norm, curve);
  context_.metric("ratio", report.ratio, curve);
  context_.metric("policy_lag", report.lag, curve);
  context_.metric("learning_rate", learning_->optimizer().lr(0), curve);
  context_.metric("queue", static_cast<double>(seats_.queued()));
  context_.metric("learner_idle", now.idle);
  context_.metric("frames_per_s", now.frames_per_s);
  context_.metric("actors", static_cast<double>(now.actors));
}

Result<void> Learner::finish() {
  const LearningState& state = learning_->state();
  const Standing trained = standing();
  if (auto ended = end_evaluation(true); !ended) return ended;
  const bool is_reached = config_.target && state.evaluated_at >= 0 && state.evaluation >= *config_.target;
  if (!evaluators_.empty() && !is_reached && state.evaluated_at != state.frames) {
    start_evaluation();
    if (auto ended = end_evaluation(true); !ended) return ended;
  }
  if (config_.checkpoint.every > 0 && saved_at_ != state.frames) {
    if (auto written = write_checkpoint(); !written) return written;
  }
  context_.report(trained_line(trained));
  if (state.evaluated_at >= 0) {
    context_.report("evaluation: last " + format_fixed(state.evaluation, 1) + " at " + with_commas(state.evaluated_at) +
                    " frames, best " + format_fixed(state.best, 1));
  }
  const std::string fingerprint = learning_->fingerprint();
  context_.fingerprint(fingerprint);
  context_.report("fingerprint " + fingerprint);
  if (config_.goal && !(state.best >= *config_.goal)) {
    return Error(Errc::goal_missed, missed_text(state.best, *config_.goal));
  }
  return {};
}

}  // namespace caftan::actor_critic

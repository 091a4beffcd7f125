#include "parameter_server/server.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "caftan/app/place.hpp"
#include "caftan/base/peer_loss.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "image_training/algorithm.hpp"
#include "image_training/report_text.hpp"
#include "image_training/requirements.hpp"
#include "parameter_server/progress_text.hpp"
#include "parameter_server/requirements.hpp"

namespace caftan::parameter_server {
namespace {

constexpr const char* kStepLog = "steps.log";

}  // namespace

std::vector<app::MissingRequirement> Server::requirements(const Config& config, const app::RolePlace& place) {
  return find_missing(config, app::used_configs<image_training::TrainerConfig>(place, "trainers"),
                      app::stream_seed(place, kParameterStream));
}

Server::Server(RoleContext& context, Config config)
    : context_(context),
      config_(std::move(config)),
      trainers_(context.uses<Trainer>("trainers")),
      is_lost_(trainers_.size(), false) {}

Result<void> Server::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  if (auto trained = train(stop); !trained) return trained;
  return finish();
}

Result<void> Server::prepare() {
  const bool has_one_result = trainers_.size() == 1 || (config_.consistency.mode == nn::ConsistencyMode::sync &&
                                                        !config_.consistency.quorum.has_value());
  if (context_.deterministic() && !has_one_result) {
    return Error(Errc::invalid_config,
                 "run.deterministic = true needs one trainer, or consistency.mode = \"sync\" "
                 "without a quorum: in other modes the result depends on which trainer is fast");
  }
  if (auto opened = open(); !opened) return opened;
  if (auto shared = share(); !shared) return shared;
  if (config_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  }
  std::vector<Future<void>> joining;
  for (const auto& trainer : trainers_) joining.push_back(trainer.rpc_async<&Trainer::join>(model_));
  for (std::size_t i = 0; i < joining.size(); ++i) {
    const auto joined = std::move(joining[i]).result();
    if (joined) continue;
    if (auto lost = lose(i, joined.error()); !lost) return lost;
    give_up_seat(i);
  }
  context_.report("trains " + std::string(models::to_string(config_.model)) + " with " +
                  std::to_string(trainers_.size()) + " trainers, " +
                  std::string(nn::to_string(config_.consistency.mode)) + ", " + std::to_string(total_) + " steps each");
  started_ = clock_.now();
  return {};
}

/// Lets the trainers read their images, and finds how many steps all can make.
Result<void> Server::open() {
  OpenOrder order{.trainers = static_cast<std::uint32_t>(trainers_.size()), .data_seed = context_.seed("data")};
  std::vector<Future<DataFacts>> opening;
  for (const auto& trainer : trainers_) {
    opening.push_back(trainer.rpc_async<&Trainer::open>(order));
    ++order.trainer;
  }
  for (auto& one : opening) {
    auto opened = std::move(one).result();
    if (!opened) return opened.error();
    data_.push_back(*std::move(opened));
  }
  std::int64_t steps = data_.front().steps_per_epoch;
  for (std::size_t i = 0; i < data_.size(); ++i) {
    steps = std::min(steps, data_[i].steps_per_epoch);
    if (data_[i].checksum == data_.front().checksum && data_[i].classes == data_.front().classes) continue;
    return Error(Errc::invalid_config, "trainer 0 has other images than trainer " + std::to_string(i) + " (" +
                                           data_.front().source + "; " + data_[i].source + "): all need the same");
  }
  const DataFacts& first = data_.front();
  if (auto fits = image_training::check_shape(config_.model, first.shape, first.source); !fits) return fits;
  total_ = std::min(config_.epochs * steps, config_.max_steps.value_or(config_.epochs * steps));
  return {};
}

std::string Server::step_log() const {
  if (!config_.step_log || context_.output_directory().empty()) return {};
  return (context_.output_directory() / kStepLog).string();
}

Result<void> Server::share() {
  const nn::SharedOptions options{.consistency = config_.consistency,
                                  .trainers = static_cast<std::uint32_t>(trainers_.size()),
                                  .algorithm = algorithm_of(config_.optimizer),
                                  .step_log = step_log()};
  auto made = nn::SharedModule<ServedModel>::try_make<models::ModelName, std::int64_t, std::uint64_t, std::uint64_t>(
      context_, context_.name(), options, config_.model, data_.front().classes, context_.seed(kParameterStream),
      context_.seed("dropout"));
  if (!made) return made.error();
  model_ = *std::move(made);
  return model_.created().result();
}

checkpoints::Facts Server::facts() const {
  std::vector<image_training::TrainerFacts> trainers;
  for (const DataFacts& data : data_) trainers.push_back(data.settings);
  return facts_of(config_, trainers, context_.seed(kParameterStream));
}

/// Returns the state of a checkpoint's optimizer with the learning rate and the momentum of this run's file.
Result<wire::Bytes> Server::optimizer_state(const checkpoints::ModelCheckpoint& checkpoint) const {
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : checkpoint.parameters) parameters.push_back(parameter.detach().requires_grad_());
  auto optimizer = optim::LocalOptimizer::make({{std::move(parameters), algorithm_of(config_.optimizer)}});
  if (!optimizer) return optimizer.error();
  if (auto loaded = checkpoints::load_but_rates(*optimizer, checkpoint.optimizer); !loaded) return loaded.error();
  return optimizer->save();
}

Result<void> Server::resume() {
  const auto checkpoint = checkpoints::read_checkpoint(*config_.resume, facts());
  if (!checkpoint) return checkpoint.error();
  if (checkpoint->data != data_.front().checksum) {
    return Error(Errc::invalid_config, config_.resume->string() + ": a checkpoint of a training with other images");
  }
  if (checkpoint->step > total_) {
    return Error(Errc::invalid_config, config_.resume->string() + ": it stands at step " +
                                           std::to_string(checkpoint->step) + " of each trainer, beyond the " +
                                           std::to_string(total_) + " of this file; raise epochs or max_steps");
  }
  auto state = model_.try_state_dict();
  if (!state) return state.error();
  const std::size_t parameters = checkpoint->parameters.size();
  if (state->size() != parameters + checkpoint->buffers.size()) {
    return Error(Errc::invalid_config, config_.resume->string() + ": a checkpoint of another model");
  }
  for (std::size_t i = 0; i < state->size(); ++i) {
    (*state)[i].tensor = i < parameters ? checkpoint->parameters[i] : checkpoint->buffers[i - parameters];
  }
  if (auto loaded = model_.try_load_state_dict(*state); !loaded) return loaded;
  const auto optimizer = optimizer_state(*checkpoint);
  if (!optimizer) return optimizer.error();
  if (auto loaded = model_.try_load_optimizer(*optimizer); !loaded) return loaded;
  step_ = first_ = saved_at_ = checkpoint->step;
  context_.report(image_training::resumed_line(step_, config_.resume->string()));
  if (step_ == total_) context_.report(image_training::nothing_left_line(step_, "max_steps"));
  return {};
}

Result<void> Server::train(std::stop_token stop) {
  while (step_ < total_) {
    const auto end = checkpoints::next_stop(step_, total_, {config_.evaluate_every, config_.checkpoint.every});
    if (auto trained = train_until(end, stop); !trained) return trained;
    if (auto ended = end_part(); !ended) return ended;
  }
  return {};
}

Result<void> Server::train_until(std::int64_t end, const std::stop_token& stop) {
  const TrainOrder order{.first = step_, .end = end, .total = total_, .learning_rate = config_.optimizer.lr};
  std::vector<std::pair<std::size_t, Future<TrainReport>>> running;
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    if (is_lost_[i]) continue;
    const auto patient = trainers_[i].with({.timeout = base::Duration(0)});
    running.emplace_back(i, patient.rpc_async<&Trainer::train>(order));
  }
  while (!running.empty()) {
    if (stop.stop_requested()) {
      for (auto& one : running) one.second.cancel();
      return Error(Errc::cancelled, "stopped after " + std::to_string(step_) + " steps of each trainer");
    }
    const auto ended = std::ranges::find_if(running, [](const auto& one) { return one.second.ready(); });
    if (ended == running.end()) {
      (void)running.front().second.wait_for(std::chrono::milliseconds(100));
      show();
      continue;
    }
    const auto report = std::move(ended->second).result();
    const std::size_t trainer = ended->first;
    running.erase(ended);
    if (report) {
      sum_.loss_sum += report->loss_sum;
      sum_.steps += report->steps;
      sum_.refused += report->refused;
    } else if (auto lost = lose(trainer, report.error()); !lost) {
      for (auto& one : running) one.second.cancel();
      return lost;
    }
  }
  step_ = end;
  return {};
}

/// A trainer has ended with an error. Returns the error if the training cannot go on.
Result<void> Server::lose(std::size_t trainer, const Error& error) {
  // Where the loss ends the run, no checkpoint follows of what the others make alone until then.
  if (!is_loss_of_peer(error) || !context_.goes_on_without("trainers")) return error;
  is_lost_[trainer] = true;
  context_.log("trainer " + std::to_string(trainer) + " is lost: " + error.text());
  const bool none_is_left = std::ranges::all_of(is_lost_, [](bool lost) { return lost; });
  return none_is_left ? Result<void>(error) : Result<void>();
}

/// Lets no round wait for a trainer that was lost before it could join: its number has had a trainer, who is gone.
void Server::give_up_seat(std::size_t trainer) const {
  nn::SharedModule<ServedModel> seat = model_;
  (void)seat.try_join(static_cast<std::uint32_t>(trainer));  // refused if it had joined: then its seat has ended
}

/// What follows when all trainers have made their steps up to a point.
Result<void> Server::end_part() {
  if (config_.evaluate_every > 0 && step_ % config_.evaluate_every == 0) {
    if (auto measured = measure(); !measured) return measured;
  }
  if (config_.checkpoint.is_due(step_, total_)) {
    if (auto written = write_checkpoint(); !written) return written;
  }
  show();
  return {};
}

/// Lets each trainer that is there classify its part of the test images.
Result<void> Server::measure() {
  std::vector<std::size_t> there;
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    if (!is_lost_[i]) there.push_back(i);
  }
  image_training::TestPart part{.parts = static_cast<std::uint32_t>(there.size())};
  std::vector<Future<image_training::Accuracy>> asked;
  for (const std::size_t trainer : there) {
    const auto patient = trainers_[trainer].with({.timeout = base::Duration(0)});
    asked.push_back(patient.rpc_async<&Trainer::measure>(part));
    ++part.part;
  }
  image_training::Accuracy accuracy;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto of_part = std::move(asked[i]).result();
    if (!of_part) {
      if (auto lost = lose(there[i], of_part.error()); !lost) return lost;
      return measure();  // the others have its part, too
    }
    accuracy.right += of_part->right;
    accuracy.images += of_part->images;
  }
  accuracy_ = accuracy;
  measured_at_ = step_;
  context_.metric("accuracy", accuracy.share(), {.step = step_});
  return {};
}

Result<void> Server::write_checkpoint() {
  if (context_.output_directory().empty() || saved_at_ == step_) return {};
  const auto state = model_.try_state_dict();
  if (!state) return state.error();
  const auto buffers = model_.try_named_buffers();
  if (!buffers) return buffers.error();
  auto optimizer = model_.try_save_optimizer();
  if (!optimizer) return optimizer.error();
  checkpoints::ModelCheckpoint checkpoint{
      .facts = facts(), .data = data_.front().checksum, .step = step_, .optimizer = *std::move(optimizer)};
  const std::size_t parameters = state->size() - buffers->size();  // they stand before the buffers
  for (std::size_t i = 0; i < state->size(); ++i) {
    (i < parameters ? checkpoint.parameters : checkpoint.buffers).push_back((*state)[i].tensor);
  }
  const auto written =
      checkpoints::write_checkpoint(context_.output_directory() / "checkpoints", checkpoint, config_.checkpoint.keep);
  if (!written) return written.error();
  saved_at_ = step_;
  context_.log("checkpoint: step " + std::to_string(step_) + " in " + written->string());
  return {};
}

void Server::show() const {
  const auto status = model_.try_status();
  if (!status) return;  // what is wrong with the model the trainers say
  const bool is_sync = config_.consistency.mode == nn::ConsistencyMode::sync;
  const std::int64_t of_all = is_sync ? 1 : static_cast<std::int64_t>(trainers_.size());
  const std::int64_t total = (total_ - first_) * of_all;
  const auto version = static_cast<std::int64_t>(status->version.value);
  const double seconds = std::chrono::duration<double>(clock_.now() - started_).count();
  context_.metric("version", static_cast<double>(version));
  context_.metric("mean_staleness", mean_staleness(status->staleness));
  std::string line = "version " + std::to_string(version) + " of " + std::to_string(total) + "  staleness " +
                     format_fixed(mean_staleness(status->staleness), 2);
  if (accuracy_) line += ", accuracy " + format_fixed(100 * accuracy_->share(), 1) + " %";
  context_.progress(version, total, line + "  " + format_fixed(static_cast<double>(version) / seconds, 1) + " steps/s");
}

Result<void> Server::finish() {
  if (measured_at_ != step_) {
    if (auto measured = measure(); !measured) return measured;
  }
  if (sum_.steps > 0) {
    const double seconds = std::chrono::duration<double>(clock_.now() - started_).count();
    context_.report("trained: " + std::to_string(sum_.steps) + " gradients, mean loss " +
                    format_fixed(sum_.loss_sum / static_cast<double>(sum_.steps), 3) + ", " +
                    std::to_string(sum_.refused) + " refused and computed again, " + format_fixed(seconds, 1) + " s");
  }
  const auto status = model_.try_status();
  if (!status) return status.error();
  context_.report(staleness_line(status->staleness));
  for (std::size_t staleness = 0; staleness < status->staleness.size(); ++staleness) {
    context_.metric("gradients_by_staleness", static_cast<double>(status->staleness[staleness]),
                    {.step = static_cast<std::int64_t>(staleness)});
  }
  context_.report(image_training::accuracy_line(*accuracy_));
  const auto state = model_.try_state_dict();
  if (!state) return state.error();
  std::vector<at::Tensor> tensors;
  for (const nn::NamedTensor& tensor : *state) tensors.push_back(tensor.tensor);
  const std::string digest = checkpoints::fingerprint_of(step_, tensors, {});
  context_.fingerprint(digest);
  context_.report("fingerprint " + digest);
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    if (!is_lost_[i]) (void)trainers_[i].try_rpc_sync<&Trainer::leave>();
  }
  if (config_.goal && accuracy_->share() < *config_.goal) {
    return Error(Errc::goal_missed, image_training::missed_text(*accuracy_, *config_.goal));
  }
  return {};
}

}  // namespace caftan::parameter_server

#include "batch_parameter_server/server.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "caftan/app/place.hpp"
#include "caftan/base/peer_loss.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "image_training/report_text.hpp"
#include "image_training/requirements.hpp"

namespace caftan::batch_parameter_server {
namespace {

Error not_begun() { return {Errc::bad_arguments, "the server has not begun to train"}; }

}  // namespace

std::vector<app::MissingRequirement> Server::requirements(const Config& config, const app::RolePlace& place) {
  return find_missing(config, app::used_configs<image_training::TrainerConfig>(place, "trainers"),
                      app::stream_seed(place, kParameterStream));
}

BatchLimits Server::update_limits(const Config& config, const app::RolePlace& place) {
  return limits_of(config, app::count_used(place, "trainers"));
}

Server::Server(RoleContext& context, Config config)
    : context_(context), config_(std::move(config)), trainers_(context.uses<Trainer>("trainers")) {}

Result<void> Server::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  if (auto trained = train(stop); !trained) return trained;
  return finish();
}

Result<void> Server::prepare() {
  std::vector<Future<DataFacts>> opening;
  for (const auto& trainer : trainers_) opening.push_back(trainer.rpc_async<&Trainer::open>());
  std::vector<DataFacts> facts;
  for (auto& one : opening) {
    auto opened = std::move(one).result();
    if (!opened) return opened.error();
    trainer_facts_.push_back(opened->settings);
    facts.push_back(*std::move(opened));
  }
  if (auto fits = check_data(facts); !fits) return fits;
  data_checksum_ = facts.front().checksum;
  auto model =
      AveragedModel::make(config_.model, facts.front().classes, context_.seed(kParameterStream), config_.optimizer);
  if (!model) return model.error();
  model_.emplace(*std::move(model));
  if (config_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  }
  const auto trainers = static_cast<std::uint32_t>(trainers_.size());
  rounds_.emplace(trainers, quorum_of(config_, trainers), config_.straggler_timeout.value_or(base::Duration(0)),
                  first_);
  parameters_ = model_->copy_parameters();
  context_.report("trains " + std::string(models::to_string(config_.model)) + ", " +
                  std::to_string(models::count_parameters(model_->model())) + " parameters, with " +
                  std::to_string(trainers) + " trainers");
  started_ = clock_.now();
  return {};
}

Result<void> Server::check_data(const std::vector<DataFacts>& facts) const {
  const DataFacts& first = facts.front();
  for (std::size_t i = 1; i < facts.size(); ++i) {
    if (facts[i].checksum == first.checksum && facts[i].classes == first.classes) continue;
    return Error(Errc::invalid_config, "trainer 0 has other images than trainer " + std::to_string(i) + " (" +
                                           first.source + "; " + facts[i].source + "): all need the same");
  }
  return image_training::check_shape(config_.model, first.shape, first.source);
}

checkpoints::Facts Server::facts() const { return facts_of(config_, trainer_facts_, context_.seed(kParameterStream)); }

Result<void> Server::resume() {
  const auto checkpoint = checkpoints::read_checkpoint(*config_.resume, facts());
  if (!checkpoint) return checkpoint.error();
  if (checkpoint->data != data_checksum_) {
    return Error(Errc::invalid_config, config_.resume->string() + ": a checkpoint of a training with other images");
  }
  if (auto resumed = model_->resume(checkpoint->parameters, checkpoint->buffers, checkpoint->optimizer); !resumed) {
    return resumed;
  }
  first_ = checkpoint->step;
  saved_at_ = checkpoint->step;
  context_.report(image_training::resumed_line(first_, config_.resume->string()));
  if (first_ == config_.rounds) context_.report(image_training::nothing_left_line(first_, "rounds"));
  return {};
}

Result<void> Server::train(std::stop_token stop) {
  const RRef<Server> self = context_.self<Server>();
  TrainingOrder order{.model = config_.model,
                      .trainers = static_cast<std::uint32_t>(trainers_.size()),
                      .rounds = config_.rounds,
                      .data_seed = context_.seed("data"),
                      .learning_rate = config_.optimizer.lr};
  if (config_.resume) order.buffers = model_->copy_buffers();
  std::vector<Future<TrainerReport>> running;
  for (const auto& trainer : trainers_) {
    running.push_back(trainer.with({.timeout = base::Duration(0)}).rpc_async<&Trainer::train>(self, order));
    ++order.trainer;
  }
  TrainerReport all;
  std::vector<bool> has_ended(running.size(), false);
  std::optional<Error> first_error;
  for (std::size_t i = 0; i < running.size();) {
    // All are looked at in turn: the loss of a later one may be what an earlier one waits for.
    for (std::size_t of = i; of < running.size() && !first_error; ++of) {
      if (has_ended[of] || !running[of].ready()) continue;
      has_ended[of] = true;
      const auto report = std::move(running[of]).result();
      if (report) {
        all.gradients += report->gradients;
        all.late += report->late;
      } else if (auto lost = lose(static_cast<std::uint32_t>(of), report.error()); !lost) {
        first_error = lost.error();
      }
    }
    if (!first_error && stop.stop_requested()) {
      first_error = Error(Errc::cancelled, "stopped after " + std::to_string(rounds_->version()) + " rounds");
    }
    if (first_error) break;
    close_rounds();
    if (has_ended[i]) {
      ++i;
    } else {
      (void)running[i].wait_for(patience());
    }
  }
  if (first_error) {
    fail(std::exchange(waiting_, {}), *first_error);
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (!has_ended[i]) running[i].cancel();
    }
    return *first_error;
  }
  context_.metric("late_gradients", static_cast<double>(all.late));
  return {};
}

/// A trainer has ended with an error. Returns the error if the training cannot go on.
Result<void> Server::lose(std::uint32_t trainer, const Error& error) {
  if (!is_loss_of_peer(error) || !context_.goes_on_without("trainers")) return error;
  rounds_->lose(trainer);
  context_.log("trainer " + std::to_string(trainer) + " is lost: " + error.text());
  if (rounds_->version() < config_.rounds && !rounds_->can_be_full()) return error;
  return {};
}

/// Returns how long to wait for the end of a trainer until the open round is looked at again.
base::Duration Server::patience() const {
  const base::Duration most = std::chrono::milliseconds(50);
  const auto due = rounds_->closes_at();
  if (!due) return std::min(most, config_.straggler_timeout.value_or(most));
  return std::clamp(*due - clock_.now(), base::Duration(std::chrono::milliseconds(1)), most);
}

Result<Update> Server::pull() {
  if (!rounds_) return not_begun();
  return current(false);
}

Update Server::current(bool counted) const {
  return {.version = rounds_->version(), .counted = counted, .parameters = parameters_};
}

std::vector<Future<Update>> Server::update(const Batch<Contribution>& batch) {
  std::vector<Future<Update>> replies;
  for (const Contribution& contribution : batch) {
    Promise<Update> reply;
    replies.push_back(reply.future());
    take(contribution, std::move(reply));
  }
  close_rounds();
  return replies;
}

void Server::take(Contribution contribution, Promise<Update> reply) {
  if (!rounds_) return static_cast<void>(reply.set(not_begun()));
  if (auto fits = model_->check(contribution.gradients); !fits) return static_cast<void>(reply.set(fits.error()));
  const auto arrival = rounds_->arrive(contribution.trainer, contribution.version, clock_.now());
  if (!arrival) return static_cast<void>(reply.set(arrival.error()));
  if (*arrival == Rounds::Arrival::late) return static_cast<void>(reply.set(current(false)));
  waiting_.push_back({std::move(contribution), std::move(reply)});
}

/// Closes the open round if its time has come, and then those that were filled meanwhile: what follows a round waits
/// for trainers, and gradients arrive while it does.
void Server::close_rounds() {
  if (!rounds_ || is_closing_) return;
  is_closing_ = true;
  for (bool goes_on = true; goes_on && !waiting_.empty() && rounds_->may_close(clock_.now());) {
    std::vector<Waiting> round = std::exchange(waiting_, {});
    const auto closed = close_round(round);
    goes_on = closed.has_value();
    for (Waiting& waiting : round) (void)waiting.reply.set(goes_on ? Result<Update>(current(true)) : closed.error());
  }
  is_closing_ = false;
}

Result<void> Server::close_round(std::vector<Waiting>& round) {
  std::ranges::sort(round, {}, [](const Waiting& waiting) { return waiting.contribution.trainer; });
  if (auto stepped = step(round); !stepped) return stepped;
  rounds_->close();
  parameters_ = model_->copy_parameters();
  return end_round(round);
}

Result<void> Server::step(const std::vector<Waiting>& round) {
  std::vector<const std::vector<at::Tensor>*> gradients;
  double loss = 0;
  for (const Waiting& waiting : round) {
    gradients.push_back(&waiting.contribution.gradients);
    loss += waiting.contribution.loss;
  }
  loss_ = loss / static_cast<double>(round.size());
  if (!std::isfinite(loss_)) {
    return Error(Errc::invalid_config,
                 image_training::diverged_text(rounds_->version() + 1, loss_, config_.optimizer.lr));
  }
  if (auto loaded = model_->load_buffers(round.front().contribution.buffers); !loaded) return loaded;
  return model_->step(gradients);
}

void Server::fail(std::vector<Waiting> waiting, const Error& error) {
  for (Waiting& one : waiting) (void)one.reply.set(error);
}

/// What follows a round before its trainers go on: a measurement, a checkpoint, a line of progress.
Result<void> Server::end_round(const std::vector<Waiting>& round) {
  const std::int64_t version = rounds_->version();
  if (config_.evaluate_every > 0 && version % config_.evaluate_every == 0) {
    const auto accuracy = measure();
    if (!accuracy) return accuracy.error();
  }
  if (config_.checkpoint.every > 0 && version % config_.checkpoint.every == 0) {
    if (auto written = write_checkpoint(); !written) return written;
  }
  show(round);
  return {};
}

/// Lets each trainer that is there classify its part of the test images.
Result<image_training::Accuracy> Server::measure() {
  const std::int64_t version = rounds_->version();
  std::vector<std::uint32_t> there;
  for (std::uint32_t i = 0; i < trainers_.size(); ++i) {
    if (!rounds_->is_lost(i)) there.push_back(i);
  }
  if (there.empty()) return Error(Errc::peer_down, "no trainer is left that could measure the accuracy");
  const std::vector<at::Tensor> buffers = model_->copy_buffers();
  image_training::TestPart part{.parts = static_cast<std::uint32_t>(there.size())};
  std::vector<Future<image_training::Accuracy>> asked;
  for (const std::uint32_t trainer : there) {
    const auto patient = trainers_[trainer].with({.timeout = base::Duration(0)});
    asked.push_back(patient.rpc_async<&Trainer::evaluate>(parameters_, buffers, part));
    ++part.part;
  }
  image_training::Accuracy accuracy;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto of_part = std::move(asked[i]).result();
    if (!of_part) {
      if (auto lost = lose(there[i], of_part.error()); !lost) return lost.error();
      return measure();  // the others have its part, too
    }
    accuracy.right += of_part->right;
    accuracy.images += of_part->images;
  }
  accuracy_ = accuracy;
  measured_at_ = version;
  context_.metric("accuracy", accuracy.share(), {.step = version});
  return accuracy;
}

Result<void> Server::write_checkpoint() {
  if (context_.output_directory().empty()) return {};
  auto optimizer = model_->save_optimizer();
  if (!optimizer) return optimizer.error();
  const checkpoints::ModelCheckpoint checkpoint{.facts = facts(),
                                                .data = data_checksum_,
                                                .step = rounds_->version(),
                                                .parameters = parameters_,
                                                .buffers = model_->copy_buffers(),
                                                .optimizer = *std::move(optimizer)};
  const auto written =
      checkpoints::write_checkpoint(context_.output_directory() / "checkpoints", checkpoint, config_.checkpoint.keep);
  if (!written) return written.error();
  saved_at_ = checkpoint.step;
  context_.log("checkpoint: round " + std::to_string(saved_at_) + " in " + written->string());
  return {};
}

double Server::seconds() const { return std::chrono::duration<double>(clock_.now() - started_).count(); }

void Server::show(const std::vector<Waiting>& round) {
  const std::int64_t version = rounds_->version();
  const double per_round = seconds() / static_cast<double>(version - first_);
  const MetricOptions curve{.step = version};
  context_.metric("loss", loss_, curve);
  context_.metric("gradients", static_cast<double>(round.size()), curve);
  context_.metric("seconds_per_round", per_round);
  const std::string total = std::to_string(config_.rounds);
  std::string line = "round " + std::to_string(version) + " of " + total + "  loss " + format_fixed(loss_, 3) + ", " +
                     std::to_string(round.size()) + " of " + std::to_string(trainers_.size()) + " gradients";
  if (accuracy_) line += ", accuracy " + format_fixed(100 * accuracy_->share(), 1) + " %";
  context_.progress(version, config_.rounds, line + "  " + format_fixed(1e3 * per_round, 1) + " ms/round");
}

Result<void> Server::finish() {
  if (measured_at_ != rounds_->version()) {
    if (auto measured = measure(); !measured) return measured.error();
  }
  if (config_.checkpoint.every > 0 && saved_at_ != rounds_->version()) {
    if (auto written = write_checkpoint(); !written) return written;
  }
  if (rounds_->version() > first_) {
    context_.report("trained: " + std::to_string(rounds_->version()) + " rounds of " +
                    std::to_string(trainers_.size()) + " trainers, loss " + format_fixed(loss_, 3) + ", " +
                    format_fixed(seconds(), 1) + " s");
  }
  context_.report(image_training::accuracy_line(*accuracy_));
  const std::string digest = checkpoints::fingerprint_of(rounds_->version(), parameters_, model_->copy_buffers());
  context_.fingerprint(digest);
  context_.report("fingerprint " + digest);
  if (config_.goal && accuracy_->share() < *config_.goal) {
    return Error(Errc::goal_missed, image_training::missed_text(*accuracy_, *config_.goal));
  }
  return {};
}

}  // namespace caftan::batch_parameter_server

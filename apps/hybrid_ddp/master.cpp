#include "hybrid_ddp/master.hpp"

#include <string>
#include <utility>

#include "caftan/app/place.hpp"
#include "caftan/caftan.hpp"
#include "hybrid_ddp/progress_text.hpp"
#include "hybrid_ddp/requirements.hpp"
#include "hybrid_ddp/trainer.hpp"

namespace caftan::hybrid_ddp {

std::vector<app::MissingRequirement> Master::requirements(const Config& config, const app::RolePlace& place) {
  return find_missing(config, app::used_configs<TrainerConfig>(place, "trainers"),
                      app::stream_seed(place, kParameterStream));
}

Master::Master(RoleContext& context, Config config)
    : context_(context),
      config_(std::move(config)),
      server_(context.use<ParameterServer>("ps")),
      trainers_(context.uses<Trainer>("trainers")) {}

Result<void> Master::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  while (step_ < config_.max_steps) {
    const auto end =
        checkpoints::next_stop(step_, config_.max_steps, {config_.measure_every, config_.checkpoint.every});
    if (auto trained = train_until(end, stop); !trained) return trained;
    if (config_.measure_every > 0 && step_ % config_.measure_every == 0) {
      if (auto measured = measure(); !measured) return measured;
    }
    if (config_.checkpoint.is_due(step_, config_.max_steps)) {
      if (auto written = write_checkpoint(); !written) return written;
    }
  }
  return finish();
}

Result<void> Master::prepare() {
  const auto text = trainers_.open();
  if (!text) return text.error();
  text_ = *text;
  if (auto joined = join(); !joined) return joined;
  if (config_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  }
  context_.report("learns " + std::to_string(text_.classes) + " classes from " + std::to_string(text_.train) +
                  " passages of " + text_.source + ", " + std::to_string(text_.vocabulary) + " words, with " +
                  std::to_string(trainers_.size()) + " trainers over " + name_of(config_.backend));
  return {};
}

Result<void> Master::join() {
  auto made = nn::RemoteModule<WordBags>::try_make<std::int64_t, std::int64_t, bool, std::uint64_t>(
      context_, server_.owner_name(), text_.vocabulary, config_.emb, config_.sparse, context_.seed(kParameterStream));
  if (!made) return made.error();
  embedding_ = *std::move(made);
  if (auto created = embedding_.created().result(); !created) return created;
  return trainers_.join({.backend = config_.backend,
                         .bucket = config_.bucket,
                         .emb = config_.emb,
                         .parameter_seed = context_.seed(kParameterStream),
                         .data_seed = context_.seed("data"),
                         .optimizer = config_.optimizer.name,
                         .lr = config_.optimizer.lr,
                         .ordered = context_.deterministic(),
                         .check_every = config_.check_every},
                        embedding_);
}

checkpoints::Facts Master::facts() const {
  return facts_of(config_, {text_.words, text_.per_class, text_.batch}, trainers_.size(),
                  context_.seed(kParameterStream));
}

Result<void> Master::resume() {
  auto checkpoint = checkpoints::read_checkpoint(*config_.resume, facts());
  if (!checkpoint) return checkpoint.error();
  const std::string place = config_.resume->string();
  if (checkpoint->data != text_.checksum) {
    return Error(Errc::invalid_config, place + ": a checkpoint of a training with other texts");
  }
  if (checkpoint->step > config_.max_steps) {
    return Error(Errc::invalid_config, place + ": it stands at step " + std::to_string(checkpoint->step) +
                                           ", beyond max_steps = " + std::to_string(config_.max_steps));
  }
  const auto optimizers = wire::decode<std::vector<wire::Bytes>>(checkpoint->optimizer);
  if (!optimizers) return Error(optimizers.error().code(), place + ": " + optimizers.error().text());
  if (checkpoint->parameters.empty() || optimizers->size() != trainers_.size()) {
    return Error(Errc::invalid_config, place + ": a checkpoint of another training: it has " +
                                           std::to_string(checkpoint->parameters.size()) +
                                           " parameters, and states of " + std::to_string(optimizers->size()) +
                                           " trainers of " + std::to_string(trainers_.size()));
  }
  if (auto loaded = embedding_.try_load_state_dict({{"weight", checkpoint->parameters.front()}}); !loaded) {
    return loaded;
  }
  std::vector<TrainerState> states;
  for (const wire::Bytes& optimizer : *optimizers) {
    states.push_back(
        {.dense = {checkpoint->parameters.begin() + 1, checkpoint->parameters.end()}, .optimizer = optimizer});
  }
  if (auto loaded = trainers_.load(states); !loaded) return loaded;
  step_ = saved_at_ = checkpoint->step;
  context_.report("resumed: step " + std::to_string(step_) + " of " + place);
  return {};
}

Result<void> Master::train_until(std::int64_t end, const std::stop_token& stop) {
  if (stop.stop_requested()) {
    return Error(Errc::cancelled, "stopped after " + std::to_string(step_) + " steps of each trainer");
  }
  const auto report = trainers_.train({.first = step_, .end = end, .total = config_.max_steps});
  if (!report) return report.error();
  sum_.loss_sum += report->loss_sum;
  sum_.steps += report->steps;
  sum_.seconds += report->seconds;
  sum_.hash = report->hash;
  step_ = end;
  return {};
}

Result<void> Master::measure() {
  const auto accuracy = trainers_.measure();
  if (!accuracy) return accuracy.error();
  accuracy_ = *accuracy;
  measured_at_ = step_;
  context_.metric("accuracy", accuracy_.share(), {.step = step_});
  context_.progress(step_, config_.max_steps, accuracy_line(accuracy_, text_.majority));
  return {};
}

Result<checkpoints::ModelCheckpoint> Master::make_checkpoint() {
  const auto embedding = embedding_.try_state_dict();
  if (!embedding) return embedding.error();
  const auto states = trainers_.save();
  if (!states) return states.error();
  checkpoints::ModelCheckpoint checkpoint{.facts = facts(), .data = text_.checksum, .step = step_};
  for (const nn::NamedTensor& named : *embedding) checkpoint.parameters.push_back(named.tensor);
  for (const at::Tensor& tensor : states->front().dense) checkpoint.parameters.push_back(tensor);
  std::vector<wire::Bytes> optimizers;
  for (const TrainerState& state : *states) optimizers.push_back(state.optimizer);
  auto bytes = wire::encode(optimizers);
  if (!bytes) return bytes.error();
  checkpoint.optimizer = *std::move(bytes);
  return checkpoint;
}

Result<void> Master::write_checkpoint() {
  if (context_.output_directory().empty() || saved_at_ == step_) return {};
  const auto checkpoint = make_checkpoint();
  if (!checkpoint) return checkpoint.error();
  const auto written =
      checkpoints::write_checkpoint(context_.output_directory() / "checkpoints", *checkpoint, config_.checkpoint.keep);
  if (!written) return written.error();
  saved_at_ = step_;
  context_.report("checkpoint: step " + std::to_string(step_) + " in " + written->string());
  return {};
}

Result<void> Master::finish() {
  if (measured_at_ != step_) {
    if (auto measured = measure(); !measured) return measured;
  }
  if (sum_.steps > 0) {
    const double per_trainer = static_cast<double>(sum_.steps) / static_cast<double>(trainers_.size());
    context_.report(trained_line(step_, trainers_.size(), sum_.loss_sum / static_cast<double>(sum_.steps),
                                 1000 * sum_.seconds / per_trainer));
    context_.metric("ms_per_step", 1000 * sum_.seconds / per_trainer);
    context_.report(equal_line(step_, sum_.hash));
  }
  context_.report(accuracy_line(accuracy_, text_.majority));
  const auto last = make_checkpoint();
  if (!last) return last.error();
  const std::string digest = checkpoints::fingerprint_of(step_, last->parameters, {});
  context_.fingerprint(digest);
  context_.report("fingerprint " + digest);
  trainers_.leave();
  if (config_.goal && accuracy_.share() < *config_.goal * text_.majority) {
    return Error(Errc::goal_missed, missed_text(accuracy_, text_.majority, *config_.goal));
  }
  return {};
}

}  // namespace caftan::hybrid_ddp

#include "hybrid_ddp/master.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "caftan/app/seeds.hpp"
#include "caftan/base/peer_loss.hpp"
#include "caftan/caftan.hpp"
#include "hybrid_ddp/progress_text.hpp"
#include "hybrid_ddp/requirements.hpp"

namespace caftan::hybrid_ddp {
namespace {

/// Waits for all; returns their values, or the error that says most: the one that the others only follow from comes
/// first, the loss of a worker before what its peers say of it.
template <class T>
Result<std::vector<T>> all_of(std::vector<Future<T>>& futures) {
  std::vector<T> values;
  std::optional<Error> error;
  for (Future<T>& future : futures) {
    Result<T> result = std::move(future).result();
    if (result) {
      values.push_back(*std::move(result));
    } else if (!error || (is_loss_of_peer(result.error()) && !is_loss_of_peer(*error))) {
      error = result.error();
    }
  }
  if (error) return *error;
  return values;
}
Result<void> all_of(std::vector<Future<void>>& futures) {
  std::optional<Error> error;
  for (Future<void>& future : futures) {
    const Result<void> result = std::move(future).result();
    if (!result && (!error || (is_loss_of_peer(result.error()) && !is_loss_of_peer(*error)))) error = result.error();
  }
  return error ? Result<void>(*error) : Result<void>();
}

/// A call that lasts as long as the training does.
constexpr CallOptions kPatient{.timeout = base::Duration(0)};

}  // namespace

std::vector<app::MissingRequirement> Master::requirements(const Config& config, const app::RolePlace& place) {
  constexpr std::uint32_t kReplica = 0;
  return find_missing(config, trainers_of(place),
                      app::stream_seed(place.root_seed, place.role, kReplica, kParameterStream));
}

Master::Master(RoleContext& context, Config config)
    : context_(context),
      config_(std::move(config)),
      server_(context.use<ParameterServer>("ps")),
      trainers_(context.uses<Trainer>("trainers")) {}

Result<void> Master::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  while (step_ < config_.max_steps) {
    if (auto trained = train_until(next_stop(), stop); !trained) return trained;
    const bool is_last = step_ == config_.max_steps;
    if (config_.measure_every > 0 && step_ % config_.measure_every == 0) {
      if (auto measured = measure(); !measured) return measured;
    }
    if (config_.checkpoint.every > 0 && (is_last || step_ % config_.checkpoint.every == 0)) {
      if (auto written = write_checkpoint(); !written) return written;
    }
  }
  return finish();
}

Result<void> Master::prepare() {
  if (auto opened = open(); !opened) return opened;
  if (auto joined = join(); !joined) return joined;
  if (config_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  }
  context_.report("learns " + std::to_string(text_.classes) + " classes from " + std::to_string(text_.train) +
                  " passages of " + text_.source + ", " + std::to_string(text_.vocabulary) + " words, with " +
                  std::to_string(trainers_.size()) + " trainers over " + name_of(config_.backend));
  return {};
}

/// Lets the trainers read their texts, which must be the same.
Result<void> Master::open() {
  std::vector<Future<TextFacts>> opening;
  for (const auto& trainer : trainers_) opening.push_back(trainer.with(kPatient).rpc_async<&Trainer::open>());
  const auto texts = all_of(opening);
  if (!texts) return texts.error();
  text_ = texts->front();
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const TextFacts& other = (*texts)[i];
    if (other.checksum == text_.checksum && other.words == text_.words && other.per_class == text_.per_class) continue;
    return Error(Errc::invalid_config, "trainer 0 has other passages than trainer " + std::to_string(i) + " (" +
                                           text_.source + "; " + other.source + "): all need the same");
  }
  return {};
}

Result<void> Master::join() {
  auto made = nn::RemoteModule<WordBags>::try_make<std::int64_t, std::int64_t, bool, std::uint64_t>(
      context_, server_.owner_name(), text_.vocabulary, config_.emb, config_.sparse, context_.seed(kParameterStream));
  if (!made) return made.error();
  embedding_ = *std::move(made);
  if (auto created = embedding_.created().result(); !created) return created;
  JoinOrder order{.backend = static_cast<std::uint8_t>(config_.backend),
                  .bucket = config_.bucket,
                  .emb = config_.emb,
                  .parameter_seed = context_.seed(kParameterStream),
                  .data_seed = context_.seed("data"),
                  .optimizer = static_cast<std::uint8_t>(config_.optimizer.name),
                  .lr = config_.optimizer.lr,
                  .ordered = context_.deterministic(),
                  .check_every = config_.check_every};
  for (const auto& trainer : trainers_) order.members.push_back(trainer.owner_name());
  std::vector<Future<void>> joining;
  for (const auto& trainer : trainers_) {
    joining.push_back(trainer.with(kPatient).rpc_async<&Trainer::join>(order, embedding_));
    ++order.rank;
  }
  return all_of(joining);
}

image_training::Facts Master::facts() const {
  return facts_of(config_, {text_.words, text_.per_class, text_.batch}, trainers_.size(),
                  context_.seed(kParameterStream));
}

Result<void> Master::resume() {
  auto checkpoint = image_training::read_checkpoint(*config_.resume, facts());
  if (!checkpoint) return checkpoint.error();
  const std::string place = config_.resume->string();
  if (checkpoint->data != text_.checksum) {
    return Error(Errc::invalid_config, place + ": a checkpoint of a training with other texts");
  }
  const auto optimizers = wire::decode<std::vector<wire::Bytes>>(checkpoint->optimizer);
  if (!optimizers) return optimizers.error();
  if (checkpoint->parameters.empty() || optimizers->size() != trainers_.size() ||
      checkpoint->step > config_.max_steps) {
    return Error(Errc::invalid_config, place + ": it does not fit this training");
  }
  if (auto loaded = embedding_.try_load_state_dict({{"weight", checkpoint->parameters.front()}}); !loaded) {
    return loaded;
  }
  std::vector<Future<void>> loading;
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    const TrainerState state{.dense = {checkpoint->parameters.begin() + 1, checkpoint->parameters.end()},
                             .optimizer = (*optimizers)[i]};
    loading.push_back(trainers_[i].rpc_async<&Trainer::load>(state));
  }
  if (auto loaded = all_of(loading); !loaded) return loaded;
  step_ = saved_at_ = checkpoint->step;
  context_.report("resumed: step " + std::to_string(step_) + " of " + place);
  return {};
}

/// Returns the step at which all trainers have to wait next: for a measurement, a checkpoint, or the end.
std::int64_t Master::next_stop() const {
  std::int64_t stop = config_.max_steps;
  for (const std::int64_t every : {config_.measure_every, config_.checkpoint.every}) {
    if (every > 0) stop = std::min(stop, (step_ / every + 1) * every);
  }
  return stop;
}

Result<void> Master::train_until(std::int64_t end, const std::stop_token& stop) {
  if (stop.stop_requested()) {
    return Error(Errc::cancelled, "stopped after " + std::to_string(step_) + " steps of each trainer");
  }
  const TrainOrder order{.first = step_, .end = end, .total = config_.max_steps};
  std::vector<Future<TrainReport>> running;
  for (const auto& trainer : trainers_) running.push_back(trainer.with(kPatient).rpc_async<&Trainer::train>(order));
  const auto reports = all_of(running);
  if (!reports) return reports.error();
  double slowest = 0;
  for (const TrainReport& report : *reports) {
    sum_.loss_sum += report.loss_sum;
    sum_.steps += report.steps;
    slowest = std::max(slowest, report.seconds);
    if (report.hash == reports->front().hash) continue;
    return Error(Errc::invalid_config, "the replicas differ after step " + std::to_string(end));
  }
  sum_.seconds += slowest;
  sum_.hash = reports->front().hash;
  step_ = end;
  return {};
}

Result<void> Master::measure() {
  std::vector<Future<Accuracy>> measuring;
  for (const auto& trainer : trainers_) measuring.push_back(trainer.with(kPatient).rpc_async<&Trainer::measure>());
  const auto parts = all_of(measuring);
  if (!parts) return parts.error();
  accuracy_ = {};
  for (const Accuracy& part : *parts) {
    accuracy_.right += part.right;
    accuracy_.passages += part.passages;
  }
  measured_at_ = step_;
  context_.metric("accuracy", accuracy_.share(), {.step = step_});
  context_.progress(step_, config_.max_steps, accuracy_line(accuracy_, text_.majority));
  return {};
}

Result<image_training::ModelCheckpoint> Master::make_checkpoint() {
  const auto embedding = embedding_.try_state_dict();
  if (!embedding) return embedding.error();
  std::vector<Future<TrainerState>> saving;
  for (const auto& trainer : trainers_) saving.push_back(trainer.rpc_async<&Trainer::save>());
  const auto states = all_of(saving);
  if (!states) return states.error();
  image_training::ModelCheckpoint checkpoint{.facts = facts(), .data = text_.checksum, .step = step_};
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
  const auto written = image_training::write_checkpoint(context_.output_directory() / "checkpoints", *checkpoint,
                                                        config_.checkpoint.keep);
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
  const std::string digest = image_training::fingerprint_of(step_, last->parameters, {});
  context_.fingerprint(digest);
  context_.report("fingerprint " + digest);
  for (const auto& trainer : trainers_) (void)trainer.try_rpc_sync<&Trainer::leave>();
  if (config_.goal && accuracy_.share() < *config_.goal * text_.majority) {
    return Error(Errc::goal_missed, missed_text(accuracy_, text_.majority, *config_.goal));
  }
  return {};
}

}  // namespace caftan::hybrid_ddp

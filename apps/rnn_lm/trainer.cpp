#include "trainer.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include "caftan/app/seeds.hpp"
#include "caftan/caftan.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "requirements.hpp"

namespace caftan::rnn_lm {
namespace {

constexpr const char* kParameterStream = "parameters";

optim::Algorithm algorithm_of(const OptimizerConfig& config) {
  if (config.name == OptimizerConfig::Name::sgd) return optim::SGD{.lr = config.lr};
  return optim::Adam{.lr = config.lr};
}

}  // namespace

std::vector<app::MissingRequirement> Trainer::requirements(const Config& config, const app::RolePlace& place) {
  constexpr std::uint32_t kReplica = 0;
  return find_missing(config,
                      {.parameter_seed = app::stream_seed(place.root_seed, place.role, kReplica, kParameterStream),
                       .memory = memory_of_this_machine()});
}

Trainer::Trainer(RoleContext& context, Config config)
    : context_(context),
      config_(std::move(config)),
      embedding_(context.use<ParameterServer>("embedding")),
      decoder_(context.use<ParameterServer>("decoder")),
      ends_(make_ends()) {}

Ends Trainer::make_ends() const {
  return {.embed = [embedding = embedding_](
                       const at::Tensor& characters,
                       const Mode& mode) { return embedding.try_rpc_sync<&ParameterServer::embed>(characters, mode); },
          .decode = [decoder = decoder_](
                        const at::Tensor& hidden,
                        const Mode& mode) { return decoder.try_rpc_sync<&ParameterServer::decode>(hidden, mode); }};
}

Result<void> Trainer::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  while (training_->state().step < config_.max_steps) {
    if (stop.stop_requested()) {
      return Error(Errc::cancelled, "stopped after " + std::to_string(training_->state().step) + " steps");
    }
    if (auto stepped = train_step(); !stepped) return stepped;
    const std::int64_t step = training_->state().step;
    if (step % config_.validate_every == 0) {
      if (auto validated = validate(); !validated) return validated;
    }
    if (config_.checkpoint.every > 0 && step % config_.checkpoint.every == 0) {
      if (auto written = write_checkpoint(); !written) return written;
    }
  }
  return finish();
}

Result<void> Trainer::prepare() {
  auto training = Training::make(config_, {.parameters = context_.seed(kParameterStream),
                                           .dropout = context_.seed("dropout"),
                                           .sample = context_.seed("sample")});
  if (!training) return training.error();
  training_.emplace(*std::move(training));
  const Text& text = training_->text();
  context_.log("learns " + std::to_string(text.train_size) + " characters, validates with " +
               std::to_string(text.valid_size) + ", " + std::to_string(text.vocabulary.size()) +
               " different ones, of " + text.source);

  std::vector<RRef<at::Tensor>> parameters;
  for (const at::Tensor& parameter : training_->parameters()) parameters.push_back(context_.make_rref(parameter));
  for (const auto& [part, server] : {std::pair(Part::embedding, embedding_), std::pair(Part::decoder, decoder_)}) {
    const auto opened = server.try_rpc_sync<&ParameterServer::open>(part, training_->shape());
    if (!opened) return opened.error();
    parameters.insert(parameters.end(), opened->begin(), opened->end());
  }
  optim::StepOptions options;
  options.clip_norm = config_.optimizer.clip;
  auto optimizer = optim::DistributedOptimizer::try_make(
      context_, {{std::move(parameters), algorithm_of(config_.optimizer)}}, options);
  if (!optimizer) return optimizer.error();
  optimizer_.emplace(*std::move(optimizer));

  if (config_.resume) {
    if (auto resumed = resume(*config_.resume); !resumed) return resumed;
  }
  first_step_ = training_->state().step;
  first_traffic_ = traffic();
  started_ = clock_.now();
  return {};
}

Result<void> Trainer::resume(const std::filesystem::path& path) {
  const auto checkpoint = read_checkpoint(path, facts_of(config_, *training_));
  if (!checkpoint) return checkpoint.error();
  if (auto fits = check_steps(checkpoint->state, config_.max_steps); !fits) return fits;
  for (const auto& [part, server, values] : {std::tuple(Part::embedding, embedding_, checkpoint->embedding),
                                             std::tuple(Part::decoder, decoder_, checkpoint->decoder)}) {
    if (auto loaded = server.try_rpc_sync<&ParameterServer::load>(part, values); !loaded) return loaded;
  }
  const TrainingState& state = checkpoint->state;
  if (auto resumed = training_->resume(state, checkpoint->trainer); !resumed) return resumed;
  if (auto loaded = optimizer_->try_load(checkpoint->optimizer); !loaded) return loaded;
  context_.report(resumed_line(state.step, path.string(), state.learning_rate, config_.optimizer.lr));
  if (state.step == config_.max_steps) context_.report(nothing_left_line(state.step));
  return {};
}

Result<void> Trainer::train_step() {
  const auto context = autograd::Context::try_make(context_);
  if (!context) return context.error();
  const auto loss = training_->forward(ends_);
  if (!loss) return loss.error();
  if (const auto value = loss->item<double>(); !std::isfinite(value)) return diverged("loss", value);
  if (auto done = context->try_backward({*loss}); !done) return done;
  if (auto stepped = optimizer_->try_step(*context); !stepped) {
    const double norm = optimizer_->last_report().norm;
    return std::isfinite(norm) ? stepped.error() : diverged("norm of all gradients", norm);
  }
  training_->end_step(loss->detach());
  show(loss->item<double>());
  return {};
}

Error Trainer::diverged(const char* what, double value) const {
  const TrainingState& state = training_->state();
  return {Errc::invalid_config, diverged_text(state.step + 1, what, value, state.learning_rate)};
}

double Trainer::traffic() const {
  const auto caller = context_.alive();
  if (!caller) return 0;  // the worker is ending
  const WorkerCounters counters = (*caller)->worker().counters();
  return static_cast<double>(counters.bytes_out + counters.bytes_in);
}

void Trainer::show(double loss) {
  const std::int64_t step = training_->state().step;
  const auto steps = static_cast<double>(step - first_step_);
  const double seconds = std::chrono::duration<double>(clock_.now() - started_).count();
  Standing standing{.step = step, .max_steps = config_.max_steps, .train_loss = loss};
  if (training_->state().validated_at >= 0) standing.valid_loss = training_->state().valid_loss;
  standing.characters_per_s = steps * static_cast<double>(config_.batch * config_.bptt) / seconds;
  standing.ms_per_step = 1e3 * seconds / steps;
  standing.bytes_per_step = (traffic() - first_traffic_) / steps;
  standing.seconds = seconds;
  context_.metric("train_loss", loss, {.step = step});
  context_.metric("characters_per_s", standing.characters_per_s);
  context_.metric("ms_per_step", standing.ms_per_step);
  context_.metric("bytes_per_step", standing.bytes_per_step);
  context_.progress(step, config_.max_steps, step_line(standing));
}

Result<void> Trainer::validate() {
  const auto point = training_->validate(ends_);
  if (!point) return point.error();
  const TrainingState& state = training_->state();
  optimizer_->set_lr(0, state.learning_rate);
  const MetricOptions curve{.step = state.step};
  context_.metric("mean_train_loss", point->train_loss, curve);
  context_.metric("valid_loss", point->valid_loss, curve);
  context_.metric("perplexity", perplexity(point->valid_loss), curve);
  context_.metric("learning_rate", state.learning_rate, curve);
  return {};
}

Result<Checkpoint> Trainer::make_checkpoint() {
  Checkpoint checkpoint{.model = facts_of(config_, *training_), .state = training_->state()};
  checkpoint.trainer = training_->snapshot();
  auto embedding = embedding_.rpc_async<&ParameterServer::snapshot>(Part::embedding);
  auto decoder = decoder_.rpc_async<&ParameterServer::snapshot>(Part::decoder);
  auto optimizer = optimizer_->try_save();
  auto embedding_values = std::move(embedding).result();
  auto decoder_values = std::move(decoder).result();
  if (!embedding_values) return embedding_values.error();
  if (!decoder_values) return decoder_values.error();
  if (!optimizer) return optimizer.error();
  checkpoint.embedding = *std::move(embedding_values);
  checkpoint.decoder = *std::move(decoder_values);
  checkpoint.optimizer = *std::move(optimizer);
  return checkpoint;
}

Result<void> Trainer::write_checkpoint() {
  if (context_.output_directory().empty()) return {};
  const auto checkpoint = make_checkpoint();
  if (!checkpoint) return checkpoint.error();
  const auto written =
      rnn_lm::write_checkpoint(context_.output_directory() / "checkpoints", *checkpoint, config_.checkpoint.keep);
  if (!written) return written.error();
  saved_at_ = checkpoint->state.step;
  context_.report("checkpoint: step " + std::to_string(saved_at_) + " in " + written->string());
  return {};
}

Result<void> Trainer::finish() {
  if (training_->state().validated_at != training_->state().step) {
    if (auto validated = validate(); !validated) return validated;
  }
  if (config_.checkpoint.every > 0 && saved_at_ != training_->state().step) {
    if (auto written = write_checkpoint(); !written) return written;
  }
  const double loss = training_->state().valid_loss;
  Standing standing{.step = training_->state().step, .max_steps = config_.max_steps, .valid_loss = loss};
  standing.seconds = std::chrono::duration<double>(clock_.now() - started_).count();
  context_.report(trained_line(standing));
  if (config_.generate.chars > 0) {
    const auto sample = training_->generate(ends_, config_.generate);
    if (!sample) return sample.error();
    context_.report("sample:");
    for (const std::string& line : indented_lines(*sample)) context_.report(line);
  }
  const auto last = make_checkpoint();
  if (!last) return last.error();
  const std::string digest = fingerprint_of(*last);
  context_.fingerprint(digest);
  context_.report("fingerprint " + digest);
  if (config_.goal && !(loss <= *config_.goal)) return Error(Errc::goal_missed, missed_text(loss, *config_.goal));
  return {};
}

}  // namespace caftan::rnn_lm

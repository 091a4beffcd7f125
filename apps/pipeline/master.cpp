#include "pipeline/master.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "caftan/app/place.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/caftan.hpp"
#include "image_training/algorithm.hpp"
#include "image_training/report_text.hpp"
#include "pipeline/batch_run.hpp"
#include "pipeline/cuts.hpp"
#include "pipeline/micro_batches.hpp"
#include "pipeline/requirements.hpp"
#include "pipeline/stage.hpp"

namespace caftan::pipeline {
namespace {

constexpr const char* kPicture = "pipeline.svg";

}  // namespace

std::vector<app::MissingRequirement> Master::requirements(const Config& config, const app::RolePlace& place) {
  return find_missing(config, app::count_used(place, "stages"), app::stream_seed(place, kParameterStream));
}

Master::Master(RoleContext& context, Config config) : context_(context), config_(std::move(config)) {
  for (const RRef<Stage>& stage : context_.uses<Stage>("stages")) workers_.push_back(stage.owner_name());
}

Result<void> Master::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  if (auto trained = train(stop); !trained) return trained;
  return finish();
}

Result<void> Master::prepare() {
  const auto units = cut_model(config_);
  if (!units) return units.error();
  if (auto enough = check_workers(config_, workers_.size()); !enough) return enough;
  auto images = Images::make(config_, context_.seed("data"));
  if (!images) return images.error();
  images_.emplace(*std::move(images));
  if (auto made = make_stages(*units); !made) return made;
  if (config_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  }
  standing_.batches = config_.batches;
  context_.report("trains " + name_of(config_.model) + " in " + std::to_string(workers_.size()) + " stages with " +
                  std::to_string(cut_batch(config_).value().size()) + " micro-batches of " +
                  std::to_string(config_.batch) + " images, " + name_of(config_.schedule) +
                  (config_.checkpoint_activations ? ", checkpointed" : "") + ", " + images_->data().source);
  return {};
}

/// Makes the stages at their workers.
Result<void> Master::make_stages(const std::vector<models::UnitRange>& units) {
  StagedModel::Options options{.home = context_.name(),
                               .spec = {.model = {.model = config_.model,
                                                  .hidden = config_.mlp.hidden,
                                                  .dropout = config_.mlp.dropout,
                                                  .inputs = images_->numbers(),
                                                  .classes = images_->data().classes,
                                                  .parameter_seed = context_.seed(kParameterStream),
                                                  .dropout_seed = context_.seed("dropout")},
                                        .checkpoints = config_.checkpoint_activations},
                               .algorithm = image_training::algorithm_of(config_.optimizer)};
  const std::vector<std::string> names = unit_names(config_);
  for (std::size_t i = 0; i < units.size(); ++i) {
    options.places.push_back({workers_[i], units[i]});
    summaries_.push_back({.name = workers_[i], .units = range_name(names, units[i])});
  }
  auto made = StagedModel::try_make(context_, options);
  if (!made) return made.error();
  model_.emplace(*std::move(made));
  return {};
}

/// Goes on from a checkpoint, wherever the model was cut when it was written.
Result<void> Master::resume() {
  const auto checkpoint =
      checkpoints::read_checkpoint(*config_.resume, facts_of(config_, context_.seed(kParameterStream)));
  if (!checkpoint) return checkpoint.error();
  const std::string file = config_.resume->string();
  if (checkpoint->data != images_->data().checksum) {
    return Error(Errc::invalid_config, file + ": a checkpoint of a training with other images");
  }
  if (checkpoint->step > config_.batches) {
    return Error(Errc::invalid_config, file + ": it stands at batch " + std::to_string(checkpoint->step) +
                                           ", beyond batches = " + std::to_string(config_.batches));
  }
  if (auto loaded = model_->load(*checkpoint, file); !loaded) return loaded;
  const auto& own = config_.optimizer;
  model_->optimizer().set_lr(0, own.lr);
  if (own.name == image_training::OptimizerConfig::Name::sgd) model_->optimizer().set_momentum(0, own.momentum);
  standing_.batch = first_ = saved_at_ = checkpoint->step;
  context_.report(image_training::resumed_line(standing_.batch, file));
  if (standing_.batch == config_.batches) {
    context_.report(image_training::nothing_left_line(standing_.batch, "batches"));
  }
  return {};
}

Result<void> Master::train(const std::stop_token& stop) {
  while (standing_.batch < config_.batches) {
    if (stop.stop_requested()) {
      return Error(Errc::cancelled, "stopped after " + std::to_string(standing_.batch) + " batches");
    }
    if (auto trained = train_batch(stop); !trained) return trained;
    if (config_.checkpoint.is_due(standing_.batch, config_.batches)) {
      if (auto written = write_checkpoint(); !written) return written;
    }
  }
  return {};
}

Result<void> Master::train_batch(const std::stop_token& stop) {
  const base::SteadyClock clock;
  const base::TimePoint started = clock.now();
  const double traffic_before = traffic();
  const auto taken = images_->batch(standing_.batch);
  BatchRun run(context_, model_->stages(), config_.schedule,
               {.step = static_cast<std::uint64_t>(standing_.batch),
                .images = taken.images,
                .labels = taken.labels,
                .pieces = cut_batch(config_).value()});
  const auto loss = run.run(model_->optimizer(), stop);
  if (!loss) return loss.error();
  const double seconds = std::chrono::duration<double>(clock.now() - started).count();
  auto done = model_->reports();
  if (!done) return done.error();
  ++standing_.batch;
  context_.metric("master_bytes", traffic() - traffic_before, {.step = standing_.batch});
  if (!std::isfinite(*loss)) {
    return Error(Errc::invalid_config, image_training::diverged_text(standing_.batch, *loss, config_.optimizer.lr));
  }
  return note_batch(*loss, seconds, run.window(), *std::move(done));
}

Result<void> Master::note_batch(double loss, double seconds, double window, std::vector<StageReport> reports) {
  const MetricOptions curve{.step = standing_.batch};
  seconds_ += seconds;
  const auto batches = static_cast<double>(standing_.batch - first_);
  double bubbles = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    StageSummary& summary = summaries_[i];
    const double idle = idle_share(reports[i].works, window);
    summary.bubble += idle;
    bubbles += summary.bubble / batches;
    summary.most_held = std::max(summary.most_held, reports[i].most_held);
    summary.memory = reports[i].memory;
    summary.peak_memory = reports[i].peak_memory;
    context_.metric("bubble_" + std::to_string(i), idle);
    context_.metric("peak_memory_mb_" + std::to_string(i), static_cast<double>(reports[i].peak_memory) / 1e6);
  }
  last_ = std::move(reports);
  standing_.loss = loss;
  standing_.s_per_batch = seconds_ / batches;
  standing_.bubble = bubbles / static_cast<double>(summaries_.size());
  context_.metric("train_loss", loss, curve);
  context_.metric("s_per_batch", standing_.s_per_batch);
  context_.metric("bubble", standing_.bubble);
  context_.progress(standing_.batch, standing_.batches, batch_line(standing_));
  return {};
}

double Master::traffic() const {
  const auto caller = context_.alive();
  if (!caller) return 0;  // the worker is ending
  const WorkerCounters counters = (*caller)->worker().counters();
  return static_cast<double>(counters.bytes_out + counters.bytes_in);
}

Result<void> Master::write_checkpoint() {
  if (context_.output_directory().empty() || saved_at_ == standing_.batch) return {};
  auto optimizer = model_->optimizer().try_save();
  if (!optimizer) return optimizer.error();
  auto tensors = model_->tensors();
  if (!tensors) return tensors.error();
  const checkpoints::ModelCheckpoint checkpoint{.facts = facts_of(config_, context_.seed(kParameterStream)),
                                                .data = images_->data().checksum,
                                                .step = standing_.batch,
                                                .parameters = std::move(tensors->parameters),
                                                .buffers = std::move(tensors->buffers),
                                                .optimizer = *std::move(optimizer)};
  const auto written =
      checkpoints::write_checkpoint(context_.output_directory() / "checkpoints", checkpoint, config_.checkpoint.keep);
  if (!written) return written.error();
  saved_at_ = standing_.batch;
  context_.report("checkpoint: batch " + std::to_string(saved_at_) + " in " + written->string());
  return {};
}

/// Lets the stages classify test images, in evaluation mode.
Result<void> Master::measure() {
  if (config_.test_images == 0) return {};
  std::vector<RemoteStage> stages;
  for (const RemoteStage& stage : model_->stages()) {
    stages.push_back(stage.with({.timeout = base::Duration(0)}));
    stages.back().eval();
  }
  const c10::NoGradGuard no_grad;
  const auto accuracy = images_->measure(config_.test_images, [&](const at::Tensor& images) -> Result<at::Tensor> {
    auto at = context_.try_remote<&keep>(workers_.front(), images);
    for (std::size_t i = 0; i < stages.size() && at; ++i) {
      at = stages[i].try_rpc_sync<&StageModule::forward>(*at, MicroBatch{});
    }
    if (!at) return at.error();
    return at->try_to_here();
  });
  if (!accuracy) return accuracy.error();
  accuracy_ = *accuracy;
  context_.metric("accuracy", accuracy->share(), {.step = standing_.batch});
  return {};
}

/// Draws what the stages did in the last batch.
Result<void> Master::draw() const {
  if (context_.output_directory().empty() || last_.empty()) return {};
  std::vector<std::string> names;
  std::vector<std::vector<Work>> works;
  for (std::size_t i = 0; i < last_.size(); ++i) {
    names.push_back(summaries_[i].name + " (" + summaries_[i].units + ")");
    works.push_back(last_[i].works);
  }
  const auto picture =
      draw_batch("batch " + std::to_string(standing_.batch) + ", " + name_of(config_.schedule), names, works);
  if (!picture) return picture.error();
  const std::filesystem::path file = context_.output_directory() / kPicture;
  std::ofstream stream(file, std::ios::binary);
  stream << *picture;
  stream.close();
  if (!stream) return Error(Errc::io_error, "cannot write " + file.string());
  context_.report("picture of the last batch: " + file.string());
  return {};
}

Result<void> Master::finish() {
  if (auto measured = measure(); !measured) return measured;
  if (standing_.batch > first_) {
    context_.report(trained_line(standing_, seconds_));
    std::multiset<std::int64_t> processes{::getpid()};
    for (const StageReport& report : last_) processes.insert(report.process);
    for (std::size_t i = 0; i < summaries_.size(); ++i) {
      summaries_[i].bubble /= static_cast<double>(standing_.batch - first_);
      summaries_[i].is_apart = processes.count(last_[i].process) == 1;
      context_.report(stage_line(summaries_[i]));
    }
    if (auto drawn = draw(); !drawn) return drawn;
  }
  if (accuracy_) context_.report(image_training::accuracy_line(*accuracy_));
  const auto tensors = model_->tensors();
  if (!tensors) return tensors.error();
  const std::string digest = checkpoints::fingerprint_of(standing_.batch, tensors->parameters, tensors->buffers);
  context_.fingerprint(digest);
  context_.report("fingerprint " + digest);
  if (config_.goal && accuracy_->share() < *config_.goal) {
    return Error(Errc::goal_missed, image_training::missed_text(*accuracy_, *config_.goal));
  }
  return {};
}

}  // namespace caftan::pipeline

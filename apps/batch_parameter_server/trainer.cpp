#include "batch_parameter_server/trainer.hpp"

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "batch_parameter_server/server.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "image_training/report_text.hpp"
#include "image_training/requirements.hpp"

namespace caftan::batch_parameter_server {

std::vector<app::MissingRequirement> Trainer::requirements(const Config& config) {
  return image_training::find_missing(config);
}

Trainer::Trainer(RoleContext& context, Config config) : context_(context), config_(std::move(config)) {}

Result<DataFacts> Trainer::open() {
  auto data = image_data::read_data(config_.data);
  if (!data) return data.error();
  data_.emplace(*std::move(data));
  context_.log("learns from " + data_->source);
  return DataFacts{.settings = image_training::facts_of(config_),
                   .source = data_->source,
                   .classes = data_->classes,
                   .shape = data_->train.shape,
                   .checksum = data_->checksum};
}

Result<void> Trainer::prepare(const TrainingOrder& order) {
  if (!data_) return Error(Errc::bad_arguments, "this trainer has not read its images");
  auto model = models::make_model(order.model, data_->classes, {.dropout = context_.seed("dropout")});
  if (!model) return model.error();
  auto batches = image_data::Batches::make({.images = data_->train.size(),
                                            .batch = config_.batch,
                                            .trainer = order.trainer,
                                            .trainers = order.trainers,
                                            .partition = config_.data.partition,
                                            .seed = order.data_seed});
  if (!batches) return batches.error();
  learner_.emplace(*std::move(model), *data_, *std::move(batches));
  return order.buffers.empty() ? Result<void>() : learner_->load_buffers(order.buffers);
}

Result<TrainerReport> Trainer::train(RRef<Server> server, TrainingOrder order) {
  if (auto prepared = prepare(order); !prepared) return prepared.error();
  auto update = server.try_rpc_sync<&Server::pull>();
  if (!update) return update.error();
  const base::SteadyClock clock;
  const base::TimePoint started = clock.now();
  TrainerReport report;
  while (update->version < order.rounds) {
    if (update->version < 0) return Error(Errc::bad_arguments, "the server's model has a negative version");
    if (auto loaded = learner_->load_parameters(update->parameters); !loaded) return loaded.error();
    auto gradients = learner_->compute(update->version);
    if (!std::isfinite(gradients.loss)) {
      return Error(Errc::invalid_config,
                   image_training::diverged_text(update->version + 1, gradients.loss, order.learning_rate));
    }
    const Contribution contribution{.trainer = order.trainer,
                                    .version = update->version,
                                    .loss = gradients.loss,
                                    .gradients = std::move(gradients.values),
                                    .buffers = learner_->copy_buffers()};
    update = ask(server, contribution);
    if (!update) return update.error();
    ++report.gradients;
    if (!update->counted) ++report.late;
    const double seconds = std::chrono::duration<double>(clock.now() - started).count();
    const double rate = static_cast<double>(report.gradients * config_.batch) / seconds;
    context_.metric("train_loss", contribution.loss, {.step = contribution.version + 1});
    context_.metric("images_per_s", rate);
    context_.progress(update->version, order.rounds,
                      "round " + std::to_string(update->version) + " of " + std::to_string(order.rounds) + "  loss " +
                          format_fixed(contribution.loss, 3) + "  " + format_fixed(rate, 1) + " images/s");
  }
  return report;
}

/// Hands a gradient over and waits for the end of its round. A round lasts as long as its slowest trainer: the wait has
/// no time-out, and ends when the run stops or the server is lost.
Result<Update> Trainer::ask(const RRef<Server>& server, const Contribution& contribution) const {
  auto update = server.with({.timeout = base::Duration(0)}).rpc_async<&Server::update>(contribution);
  const std::stop_token stop = context_.stop_token();
  while (!update.wait_for(std::chrono::milliseconds(100))) {
    if (!stop.stop_requested()) continue;
    update.cancel();
    return Error(Errc::cancelled, "stopped at version " + std::to_string(contribution.version));
  }
  return std::move(update).result();
}

Result<image_training::Accuracy> Trainer::evaluate(std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers,
                                                   image_training::TestPart part) {
  if (!learner_) return Error(Errc::bad_arguments, "this trainer has not begun to train");
  if (part.part >= part.parts) return Error(Errc::bad_arguments, "there is no such part of the test images");
  // The parameters may stay: `train` takes those of the reply that it waits for. The running statistics go on.
  const std::vector<at::Tensor> own = learner_->copy_buffers();
  if (auto loaded = learner_->load_parameters(parameters); !loaded) return loaded.error();
  if (auto loaded = learner_->load_buffers(buffers); !loaded) return loaded.error();
  const image_training::Accuracy accuracy = learner_->measure(part);
  if (auto loaded = learner_->load_buffers(own); !loaded) return loaded.error();
  return accuracy;
}

}  // namespace caftan::batch_parameter_server

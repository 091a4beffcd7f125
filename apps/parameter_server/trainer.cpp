#include "parameter_server/trainer.hpp"

#include <ATen/ops/cross_entropy_loss.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "image_training/report_text.hpp"
#include "image_training/requirements.hpp"

namespace caftan::parameter_server {
namespace {

Error not_ready() { return {Errc::bad_arguments, "this trainer has no images or no model yet"}; }

/// Returns whether the mode refused a gradient that can be computed again.
bool is_refusal(const Error& error) {
  return error.code() == Errc::stale_gradient || error.code() == Errc::round_closed ||
         error.code() == Errc::lease_conflict;
}

}  // namespace

std::vector<app::MissingRequirement> Trainer::requirements(const Config& config) {
  return image_training::find_missing(config);
}

Trainer::Trainer(RoleContext& context, Config config) : context_(context), config_(std::move(config)) {}

Result<DataFacts> Trainer::open(OpenOrder order) {
  auto data = image_data::read_data(config_.data);
  if (!data) return data.error();
  auto batches = image_data::Batches::make({.images = data->train.size(),
                                            .batch = config_.batch,
                                            .trainer = order.trainer,
                                            .trainers = order.trainers,
                                            .partition = config_.data.partition,
                                            .seed = order.data_seed});
  if (!batches) return batches.error();
  order_ = order;
  data_.emplace(*std::move(data));
  batches_.emplace(*std::move(batches));
  context_.log("learns from " + std::to_string(batches_->size()) + " images of " + data_->source);
  return DataFacts{.settings = image_training::facts_of(config_),
                   .source = data_->source,
                   .steps_per_epoch = batches_->per_epoch(),
                   .classes = data_->classes,
                   .shape = data_->train.shape,
                   .checksum = data_->checksum};
}

Result<void> Trainer::join(nn::SharedModule<ServedModel> model) {
  // A round, or the turn of another trainer, lasts as long as it does: no wait for the model has a time-out.
  model_ = model.with({.timeout = base::Duration(0)});
  return model_.try_join(order_.trainer);
}

void Trainer::leave() { model_ = {}; }

template <class T>
Result<T> Trainer::wait(Future<T> future) const {
  const std::stop_token stop = context_.stop_token();
  while (!future.wait_for(std::chrono::milliseconds(100))) {
    if (!stop.stop_requested()) continue;
    future.cancel();
    return Error(Errc::cancelled, "stopped while it waited for the server");
  }
  return std::move(future).result();
}

Result<Trainer::Attempt> Trainer::attempt(const image_training::LabelledImages& taken, std::int64_t step,
                                          double learning_rate) {
  const auto context = autograd::Context::try_make(context_);
  if (!context) return context.error();
  const auto logits = wait(model_.forward_async(taken.images, draw_of(order_.trainer, step)));
  if (!logits) return is_refusal(logits.error()) ? Result<Attempt>(Attempt{.refused = true}) : logits.error();
  const at::Tensor loss = at::cross_entropy_loss(*logits, taken.labels);
  const auto value = loss.item<double>();
  if (!std::isfinite(value)) {
    return Error(Errc::invalid_config, image_training::diverged_text(step + 1, value, learning_rate));
  }
  if (auto done = context->try_backward({loss}); !done) return done.error();
  const auto stepped = wait(model_.step_async(*context, static_cast<std::uint64_t>(step)));
  if (!stepped) return is_refusal(stepped.error()) ? Result<Attempt>(Attempt{.refused = true}) : stepped.error();
  return Attempt{.loss = value, .staleness = stepped->staleness};
}

Result<TrainReport> Trainer::train(TrainOrder order) {
  if (!data_ || !model_) return not_ready();
  if (order.first < 0) return Error(Errc::bad_arguments, "there is no step " + std::to_string(order.first));
  const base::SteadyClock clock;
  const base::TimePoint started = clock.now();
  TrainReport report;
  for (std::int64_t step = order.first; step < order.end;) {
    if (context_.stop_token().stop_requested()) {
      return Error(Errc::cancelled, "stopped at step " + std::to_string(step));
    }
    const auto taken = image_training::take_images(*data_, data_->train, batches_->at(step));
    const auto made = attempt(taken, step, order.learning_rate);
    if (!made) return made.error();
    if (made->refused) {
      ++report.refused;
      continue;
    }
    ++step;
    ++report.steps;
    report.loss_sum += made->loss;
    const double seconds = std::chrono::duration<double>(clock.now() - started).count();
    const double rate = static_cast<double>(report.steps * config_.batch) / seconds;
    context_.metric("train_loss", made->loss, {.step = step});
    context_.metric("staleness", static_cast<double>(made->staleness), {.step = step});
    context_.metric("images_per_s", rate);
    context_.progress(step, order.total,
                      "step " + std::to_string(step) + " of " + std::to_string(order.total) + "  loss " +
                          format_fixed(made->loss, 3) + ", staleness " + std::to_string(made->staleness) + "  " +
                          format_fixed(rate, 1) + " images/s");
  }
  return report;
}

Result<image_training::Accuracy> Trainer::measure(image_training::TestPart part) {
  if (!data_ || !model_) return not_ready();
  if (part.part >= part.parts) return Error(Errc::bad_arguments, "there is no such part of the test images");
  const auto newest = model_.try_evaluation();
  if (!newest) return newest.error();
  return image_training::measure_accuracy(
      *data_, part, [&](const at::Tensor& images) { return wait(newest->forward_async(images, std::uint64_t{0})); });
}

}  // namespace caftan::parameter_server

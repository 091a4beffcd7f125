#include "hybrid_ddp/trainer.hpp"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "caftan/caftan.hpp"
#include "hybrid_ddp/progress_text.hpp"

namespace caftan::hybrid_ddp {
namespace {

constexpr std::size_t kPassagesInCall = 256;  // of a measurement

collectives::Backend backend_of(const JoinOrder& order) {
  return order.backend == BackendName::gloo ? collectives::Backend::gloo : collectives::Backend::caftan;
}

Error not_ready() { return {Errc::bad_arguments, "this trainer has no texts or no replica yet"}; }

optim::Algorithm algorithm_of(const JoinOrder& order) {
  if (order.optimizer == OptimizerConfig::Name::sgd) return optim::SGD{.lr = order.lr};
  return optim::Adagrad{.lr = order.lr};
}

}  // namespace

std::vector<app::MissingRequirement> Trainer::requirements(const Config& config) {
  const auto passages = read_passages(config);
  if (passages) return {};
  return {{.keys = {"corpus.path", "corpus.name", "corpus", "words"}, .text = passages.error().text()}};
}

Trainer::Trainer(RoleContext& context, Config config) : context_(context), config_(std::move(config)) {}

Result<TextFacts> Trainer::open() {
  auto passages = read_passages(config_);
  if (!passages) return passages.error();
  passages_.emplace(*std::move(passages));
  const Passages& read = *passages_;
  context_.log("learns from " + std::to_string(read.train.size()) + " passages of " +
               std::to_string(read.classes.size()) + " texts, " + std::to_string(read.vocabulary) +
               " different words, of " + read.source);
  return TextFacts{.source = read.source,
                   .checksum = read.checksum,
                   .words = config_.words,
                   .per_class = config_.per_class,
                   .batch = config_.batch,
                   .vocabulary = read.vocabulary,
                   .classes = static_cast<std::int64_t>(read.classes.size()),
                   .train = static_cast<std::int64_t>(read.train.size()),
                   .test = static_cast<std::int64_t>(read.test.size()),
                   .majority = majority_share(read)};
}

Result<void> Trainer::join(JoinOrder order, nn::RemoteModule<WordBags> embedding) {
  if (!passages_ || order.rank >= order.members.size()) return not_ready();
  if (passages_->train.size() < order.members.size()) {
    return Error(Errc::invalid_config, "there are fewer passages than trainers");
  }
  order_ = std::move(order);
  embedding_ = std::move(embedding);
  auto group = collectives::join_group(
      context_, {.name = "hybrid_ddp.replicas", .members = order_.members, .backend = backend_of(order_)});
  if (!group) return group.error();
  group_ = *std::move(group);
  const auto classes = static_cast<std::int64_t>(passages_->classes.size());
  auto dense = nn::Replicated<DenseLayer>::try_make(
      context_, group_, std::make_shared<DenseLayer>(order_.emb, classes, order_.parameter_seed),
      {.bucket_bytes = order_.bucket});
  if (!dense) return dense.error();
  dense_.emplace(*std::move(dense));
  auto parameters = embedding_.try_parameters();
  if (!parameters) return parameters.error();
  parameters->insert(parameters->end(), dense_->parameters().begin(), dense_->parameters().end());
  auto optimizer = optim::DistributedOptimizer::try_make(context_, {{*std::move(parameters), algorithm_of(order_)}});
  if (!optimizer) return optimizer.error();
  optimizer_.emplace(*std::move(optimizer));
  return {};
}

Error Trainer::give_up(const Error& error) {
  context_.log("the training ended here: " + error.message());
  group_->fail(error.at(context_.name()));
  return error;
}

Result<TrainReport> Trainer::train(TrainOrder order) {
  if (!optimizer_) return not_ready();
  TrainReport report;
  const base::TimePoint started = clock_.now();
  for (std::int64_t number = order.first; number < order.end; ++number) {
    if (context_.stop_token().stop_requested()) {
      return give_up(Error(Errc::cancelled, "stopped after " + std::to_string(number) + " steps"));
    }
    if (auto stepped = step(number); !stepped) return give_up(stepped.error());
    ++report.steps;
    report.loss_sum += loss_;
    report.seconds = std::chrono::duration<double>(clock_.now() - started).count();
    show(report, order, number + 1);
    if (order_.check_every == 0 || (number + 1) % order_.check_every != 0) continue;
    if (auto equal = dense_->check_equal(); !equal) return give_up(equal.error());
  }
  if (auto equal = dense_->check_equal(); !equal) return give_up(equal.error());
  report.hash = dense_->hash();
  return report;
}

Result<void> Trainer::step(std::int64_t number) {
  const auto context = autograd::Context::try_make(context_);
  if (!context) return context.error();
  const Bags bags = draw_bags(*passages_, {.seed = order_.data_seed,
                                           .trainer = order_.rank,
                                           .trainers = static_cast<std::uint32_t>(order_.members.size()),
                                           .step = number,
                                           .batch = config_.batch});
  const auto embedded = embedding_.try_rpc_sync<&WordBags::forward>(bags.words, bags.offsets);
  if (!embedded) return embedded.error();
  if (auto entered = dense_->enter_context(); !entered) return entered;
  const at::Tensor loss = at::cross_entropy_loss(dense_->module()->forward(*embedded), bags.labels);
  loss_ = loss.item<double>();
  if (!std::isfinite(loss_)) return Error(Errc::invalid_config, diverged_text(number + 1, loss_, order_.lr));
  if (auto done = context->try_backward({loss}); !done) return done;
  return step_parameters(*context);
}

/// The trainers' gradients of the embedding are steps of their own. Where the result must not depend on who is faster,
/// they are made in the order of the ranks, each before the next.
Result<void> Trainer::step_parameters(const autograd::Context& context) {
  const std::uint32_t turns = order_.ordered ? static_cast<std::uint32_t>(order_.members.size()) : 1;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    if (!order_.ordered || turn == order_.rank) {
      if (auto stepped = optimizer_->try_step(context); !stepped) return stepped.error();
    }
    if (!order_.ordered) continue;
    if (auto passed = group_->barrier().result(); !passed) return passed;
  }
  return {};
}

void Trainer::show(const TrainReport& report, const TrainOrder& order, std::int64_t step) const {
  const double ms = 1000 * report.seconds / static_cast<double>(report.steps);
  context_.metric("train_loss", loss_, {.step = step});
  context_.metric("ms_per_step", ms);
  context_.progress(step, order.total, step_line(step, order.total, loss_, ms));
}

Result<Accuracy> Trainer::measure() {
  if (!optimizer_) return not_ready();
  const at::NoGradGuard no_grad;
  const std::vector<Passage>& test = passages_->test;
  const std::size_t trainers = order_.members.size();
  const std::size_t end = test.size() * (order_.rank + 1) / trainers;
  Accuracy accuracy;
  for (std::size_t begin = test.size() * order_.rank / trainers; begin < end; begin += kPassagesInCall) {
    const Bags bags = bags_of(test, begin, std::min(end, begin + kPassagesInCall));
    const auto embedded = embedding_.try_rpc_sync<&WordBags::forward>(bags.words, bags.offsets);
    if (!embedded) return embedded.error();
    const at::Tensor chosen = dense_->forward(*embedded).argmax(1);
    accuracy.right += chosen.eq(bags.labels).sum().item<std::int64_t>();
    accuracy.passages += bags.labels.numel();
  }
  return accuracy;
}

Result<TrainerState> Trainer::save() {
  if (!optimizer_) return not_ready();
  auto optimizer = optimizer_->try_save();
  if (!optimizer) return optimizer.error();
  TrainerState state{.dense = {}, .optimizer = *std::move(optimizer)};
  for (const auto& named : dense_->module()->named_parameters()) state.dense.push_back(named.tensor.detach().clone());
  return state;
}

Result<void> Trainer::load(TrainerState state) {
  if (!optimizer_) return not_ready();
  const auto own = dense_->module()->named_parameters();
  bool fits = state.dense.size() == own.size();
  for (std::size_t i = 0; fits && i < own.size(); ++i) {
    fits = state.dense[i].defined() && state.dense[i].sizes() == own[i].tensor.sizes() &&
           state.dense[i].scalar_type() == own[i].tensor.scalar_type();
  }
  if (!fits) return Error(Errc::bad_arguments, "the checkpoint has another dense layer");
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < own.size(); ++i) own[i].tensor.copy_(state.dense[i]);
  }
  if (auto equal = dense_->check_equal(); !equal) return equal;
  return optimizer_->try_load(state.optimizer);
}

void Trainer::leave() {
  optimizer_.reset();
  dense_.reset();
  group_.reset();
  embedding_ = {};
}

}  // namespace caftan::hybrid_ddp

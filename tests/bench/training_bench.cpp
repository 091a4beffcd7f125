// The training of apps/parameter_server through the public API, beside a loop of plain torch in the same program: the
// same model, first parameters, batches and dropout masks, torch's fused SGD on both sides, one torch thread a process.
// A worker serves the model, two train it, each in a process of its own over Unix sockets; the plain loops run in the
// processes of the two that train. Measures: plain_1, plain_2 (two loops side by side that share nothing), and
// locked_1 ... sync_2: a mode with so many trainers. `calls` is the number of steps that each trainer makes.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/base/keep_freed_memory.hpp"
#include "caftan/nn/served_module.hpp"
#include "caftan/nn/shared_module.hpp"
#include "folder.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"
#include "image_training/image_tensors.hpp"
#include "measure.hpp"
#include "models/image_model.hpp"
#include "parameter_server/served_model.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

using nn::ConsistencyMode;
using parameter_server::draw_of;
using parameter_server::ServedModel;
using SharedModel = nn::SharedModule<ServedModel>;

constexpr std::int64_t kBatch = 32;
constexpr double kLearningRate = 0.03;
constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kWarmUpSteps = 5;
constexpr std::array<const char*, 4> kMembers{"driver", "server", "trainer0", "trainer1"};
constexpr std::size_t kFirstTrainer = 2;  // in kMembers
constexpr CallOptions kPatient{.timeout = base::Duration(0)};

/// The images of one trainer, and the model that it trains: a shared one, or one of its own.
class Trainer {
 public:
  void open(std::uint32_t trainer, std::uint32_t trainers) {
    trainer_ = trainer;
    data_ = image_data::read_data({.name = image_data::DataConfig::Name::shapes}).value();
    batches_ =
        image_data::Batches::make(
            {.images = data_.train.size(), .batch = kBatch, .trainer = trainer, .trainers = trainers, .seed = kSeed})
            .value();
  }
  std::int64_t classes() const { return data_.classes; }

  void join(const SharedModel& model) {
    shared_ = model.with(kPatient);
    shared_.join(trainer_);
  }
  /// Returns the sum of the losses.
  double train(Worker& worker, std::int64_t steps) {
    double loss = 0;
    for (const std::int64_t end = step_ + steps; step_ < end; ++step_) loss += step_shared(worker);
    return loss;
  }

  void make_own_model() {
    own_ =
        models::make_model(models::ModelName::convnet, data_.classes, {.parameters = kSeed, .dropout = kSeed}).value();
  }
  /// As train, without calls.
  double train_plain(std::int64_t steps) {
    double loss = 0;
    for (const std::int64_t end = step_ + steps; step_ < end; ++step_) loss += step_plain();
    return loss;
  }

 private:
  image_training::LabelledImages take() { return image_training::take_images(data_, data_.train, batches_->at(step_)); }

  double step_shared(Worker& worker) {
    const auto taken = take();
    const autograd::Context context(worker);
    const Tensor logits = shared_.forward(taken.images, draw_of(trainer_, step_));
    const Tensor loss = at::cross_entropy_loss(logits, taken.labels);
    const auto value = loss.item<double>();
    context.backward({loss});
    shared_.step(context, static_cast<std::uint64_t>(step_));
    return value;
  }
  double step_plain() {
    const auto taken = take();
    const Tensor logits = own_->forward(taken.images, draw_of(trainer_, step_));
    const Tensor loss = at::cross_entropy_loss(logits, taken.labels);
    const auto value = loss.item<double>();
    const std::vector<Tensor> parameters = own_->parameters();
    const std::vector<Tensor> gradients = torch::autograd::grad({loss}, parameters);
    const at::NoGradGuard no_grad;
    at::_fused_sgd_(parameters, gradients, {}, 0, 0, kLearningRate, 0, false, false, step_ == 0);
    return value;
  }

  std::uint32_t trainer_ = 0;
  image_data::DataSet data_;
  std::optional<image_data::Batches> batches_;
  std::int64_t step_ = 0;
  SharedModel shared_;
  std::shared_ptr<models::ImageModel> own_;
};

Registry make_registry() {
  Registry registry;
  registry.add<Trainer>("bench.trainer")
      .constructor<>()
      .method<&Trainer::open>("open")
      .method<&Trainer::classes>("classes")
      .method<&Trainer::join>("join")
      .method<&Trainer::train>("train")
      .method<&Trainer::make_own_model>("make_own_model")
      .method<&Trainer::train_plain>("train_plain");
  nn::add_module<ServedModel>(registry, "bench.model")
      .constructor<models::ModelName, std::int64_t, std::uint64_t, std::uint64_t>()
      .method<&ServedModel::forward>("forward");
  return registry;
}

/// What is trained: the plain loops where there is no mode.
struct Kind {
  std::optional<ConsistencyMode> mode{};
  std::uint32_t trainers = 1;

  std::string name() const {
    return (mode ? std::string(nn::to_string(*mode)) : "plain") + "_" + std::to_string(trainers);
  }
};

/// One training: its trainers, and the model that they share.
class Training {
 public:
  Training(Worker& worker, const Kind& kind) : kind_(kind) {
    for (std::uint32_t i = 0; i < kind.trainers; ++i) {
      trainers_.push_back(worker.remote<Trainer>(kMembers[kFirstTrainer + i]));
      trainers_.back().rpc_sync<&Trainer::open>(i, kind.trainers);
    }
    if (kind.mode) {
      share(worker, *kind.mode);
    } else {
      for (const auto& trainer : trainers_) trainer.rpc_sync<&Trainer::make_own_model>();
    }
    make_steps(kWarmUpSteps);
  }

  /// Lets each trainer make its steps. Returns the mean loss.
  double make_steps(std::int64_t steps) {
    std::vector<Future<double>> running;
    for (const auto& trainer : trainers_) {
      const auto patient = trainer.with(kPatient);
      running.push_back(kind_.mode ? patient.rpc_async<&Trainer::train>(steps)
                                   : patient.rpc_async<&Trainer::train_plain>(steps));
    }
    double loss = 0;
    for (auto& one : running) loss += std::move(one).get();
    return loss / static_cast<double>(steps * kind_.trainers);
  }

 private:
  void share(Worker& worker, ConsistencyMode mode) {
    const nn::SharedOptions options{.consistency = {.mode = mode},
                                    .trainers = kind_.trainers,
                                    .algorithm = optim::SGD{.lr = kLearningRate, .fused = true}};
    const std::int64_t classes = trainers_.front().rpc_sync<&Trainer::classes>();
    model_ = SharedModel::try_make<models::ModelName, std::int64_t, std::uint64_t, std::uint64_t>(
                 worker, "server", options, models::ModelName::convnet, classes, kSeed, kSeed)
                 .value();
    model_.created().get();
    for (const auto& trainer : trainers_) trainer.rpc_sync<&Trainer::join>(model_);
  }

  const Kind kind_;
  std::vector<RRef<Trainer>> trainers_;
  SharedModel model_;
};

class TrainingBench {
 public:
  TrainingBench(Worker& worker, const Rig& rig) : worker_(worker), rig_(rig) {}

  std::map<std::string, Measure> measures() {
    std::map<std::string, Measure> all;
    for (const std::uint32_t trainers : {1U, 2U}) {
      for (const auto mode : {std::optional<ConsistencyMode>(), std::optional(ConsistencyMode::locked),
                              std::optional(ConsistencyMode::versioned), std::optional(ConsistencyMode::sync)}) {
        const Kind kind{mode, trainers};
        all[kind.name()] = [this, kind](const Request& request) { return train(kind, request); };
      }
    }
    return all;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;

  Line train(const Kind& kind, const Request& request) {
    std::unique_ptr<Training>& training = trainings_[kind.name()];
    if (!training) training = std::make_unique<Training>(worker_, kind);
    const auto steps = static_cast<std::int64_t>(request.calls);
    const CpuTimes cpu_before = rig_.cpu_times();
    const auto start = SteadyClock::now();
    const double loss = training->make_steps(steps);
    const std::chrono::duration<double> wall = SteadyClock::now() - start;
    const CpuTimes cpu = rig_.cpu_times();
    const auto gradients = static_cast<double>(steps * kind.trainers);
    const Nanoseconds used = cpu.own - cpu_before.own + cpu.peer - cpu_before.peer;
    Line line;
    line.add("side", std::string("training")).add("measure", request.measure);
    line.add("calls", static_cast<std::uint64_t>(gradients)).add("wall_s", wall.count());
    line.add("images_per_s", gradients * static_cast<double>(kBatch) / wall.count());
    line.add("cpu_ms", std::chrono::duration<double, std::milli>(used).count() / gradients);
    return line.add("loss", loss);
  }

  Worker& worker_;
  const Rig& rig_;
  std::map<std::string, std::unique_ptr<Training>> trainings_;
};

Result<std::unique_ptr<Worker>> start(const test::Folder& folder, const char* name) {
  at::set_num_threads(1);  // before any thread was started
  WorkerOptions options;
  options.name = name;
  for (const char* member : kMembers) options.world.push_back({member, "unix:" + (folder / member)});
  options.secret = "benchmark";
  return Worker::start(std::move(options), make_registry());
}

int run() {
  const test::Folder folder;
  std::vector<std::unique_ptr<PeerProcess>> peers;
  std::vector<pid_t> pids;
  for (std::size_t i = 1; i < kMembers.size(); ++i) {
    peers.push_back(std::make_unique<PeerProcess>([&folder, name = kMembers[i]](const ParentLink& parent) {
      const auto worker = start(folder, name);
      if (!worker) return 1;
      parent.wait_for_end();
      (*worker)->stop();
      return 0;
    }));
    pids.push_back(peers.back()->pid());
  }
  const auto worker = start(folder, kMembers[0]);
  if (!worker) {
    std::fprintf(stderr, "training_bench: %s\n", worker.error().message().c_str());
    return 1;
  }
  const Rig rig("training", pids);
  int code = 0;
  {
    TrainingBench bench(**worker, rig);
    code = rig.serve(bench.measures());
  }
  (*worker)->stop();
  // The last one first: each process holds the pipes of those that were made before it.
  while (!peers.empty()) peers.pop_back();
  return code;
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char**) {
  caftan::keep_freed_memory();  // as each process of a run, the plain loop included
  if (argc == 1) return caftan::bench::run();
  std::fprintf(stderr, "usage: training_bench\n");
  return 2;
}

// What a round of apps/batch_parameter_server consists of. Started alone it computes the gradients of a round without
// Caftan: one process for each trainer, one torch thread each, all at the same time on the machine's cores, each
// forward and backward over images of its own. Its other command is the application.
//
//   batch_server_bench compute MODEL TRAINERS BATCH   answers requests, as every side of the benchmark
//   batch_server_bench run FILE [key=value ...]       runs the application
#include <ATen/Parallel.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch_parameter_server/register.hpp"
#include "caftan/caftan.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"
#include "image_training/learner.hpp"
#include "measure.hpp"
#include "models/image_model.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

struct Work {
  models::ModelName model = models::ModelName::resnet50;
  std::uint32_t trainers = 1;
  std::int64_t batch = 1;
};

std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

/// Computes gradients, one for each line that comes. The first line that it writes has the bytes which its trainer
/// would move in a round: parameters there, gradients and buffers back.
int compute_when_asked(const Work& work, std::uint32_t trainer, const ParentLink& parent) {
  at::set_num_threads(1);  // as workers have it
  const image_data::DataSet data = image_data::read_data({.name = image_data::DataConfig::Name::noise}).value();
  auto model = models::make_model(work.model, data.classes, {.parameters = 1, .dropout = 1}).value();
  const std::uint64_t bytes = 2 * bytes_of(model->parameters()) + bytes_of(model->buffers());
  image_training::Learner learner(
      std::move(model), data,
      image_data::Batches::make(
          {.images = data.train.size(), .batch = work.batch, .trainer = trainer, .trainers = work.trainers, .seed = 1})
          .value());
  (void)learner.compute(0);
  parent.write_line(std::to_string(bytes));
  for (std::int64_t step = 1; !parent.hear().empty(); ++step) {
    parent.write_line(std::to_string(learner.compute(step).loss));
  }
  return 0;
}

/// The processes of all trainers.
class Trainers {
 public:
  explicit Trainers(const Work& work) {
    for (std::uint32_t i = 0; i < work.trainers; ++i) {
      processes_.push_back(std::make_unique<PeerProcess>(
          [&work, i](const ParentLink& parent) { return compute_when_asked(work, i, parent); }));
    }
    for (const auto& process : processes_) bytes_ += std::strtoull(hear(*process).c_str(), nullptr, 10);
  }
  ~Trainers() {
    // The last one first: each process holds the pipes of those that were made before it.
    while (!processes_.empty()) processes_.pop_back();
  }
  Trainers(const Trainers&) = delete;
  Trainers& operator=(const Trainers&) = delete;

  std::vector<pid_t> pids() const {
    std::vector<pid_t> pids;
    for (const auto& process : processes_) pids.push_back(process->pid());
    return pids;
  }

  /// Returns the reply to a request: the seconds of rounds, in each of which all compute one gradient.
  Line compute(const Request& request) const {
    using SteadyClock = std::chrono::steady_clock;
    Line line;
    line.add("side", std::string("compute alone")).add("measure", request.measure);
    std::string rounds;
    for (std::size_t round = 0; round < request.calls; ++round) {
      const auto start = SteadyClock::now();
      for (const auto& process : processes_) process->write_line("next");
      for (const auto& process : processes_) (void)hear(*process);
      const std::chrono::duration<double> seconds = SteadyClock::now() - start;
      rounds += (rounds.empty() ? "" : ",") + std::to_string(seconds.count());
    }
    return line.add("bytes", bytes_).add_json("round_s", "[" + rounds + "]");
  }

 private:
  static std::string hear(const PeerProcess& process) {
    std::string line = process.hear();
    if (!line.empty()) return line;
    std::fprintf(stderr, "batch_server_bench: a process that computes has ended\n");
    std::exit(1);
  }

  std::vector<std::unique_ptr<PeerProcess>> processes_;
  std::uint64_t bytes_ = 0;
};

template <class Number>
bool parse(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 1;
}

std::optional<Work> parse_work(const std::string& model, const std::string& trainers, const std::string& batch) {
  Work work;
  if (!parse(trainers, work.trainers) || !parse(batch, work.batch)) return std::nullopt;
  for (const auto name : {models::ModelName::convnet, models::ModelName::resnet18, models::ModelName::resnet50}) {
    if (model != models::to_string(name)) continue;
    work.model = name;
    return work;
  }
  return std::nullopt;
}

int serve(const Work& work) {
  const Trainers trainers(work);
  const Rig rig("compute alone", trainers.pids());
  return rig.serve({{"compute", [&](const Request& request) { return trainers.compute(request); }}});
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "compute") {
    const auto work = argc == 5 ? caftan::bench::parse_work(argv[2], argv[3], argv[4]) : std::nullopt;
    if (work) return caftan::bench::serve(*work);
    std::fprintf(stderr, "usage: batch_server_bench compute MODEL TRAINERS BATCH\n");
    return 2;
  }
  caftan::Program program("batch_server_bench");
  caftan::batch_parameter_server::register_batch_parameter_server(program);
  return program.main(argc, argv);
}

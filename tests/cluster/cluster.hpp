/// Several Workers in one process over the seeded executor: what cluster tests start from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/transport/stepped_executor.hpp"

namespace caftan::test {

class Cluster {
 public:
  using Change = std::function<void(WorkerOptions&)>;

  /// @param change  applied to each worker's options before it starts
  Cluster(std::uint64_t seed, const std::vector<std::string>& names, const std::function<Registry()>& registry,
          const Change& change = {})
      : executor_(std::make_shared<transport::SteppedExecutor>(seed)), network_(std::make_shared<LocalNetwork>()) {
    std::vector<WorkerAddress> world;
    for (const auto& name : names) world.push_back({name, ""});
    for (const auto& name : names) {
      WorkerOptions options;
      options.name = name;
      options.world = world;
      options.executor = executor_;
      options.network = network_;
      options.log = [this, name](std::string_view line) { log_.push_back(name + ": " + std::string(line)); };
      if (change) change(options);
      workers_.push_back(Worker::launch(std::move(options), registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }

  Worker& operator[](std::size_t index) { return *workers_[index]; }
  transport::SteppedExecutor& executor() { return *executor_; }
  /// Lets everything that is under way come to rest.
  void run_until_idle() { executor_->run(); }
  const std::vector<std::string>& log() const { return log_; }

 private:
  std::vector<std::string> log_;
  std::shared_ptr<transport::SteppedExecutor> executor_;
  std::shared_ptr<LocalNetwork> network_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace caftan::test

/// `Cluster`: several Workers in one process that repeat exactly. One task runs at a time, a seed chooses which one is
/// next and so the order in which frames arrive, and the clock moves by hand.
///     testing::Cluster cluster(seed, {"server", "client"}, make_registry);
///     cluster["client"].rpc_sync<&add>("server", 1, 2);
/// Needs no test framework. With GoogleTest, `testing` is ambiguous below `using namespace caftan`: write GoogleTest's
/// with two colons before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/testing/network.hpp"

namespace caftan {

namespace transport {
class SteppedExecutor;
}

namespace testing {

/// Threads: one, that of the test. A blocking call on it (`rpc_sync`, `Future::get`) runs the cluster until it can go
/// on, and moves the clock to the next timer whenever nothing else is left to do. Nothing runs between two calls of the
/// test.
class Cluster {
 public:
  /// Changes the options of one worker, whose name is set.
  using Change = std::function<void(WorkerOptions&)>;

  /// Starts the workers and waits until all are connected with each other.
  /// @param seed      chooses the order of everything: print it when a test fails
  /// @param names     of the workers, in order of their ids
  /// @param registry  makes what each of them registers
  /// @param change    changes the options of each worker, whose name is set, before it starts: limits, time-outs, a
  /// hook.
  ///   With another `network` the workers use that one, and `network()` has no links
  /// Errors (thrown as RpcException): those of Worker::start.
  Cluster(std::uint64_t seed, const std::vector<std::string>& names, const std::function<Registry()>& registry,
          const Change& change = {});
  /// Stops the workers, the first one first. Precondition: no code on a runner waits for something that never comes.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Precondition: index < the number of names.
  Worker& operator[](std::size_t index) { return *workers_[index]; }
  /// Throws std::logic_error for a name that no worker has.
  Worker& operator[](std::string_view name);

  /// The connections between the workers.
  Network& network() noexcept { return network_; }

  /// Runs all that can run without moving the clock. Ends the process with a message if that takes 10,000,000 steps.
  void run_until_idle();
  /// Runs until idle, then moves the clock by `by` >= 0 from timer to timer, and runs until idle after each.
  void advance(base::Duration by);
  /// Returns the time of the clock that the workers see.
  base::TimePoint now() const noexcept;

  /// For single steps and own timers: `step`, `post_at` (caftan/transport/stepped_executor.hpp).
  transport::SteppedExecutor& executor() noexcept { return *executor_; }
  /// Returns the lines that the workers have logged, as "name: line". A `change` that sets WorkerOptions::log takes
  /// those of its worker.
  const std::vector<std::string>& log() const noexcept { return log_; }

 private:
  std::vector<std::string> log_;
  std::shared_ptr<transport::SteppedExecutor> executor_;
  Network network_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace testing
}  // namespace caftan

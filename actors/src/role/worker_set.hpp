/// The workers of one process and their roles, from joining to leaving. For placement "one_process" the launcher has
/// one for all workers; otherwise each worker process has one for its own.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "caftan/actors/role_catalog.hpp"
#include "caftan/actors/worker.hpp"
#include "caftan/app/internal/application.hpp"
#include "caftan/app/internal/plan.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/transport/internal/thread.hpp"
#include "role/role_host.hpp"

namespace caftan::actors {

struct WorkerSetOptions {
  const RoleCatalog& catalog;
  const app::Application& application;
  const app::Plan& plan;
  std::vector<WorkerId> workers{};       ///< the workers of this process, by their number in the plan
  std::vector<WorkerAddress> members{};  ///< all workers, the coordinator first
  std::vector<std::string> siblings{};   ///< names of all workers of the same launcher, those of this process included
  std::string secret{};
  int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));  ///< of this host
  std::string spin{};                     ///< what the logs say of cluster.spin; empty: nothing
  std::string own_cores{};                ///< what the logs say of run.own_cores; empty: nothing
  std::filesystem::path run_directory{};  ///< empty: nothing is logged
  bool logs_to_output = false;            ///< whether standard error, not a file of the run's folder, is the log
  std::shared_ptr<transport::PollingExecutor> executor{};
  std::shared_ptr<LocalNetwork> network{};
  RunSink sink{};
};

class WorkerSet {
 public:
  /// What the options refer to must outlive it.
  explicit WorkerSet(WorkerSetOptions options);
  ~WorkerSet();
  WorkerSet(const WorkerSet&) = delete;
  WorkerSet& operator=(const WorkerSet&) = delete;

  /// Starts the workers, waits until they are ready, hosts their roles until `leave`, and ends them. What happens is
  /// reported to the sink; a failed start as well, after which this function only waits for `leave`. Returns whether
  /// all roles have returned; if not, user code still runs on this object and only the end of the process stops it.
  /// Threads: not a runner's. Blocks.
  [[nodiscard]] bool run();

  /// Asks the roles to return. Threads: any; stop_callbacks of user code run on a thread of their own.
  void stop();
  /// Makes `run` end. Threads: any. @param reason  sent to workers elsewhere if it is an error
  void leave(const Error& reason = {});
  /// Returns whether the start has ended: all workers are ready, or `run` has given the start up and ended.
  /// Threads: any.
  bool has_joined() const;

 private:
  struct Member {
    WorkerId id;
    std::shared_ptr<RunReporter> reporter;
    std::shared_ptr<RoleHost> role;
    std::unique_ptr<Worker> worker;
    Log log;
  };

  enum class Phase : std::uint8_t { joining, joined, ended };
  /// What the launcher has asked this object to do. `leave` includes `stop`.
  enum class Asked : std::uint8_t { nothing, stop, leave };

  Result<void> launch(Member& member);
  Result<void> join();
  WorkerOptions worker_options(Member& member);
  RoleFacts facts_of(const app::PlannedWorker& planned) const;
  PlayedRole played_by(const app::PlannedWorker& planned) const;
  std::vector<std::string> drivers_elsewhere() const;
  void wait_for_leave();
  void request_stops();
  Member* wait_for_roles(base::TimePoint deadline);
  void report_traffic(base::TimePoint deadline);
  Error farewell_of(const Member& member) const;
  bool end();
  Phase phase() const;

  const WorkerSetOptions options_;
  std::vector<Member> members_;
  mutable base::Mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ CAFTAN_GUARDED_BY(mutex_) = Phase::joining;
  Asked asked_ CAFTAN_GUARDED_BY(mutex_) = Asked::nothing;
  Error farewell_ CAFTAN_GUARDED_BY(mutex_);
  // Runs the roles' stop_callbacks; `requesting_stops_` while it is at work.
  std::optional<transport::Thread> stopper_ CAFTAN_GUARDED_BY(mutex_);
  bool requesting_stops_ CAFTAN_GUARDED_BY(mutex_) = false;
};

}  // namespace caftan::actors

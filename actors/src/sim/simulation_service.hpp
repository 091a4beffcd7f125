/// The service of simulations: finds the actors of this worker's partitions by (simulation, index), and lets them know
/// of lost workers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <caf/actor.hpp>

#include "caftan/base/mutex.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/extension.hpp"
#include "service/service.hpp"
#include "sim/sim_partition_actor.hpp"

namespace caftan::actors {

/// The partitions of one worker. Threads: any, all methods.
class SimulationTable {
 public:
  /// Which partition of which simulation.
  using Key = std::pair<std::uint64_t, std::uint32_t>;

  /// Adds a partition and its actor. Errors: bad_arguments (it is there already), shut_down (the worker leaves).
  Result<void> add(const Key& key, std::shared_ptr<SimPartitionPorts> ports, caf::actor actor);
  /// The partition is over: its actor ends.
  void remove(const Key& key);
  /// Returns the actor of a partition, null if there is none.
  caf::actor find(const Key& key) const;
  void on_lost(const WorkerLife& peer);
  /// Ends all partitions.
  void end(const Error& reason);
  /// Counts a job that uses the worker; nullopt once the table has ended.
  class Job {
   public:
    explicit Job(std::shared_ptr<SimulationTable> table) : table_(std::move(table)) {}
    Job(Job&&) noexcept = default;
    Job& operator=(Job&&) = delete;
    ~Job() {
      if (table_) table_->leave();
    }

   private:
    std::shared_ptr<SimulationTable> table_;
  };
  static std::optional<Job> begin_job(const std::shared_ptr<SimulationTable>& table);
  void when_empty(std::function<void()> done);
  std::size_t jobs() const;

 private:
  struct Entry {
    std::shared_ptr<SimPartitionPorts> ports;
    caf::actor actor;
  };
  void leave();

  mutable base::Mutex mutex_;
  std::map<Key, Entry> entries_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<Error> ended_ CAFTAN_GUARDED_BY(mutex_);
  std::size_t jobs_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::function<void()> empty_ CAFTAN_GUARDED_BY(mutex_);
};

/// By which a role finds the table of its worker.
class SimulationExtension final : public rpc::Extension {
 public:
  explicit SimulationExtension(std::shared_ptr<SimulationTable> table) : table_(std::move(table)) {}
  const std::shared_ptr<SimulationTable>& table() const noexcept { return table_; }

  static constexpr const char* kName = "caftan.simulation";

 private:
  const std::shared_ptr<SimulationTable> table_;
};

class SimulationService final : public Service {
 public:
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
  caf::strong_actor_ptr find_named(const transport::Session& session, const remote::Address& name) override;
  void on_session_end(const transport::Session& session, bool is_last) override;
  void end_all(const Error& reason, StopReport& given_up) override;
  void when_empty(std::function<void()> done) override { table_->when_empty(std::move(done)); }
  std::size_t in_use() const override { return table_->jobs(); }

 private:
  const std::shared_ptr<SimulationTable> table_ = std::make_shared<SimulationTable>();
};

/// Returns the table of a worker. Errors: unsupported (the caller is no worker with one).
Result<std::shared_ptr<SimulationTable>> simulations_of(rpc::Caller& caller);

}  // namespace caftan::actors

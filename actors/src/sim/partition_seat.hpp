/// `PartitionSeat`: one partition of a simulation at its worker. Frames come from its actor, calls from its role; each
/// round is an exclusive job on the strand of the role, so no actor runs code of the model and no thread waits (SM-13).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/actors/simulation.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/strand.hpp"
#include "caftan/sim/internal/partition.hpp"
#include "service/member_ports.hpp"
#include "sim/partition_watch.hpp"
#include "sim/simulation_service.hpp"

namespace caftan::actors {

class PartitionSeat final : public SimPartitionPorts,
                            private sim::FrameSink,
                            public std::enable_shared_from_this<PartitionSeat> {
 public:
  /// A worker of the simulation.
  struct Member {
    std::string name{};
    WorkerLife life{};
  };
  /// What a seat is made of.
  struct Parts {
    MemberPorts& ports;
    std::shared_ptr<SimulationTable> table;
    sim::OpenRequest request;
    std::vector<Member> members;  ///< by index
    Member clock;
    std::shared_ptr<rpc::Strand> strand;  ///< of the role
    std::string role;                     ///< name of its class, for would_deadlock
    std::weak_ptr<void> keep;             ///< lives as long as the role's object
    std::function<void(const std::string&)> log;
  };

  /// Makes the partition and its actor. Errors: as PartitionCalls::open.
  static Result<std::shared_ptr<PartitionSeat>> open(Worker& worker, const CallInfo& info,
                                                     const sim::OpenRequest& request,
                                                     const sim::PartitionCalls::Build& build, std::weak_ptr<void> keep,
                                                     std::function<void(const std::string&)> log,
                                                     sim::OpenReply& reply);

  explicit PartitionSeat(Parts parts) : parts_(std::move(parts)) {}

  // ---- from the role's methods, on its strand
  Future<sim::BorderReply> advance(const sim::AdvanceRequest& request);
  sim::RecordsPage records();
  Result<void> save(const std::string& folder);
  Result<sim::ResultsPage> results(std::uint64_t next_hash, std::uint64_t next_statistic);

  // ---- SimPartitionPorts
  void take_frame(const WorkerLife& from, wire::Bytes frame) override;
  void on_lost(const WorkerLife& peer) override;
  void end(const Error& reason) override;

  /// Ends the partition, as its clock asks its role to do.
  void close();
  /// Ends the partition with its role. Logs why the worker leaves if the clock has not closed the partition.
  void abandon();

 private:
  /// What has come since the last job.
  struct Inbox {
    std::vector<std::pair<std::uint32_t, wire::Bytes>> frames{};
    std::optional<sim::AdvanceRequest> request{};
  };

  /// Where the time of the partition goes.
  struct Spent {
    std::optional<base::TimePoint> waits_since{};
    base::Duration busy{};
    base::Duration waiting{};
  };
  /// What the clock fetches a page at a time.
  struct Results {
    std::vector<sim::Record> records{};
    std::size_t records_sent = 0;
    std::vector<std::uint64_t> hashes{};
    std::vector<sim::LpStatistic> statistics{};
  };

  Result<void> make(const sim::PartitionCalls::Build& build, sim::OpenReply& reply);
  Result<void> load(sim::Kernel& kernel) const;
  void send(std::uint32_t partition, wire::Bytes frame) override;

  void schedule() CAFTAN_REQUIRES(mutex_);
  void run_job();
  Result<void> handle(Inbox& inbox);
  Result<void> begin(const sim::AdvanceRequest& request);
  Result<void> report();
  void fail(const Error& error);
  void log_unless_closed();
  void shut(const Error& reason);
  Error lost(const Member& member) const CAFTAN_REQUIRES(mutex_);
  std::string how_far() const CAFTAN_REQUIRES(mutex_);

  const Parts parts_;
  std::optional<PartitionWatch> watch_;        // before the partition, whose kernel points to it
  std::unique_ptr<sim::Partition> partition_;  // this and what follows: on the strand only
  bool has_started_ = false;
  sim::AdvanceRequest request_{};  // the one that is being answered
  Spent spent_;
  Results results_;
  std::optional<Error> not_sent_;

  mutable base::Mutex mutex_;
  Inbox inbox_ CAFTAN_GUARDED_BY(mutex_);
  bool is_scheduled_ CAFTAN_GUARDED_BY(mutex_) = false;
  bool is_closed_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<Promise<sim::BorderReply>> promise_ CAFTAN_GUARDED_BY(mutex_);
  caf::actor actor_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<caf::strong_actor_ptr> others_ CAFTAN_GUARDED_BY(mutex_);  // by index
  sim::Time reached_ CAFTAN_GUARDED_BY(mutex_){};                        // of this partition, after the last job
  std::vector<sim::Time> heard_ CAFTAN_GUARDED_BY(mutex_);               // of the others
};

}  // namespace caftan::actors

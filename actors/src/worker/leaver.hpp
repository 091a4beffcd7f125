/// `Leaver`: carries out `Worker::leave_together`: it sends the reports of this worker and waits. `net::LeaveTogether`
/// decides. Rules: docs/protocols/leave.md. It also carries the message `run.returned` of docs/protocols/run.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/leave_together.hpp"
#include "service/member_ports.hpp"
#include "worker/peers.hpp"
#include "worker/root_ports.hpp"

namespace caftan::actors {

/// What a worker knows of its own work. Threads: any, all methods.
class WorkPorts {
 public:
  virtual ~WorkPorts() = default;
  /// Waits until no call is under way and every released reference has ended, at most until `deadline`. Returns whether
  /// that was so.
  virtual bool wait_until_quiet(base::TimePoint deadline) = 0;
  /// Returns how many calls and replies it has sent.
  virtual std::uint64_t work() const = 0;
};

/// Threads: any, all methods.
class Leaver final : public LeavePorts {
 public:
  struct Parts {
    MemberPorts& ports;
    WorkPorts& work;
    const Peers& peers;
    RootSender& sender;
    const std::function<void(const std::string& peer)>& on_peer_returned;  // may be empty
  };
  explicit Leaver(const Parts& parts);

  /// As Worker::leave_together.
  Result<void> leave_together(base::Duration timeout);
  /// Sends `run.returned` to members: the run() of this worker's role has returned. @param to  their names
  void report_returned(const std::vector<std::string>& to);
  /// This worker stops. @param reason  the outcome of leave_together from now on
  void stop(const Error& reason);
  /// A session with that life can be used.
  void on_up(const WorkerLife& peer);

  // LeavePorts

  void on_report(const transport::Session& from, const net::LeaveReport& report) override;
  void on_returned(const transport::Session& from) override;
  void on_lost(const PeerLost& lost) override;

 private:
  Result<void> wait_until_over(base::Duration timeout);
  bool wait_for_change(base::TimePoint deadline);
  void report(std::uint64_t round);
  bool has_changed() const CAFTAN_REQUIRES(mutex_) { return rules_.outcome() || rules_.due(); }
  void notify_if_changed() CAFTAN_REQUIRES(mutex_);

  const Parts parts_;
  mutable base::Mutex mutex_;
  net::LeaveTogether rules_ CAFTAN_GUARDED_BY(mutex_);
  base::WaitPoint* waiter_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace caftan::actors

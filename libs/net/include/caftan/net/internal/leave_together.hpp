/// `LeaveTogether`: when all members of a job may leave: all have asked to, and none has work under way. Events go in,
/// what to report comes out. Rules LV-1 to LV-8: docs/protocols/leave.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::net {

/// The report of one round that a member sends to each other member, as the message `leave.report`.
struct LeaveReport {
  std::uint64_t lives = 0;  ///< a hash of the lives of all members, as the sender knows them
  std::uint64_t round = 0;  ///< 0: the sender has called leave_together; from 1 on: the sender is at rest
  std::uint64_t work = 0;   ///< calls and replies that the sender has sent; 0 in round 0
  bool operator==(const LeaveReport&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lives& round& work;
  }
};

/// The message `run.returned` to the driving workers of other launchers: the run() of the sender's role has returned
/// without an error, and was not asked to stop. Rules RN-21 and RN-22: docs/protocols/run.md.
struct RunReturned {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

/// Threads: none of its own and no lock.
class LeaveTogether {
 public:
  /// @param names  of all members, by id
  LeaveTogether(const std::vector<std::string>& names, const WorkerLife& self);

  // ---- calls of this worker

  /// `begin_call` and `end_call` enclose a call of leave_together. Errors: overloaded (another call is under way).
  Result<void> begin_call();
  void end_call() noexcept { is_called_ = false; }
  /// Returns the round that this worker has to report now; from 1 on it has to be at rest first.
  std::optional<std::uint64_t> due() const;
  /// Returns the report of the round that is due; send it to all other members. Precondition: due().
  LeaveReport report(std::uint64_t work);
  /// Returns how the call of leave_together has ended; nullopt while it goes on.
  std::optional<Result<void>> outcome() const;
  /// Returns the error of a call of leave_together that has not ended within `timeout`.
  Error why_late(base::Duration timeout) const;
  /// This worker stops. @param reason  the outcome of its calls from now on
  void stop(Error reason) { stopped_ = std::move(reason); }

  // ---- other members

  /// A session with that life has begun.
  void on_up(const WorkerLife& peer);
  /// The last session with that life has ended.
  void on_lost(const WorkerLife& peer, const Error& reason);
  void on_report(const WorkerLife& sender, const LeaveReport& report);

 private:
  struct Member {
    std::string name;
    Incarnation life = {};  // zero: it has not come
    std::optional<Error> lost = {};
    std::uint64_t lives = 0;               // that its reports are for
    std::vector<std::uint64_t> work = {};  // by round
  };

  bool all_have_come() const;
  void set_life(Member& member, Incarnation life);
  /// Returns the hash of the lives of all members. It is made when it is asked for: in a job of n members n lives come
  /// before anything depends on it.
  std::uint64_t lives() const;
  /// Returns how many rounds the member has reported for the present lives of all members.
  std::size_t rounds_of(const Member& member) const;
  std::size_t own_rounds() const { return rounds_of(members_[self_.value]); }
  bool is_over() const;

  WorkerId self_;
  std::vector<Member> members_;                 // the index is the id
  mutable std::optional<std::uint64_t> lives_;  // null after a life has changed
  bool is_called_ = false;
  std::optional<Error> stopped_;
};

}  // namespace caftan::net

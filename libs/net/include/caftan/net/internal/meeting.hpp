/// `Meeting`: how the workers of a job connect, at the start and when one is started again: which peer may have a
/// session, which one to dial and when, when the start is over, and which members are missing if it takes too long.
/// Events go in, what to do comes out. Rules SE-26 to SE-29, SE-33 and SE-34: docs/protocols/session.md. The members of
/// the job are in membership.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caftan/net/internal/dial_pause.hpp"
#include "caftan/net/internal/membership.hpp"

namespace caftan::net {

/// The member to which all others connect first, and which announces that the start is over.
inline constexpr WorkerId kCoordinator{0};

/// Threads: none of its own and no lock.
class Meeting {
 public:
  struct Options {
    /// By id of the member: the address at which it can be dialled; empty = learnt from the coordinator.
    std::vector<std::string> addresses{};
    base::Duration start_timeout{};
    bool in_one_process = false;  ///< the workers find each other without addresses
  };

  /// Precondition: `addresses` has one entry for each member.
  Meeting(Membership membership, Options options);

  bool is_coordinator() const noexcept { return self_ == kCoordinator; }
  /// Returns whether the start has ended, or this worker leaves: a worker without a session will not come any more.
  bool start_is_over() const noexcept { return start_ == Start::over || is_leaving_; }
  /// This worker leaves: from now on it admits no session and dials no peer.
  void leave() noexcept { is_leaving_ = true; }

  // ---- sessions

  /// Checks whether a peer that has proven the secret may have a session. Errors: as Membership::admit.
  Result<void> admit(const Join& peer) const { return membership_.admit(peer); }
  /// A session is about to be added; a session of this worker with itself changes nothing.
  /// @param place  where the peer is, for the text of a duplicate_worker
  /// Errors: shut_down (this worker leaves); as Membership::on_up.
  Result<void> on_session_start(const WorkerLife& peer, const std::string& place);
  /// The session has been added and calls can use it.
  /// @param address  the address at which the peer says that it listens; empty = unknown
  void on_connected(const WorkerLife& peer, const std::string& address);

  struct Loss {
    /// When the loss is reported to users. During the start the peer may come back: then `end_start` decides.
    enum class Report : std::uint8_t { no, now, after_start };
    bool is_last = false;  ///< no session with that life is left
    Report report = Report::no;
    bool dial = false;  ///< the peer may come back: dial it (SE-34)
  };
  /// A session that was added has ended. Returns what to do about it.
  Loss on_session_end(const WorkerLife& peer);
  /// Returns why calls to a peer without a session fail (SE-29).
  Error why_unreachable(WorkerId peer) const;

  // ---- dialling

  /// Returns the peers to dial when this worker is launched.
  std::vector<WorkerId> to_dial() const;
  /// Returns where to dial `peer` now, nullopt if it is not to be dialled: it is up, is being dialled, has no known
  /// address, or will not come. The attempt lasts until `end_dial` or `on_dial_failed`.
  std::optional<std::string> begin_dial(WorkerId peer, base::TimePoint now);
  /// The attempt has led to a session, or its pause is over.
  void end_dial(WorkerId peer) { members_[peer.value].is_dialled = false; }

  struct FailedDial {
    std::optional<base::TimePoint> again;  ///< when to end the attempt and dial again; nothing = do not dial again
    std::optional<Error>
        duplicate;  ///< report it to users: this peer is the first that refuses this worker as a duplicate
    std::optional<Error> given_up;  ///< log it: the start is over, and the new life of this peer is not dialled again
  };
  /// The attempt has failed. The start may fail with it (SE-33).
  FailedDial on_dial_failed(WorkerId peer, const Error& error, base::TimePoint now);

  // ---- connections that this worker refused

  /// A member has other settings than this worker: the next refusal fails the start.
  void on_other_settings(const Error& error);
  /// Returns whether the refusal is to be reported to users: the refused peer may be a member that this worker waits
  /// for. The start may fail by it.
  bool on_refused(const Error& error);

  // ---- the start

  /// On the coordinator: returns the view to send to all members, once all have joined and again after each new life
  /// (SE-34).
  std::optional<View> take_view();
  /// Takes the coordinator's view and returns the peers to dial. A view of another sender, and a view that is not newer
  /// than the last one, change nothing. Errors: as Membership::apply.
  Result<std::vector<WorkerId>> on_view(WorkerId sender, const View& view);

  struct ReadyReport {
    std::vector<WorkerId> receivers{};  ///< of the message Met
    bool ends_start = false;            ///< whether to call `end_start` afterwards
  };
  /// Returns, once, what to do after this worker has a session with every other; at the coordinator, after all members
  /// have reported so (SE-27).
  std::optional<ReadyReport> take_ready_report();

  enum class OnMet : std::uint8_t {
    nothing,
    look,       ///< call `take_ready_report`
    answer,     ///< send Met back: the sender is a new life, and the start of the others is over
    end_start,  ///< call `end_start`
  };
  /// A Met has arrived in a session with that life of the sender.
  OnMet on_met(const WorkerLife& sender);

  /// Ends the start. Returns the members that were lost during it and have not come back; report them to users now
  /// (SE-28). Returns nullopt if the start has ended or failed before.
  std::optional<std::vector<WorkerId>> end_start();
  /// Fails the start, unless it has ended or failed before.
  void fail(Error error);
  /// Fails the start because its time is over, with the names of the missing members (SE-26).
  /// @param siblings  names of the workers of the same launcher, which itself reports those that do not come
  void fail_late(std::span<const std::string> siblings);
  /// Returns how the start has ended; nullopt while it lasts.
  std::optional<Result<void>> outcome() const;

 private:
  /// Where the start is, seen from this worker.
  enum class Start : std::uint8_t {
    meeting,   ///< a session is missing; at the coordinator, or the report of a member
    reported,  ///< this worker has a session with every other and has reported so; at the coordinator, all members have
    over,
    failed,
  };
  /// How far the list of all members has got in its present form: none yet; sent, at the coordinator; received,
  /// elsewhere.
  enum class ViewState : std::uint8_t { none, sent, received };
  struct Member {
    std::string name;
    std::string address;  // empty: not known yet
    bool has_fixed_address;
    DialPause dial_pause;
    Error duplicate = {};       // the refusal if a member refused the last attempt as a duplicate; else Errc::ok
    bool is_dialled = false;    // the member is being dialled, or will be dialled again after a pause
    bool is_connected = false;  // there is a session with the member's present life that can be used
    // The member's present life has reported to the coordinator that it has a session with every other.
    bool reported_ready = false;
    bool lost_at_start = false;
    Incarnation was_up = {};     // the member's latest life that has been connected; zero: none
    Incarnation announced = {};  // the member's present life according to the coordinator; zero: unknown
  };

  bool is_decided() const noexcept { return start_ == Start::over || start_ == Start::failed; }
  bool may_dial(const Member& member, base::TimePoint now) const;
  bool is_present(const WorkerLife& peer) const;
  bool all_others(std::size_t count) const noexcept { return count + 1 == members_.size(); }
  /// Changes `flag`, and the number of members that have it.
  static void set(bool& flag, std::size_t& count, bool value) noexcept;
  static void learn_address(Member& member, const std::string& address);
  Error why_late(std::span<const std::string> siblings) const;

  Membership membership_;
  Options options_;
  WorkerId self_;
  std::vector<Member> members_;     // the index is the id
  std::size_t connected_ = 0;       // members with is_connected: in a large job one after the other comes
  std::size_t reported_ready_ = 0;  // members with reported_ready
  bool is_leaving_ = false;
  Start start_ = Start::meeting;
  Error failure_;  // why the start has failed, if it has
  ViewState view_ = ViewState::none;
  Error last_dial_error_;
  Error last_refusal_;
  std::size_t refusals_ = 0;
  std::optional<Error> other_settings_;
};

}  // namespace caftan::net

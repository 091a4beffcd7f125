/// The members of the job: which are up, and in which life. The application file fixes names and ids; incarnations and
/// addresses are learnt: at the coordinator from the workers' `Join`, elsewhere from the coordinator's `View`. Start
/// with `Membership::make`. Invariants SE-20 to SE-25, SE-27 to SE-29: docs/protocols/session.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::net {

/// One worker of the application file.
struct MemberEntry {
  std::string name;
  WorkerId id;          ///< 0, 1, ... without gaps
  std::string address;  ///< the address at which the worker listens; empty = learnt when the worker has started
};

/// What is known of a worker. A worker joins by its hello, from which the coordinator makes its Join; a View carries
/// the Joins of all members.
struct Join {
  std::string name;
  WorkerId id;
  Incarnation incarnation;  ///< zero: not known yet; never in a message
  std::string address;      ///< empty = it does not listen
  bool operator==(const Join&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& id.value& incarnation.value& address;
  }
};

/// The list of all members, which the coordinator sends to all of them: once all have joined, and again whenever a new
/// life of a member joins.
struct View {
  std::uint64_t revision = 0;  ///< counts up; an older view is ignored
  std::vector<Join> members;   ///< all, in order of their ids

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& revision& members;
  }
};

/// A member that sends this to the coordinator has a session with every other member. The coordinator sends it once all
/// members have reported so: the start is over.
struct Met {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

/// Threads: none of its own and no lock; the worker's root actor or a test calls it.
class Membership {
 public:
  /// Errors: invalid_config (no members, a gap or repetition among names or ids, `self` not in it or without
  /// incarnation).
  static Result<Membership> make(std::vector<MemberEntry> entries, const Join& self);

  const Join& self() const noexcept { return members_[self_].known; }
  std::size_t size() const noexcept { return members_.size(); }

  /// Returns a member as far as it is known. Errors: unknown_worker, with the names there are.
  Result<Join> find(std::string_view name) const;
  Result<Join> find(WorkerId id) const;

  /// Checks whether a peer that has proven the secret may have a session: for the handshake's `accept`. The same
  /// incarnation may connect again (a second connection, or a new session after a loss).
  /// Errors: unknown_worker (no such name in this job), invalid_config (another id than the application file gives it),
  /// duplicate_worker (another incarnation of it is up, or it claims to be this worker), peer_down (this incarnation
  /// was replaced by a later one).
  Result<void> admit(const Join& peer) const;

  /// On the coordinator: takes a worker's join and returns whether that changed the view, which has to be sent then. A
  /// repeated join changes nothing. Errors: as admit.
  Result<bool> join(const Join& member);

  /// Returns whether all members have joined.
  bool complete() const noexcept { return missing_ == 0; }
  /// Returns the names of the members that have not joined, in order of their ids.
  std::vector<std::string> missing() const;
  /// Returns the view to send. Precondition: complete().
  View view() const;
  /// Returns the revision of the newest view: at the coordinator its own, elsewhere the one that was applied last; 0 =
  /// none.
  std::uint64_t revision() const noexcept { return revision_; }

  /// Takes the coordinator's view and returns the members whose address or incarnation changed. A view that is not
  /// newer changes nothing. A member's entry stays as it is where a session to another incarnation is up, or where the
  /// incarnation in the view was replaced already. Errors: malformed_payload (a view that does not fit the application
  /// file; nothing was changed), duplicate_worker (the coordinator knows another incarnation of this worker).
  Result<std::vector<WorkerId>> apply(const View& view);

  /// One more session with this life has begun. Returns whether it is the first. A life that replaces another one ends
  /// the other for good. Errors: unknown_worker, duplicate_worker, peer_down; as admit.
  /// @param place  where the worker is, for the text of a duplicate_worker
  Result<bool> on_up(const WorkerLife& worker, const std::string& place = {});

  /// One of the sessions with this life has ended. Returns whether it was the last; false for a life that is
  /// not the current one.
  bool on_down(const WorkerLife& worker);

  bool is_up(WorkerId id) const;

 private:
  struct Member {
    Join known;
    std::size_t sessions = 0;  ///< sessions with the member's present life; the member is up while there is one
    std::string place = {};    ///< of the last of them
    Incarnation joined = {};   ///< the member's life whose join the coordinator has, or that a view named; zero: none
    std::vector<Incarnation> replaced = {};  ///< earlier lives of the member; as many as there were restarts
  };

  Membership(std::vector<Member> members, std::size_t self);
  std::string names() const;
  Result<void> check_life(const Member& member, Incarnation incarnation) const;
  Result<void> check_view(const View& view) const;
  static void begin_life(Member& member, Incarnation incarnation);
  void set_joined(Member& member, Incarnation incarnation);

  std::vector<Member> members_;  ///< the index is the id
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::size_t self_;
  std::size_t missing_ = 0;  ///< members that have not joined
  std::uint64_t revision_ = 0;
};

}  // namespace caftan::net

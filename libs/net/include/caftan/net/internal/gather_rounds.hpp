/// `GatherRounds`: the rounds in which the members of one set give each other a value: `all_gather`, and `barrier`,
/// where the value is nothing. Events go in, what to send and how a call ended comes out. Rules GA-1 to GA-9:
/// docs/protocols/gather.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::net {

/// Which round of a set of members a value is for.
struct GatherRound {
  std::uint64_t lives = 0;   ///< a hash of the lives of all members of the set, as the sender knows them
  std::uint64_t number = 0;  ///< from 0 on, for these lives
  bool operator==(const GatherRound&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lives& number;
  }
};

/// Threads: none of its own and no lock.
class GatherRounds {
 public:
  /// What a member gives; opaque here. Not null.
  using Value = std::shared_ptr<const void>;
  struct Name {
    WorkerId id;
    std::string name;
  };

  /// @param members  in order of their ids; this worker among them
  GatherRounds(const std::vector<Name>& members, const WorkerLife& self);

  // ---- calls of this worker

  /// Begins a call. Returns the round that it is for; its value has to be sent to all other members. A call that has
  /// failed leaves its round open: this one goes on with that round, and the value of the failed one counts (GA-5).
  /// Errors: overloaded (a call is under way).
  Result<GatherRound> begin_call(Value value);
  /// Returns the value that this worker gives in its present round. Precondition: a call is under way.
  const Value& own_value() const;
  /// A member has confirmed that it has the value of this worker's present round.
  void on_confirmed(WorkerId member, const GatherRound& round);
  /// This worker's value could not be given to a member, because that is lost or has not come.
  void on_not_reached(WorkerId member, const Error& reason);
  /// Returns how the call has ended, with the values in order of the members; nullopt while it goes on.
  std::optional<Result<std::vector<Value>>> outcome() const;
  /// The call has ended. @param succeeded  whether with the values: then the next call begins the next round
  void end_call(bool succeeded);
  bool is_called() const noexcept { return is_called_; }
  /// Returns whether a call of this worker has ever begun.
  bool was_called() const noexcept { return was_called_; }
  /// Returns the error of a call that has not ended within `timeout`. @param what  "barrier" or "all_gather"
  Error why_late(const std::string& what, base::Duration timeout) const;

  // ---- other members

  /// A session with that life has begun.
  void on_up(const WorkerLife& peer);
  /// The last session with that life has ended.
  void on_lost(const WorkerLife& peer, const Error& reason);
  /// A member gives its value. A known round changes nothing (GA-3).
  /// Errors: bad_arguments (a round that cannot have begun; the sender is no member, or of a life that was replaced).
  Result<void> on_value(const WorkerLife& sender, const GatherRound& round, Value value);

 private:
  struct Member {
    WorkerId id;
    std::string name;
    Incarnation life = {};  // zero: it has not come
    std::optional<Error> lost = {};
    // Of the lives `lives`, the values of rounds from `first` on: at most two, since a member begins the round after
    // the present one only when it has this worker's value of the present one.
    std::uint64_t lives = 0;
    std::uint64_t first = 0;
    std::vector<Value> values = {};
    bool has_confirmed = false;  // that it has this worker's value of the present round
  };

  Member* find(WorkerId id) noexcept;
  const Member& self() const;
  std::uint64_t lives() const;
  std::uint64_t round() const;
  const Value* value_of(const Member& member, std::uint64_t round) const;
  void set_life(Member& member, Incarnation life);

  WorkerId self_;
  std::vector<Member> members_;
  std::uint64_t round_ = 0;        // of this worker, for round_lives_
  std::uint64_t round_lives_ = 0;  // 0: it has begun no round
  bool is_called_ = false;
  bool was_called_ = false;
  std::optional<Error> replaced_;  // a member began a new life while the call was under way
};

}  // namespace caftan::net

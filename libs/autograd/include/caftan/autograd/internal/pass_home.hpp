/// `PassHome`: the home's part of one context. It grants pass numbers, one open pass at a time (DA-1), and writes the
/// outcome of each: that single write is its commit point.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "caftan/autograd/internal/pass_actions.hpp"

namespace caftan::autograd {

/// Threads: none of its own; call it from one actor.
class PassHome {
 public:
  explicit PassHome(ContextId context) : context_(context) {}

  /// `initiator` wants a pass. Answers Granted, or Refused: pass_busy, limit_exceeded (too many failed passes).
  PassActions open(WorkerLife initiator);
  /// The initiator reports its outcome. The first decision of a pass stands; the reply says what was decided.
  PassActions decide(WorkerLife from, const Decide& decide);
  /// A participant that cannot reach the initiator gives up: the pass failed, unless it is decided. Answers End.
  PassActions fail(WorkerLife from, const Fail& fail);
  /// `worker` records in the context. Answers End if a pass has been decided already: the worker may have taken part.
  PassActions joined(WorkerLife worker);
  /// A session ended. If that worker had the open pass, the pass failed. The home sends the outcomes of passes of a
  /// lost initiator to all workers that joined.
  PassActions peer_down(WorkerLife peer, const std::string& name = {});

  /// This worker opens a pass of its own. The release waits for it (DA-19). Precondition: it has none open.
  void own_pass_begins();
  /// This worker's own pass has ended. Returns true if the release has waited for that and is due now. Precondition:
  /// own_pass_begins.
  bool own_pass_ends();
  /// The handle is gone. Returns true if the release is due now. Repeating it changes nothing.
  bool release();

  const DecidedSet& decided() const noexcept { return decided_; }
  /// Returns why a pass failed; precondition: it did.
  const Error& failure(PassNumber pass) const { return failures_.at(pass); }
  std::optional<PassNumber> open_pass() const;
  const std::set<WorkerLife>& workers() const noexcept { return joined_; }
  bool release_asked() const noexcept { return release_asked_; }

 private:
  void write(Result<void> outcome);
  Result<void> outcome(PassNumber pass) const;
  End end_of(PassNumber pass) const;
  void tell_joined(PassActions& actions, std::optional<WorkerLife> except) const;

  ContextId context_;
  DecidedSet decided_;
  std::map<PassNumber, Error> failures_;
  std::optional<WorkerLife> initiator_;  // the initiator of the open pass, whose number is decided_.up_to + 1
  std::set<WorkerLife> initiators_;      // the initiators of all passes, as long as their sessions last
  std::set<WorkerLife> joined_;
  bool own_pass_ = false;  // this worker has one open
  bool release_asked_ = false;
};

}  // namespace caftan::autograd

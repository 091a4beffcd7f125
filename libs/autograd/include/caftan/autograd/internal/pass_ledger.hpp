/// `PassLedger`: the initiator's part of one pass. It counts by message id what was spawned and what is done, knows the
/// participants, and sends the outcome to the home. The first failure wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "caftan/autograd/internal/pass_actions.hpp"

namespace caftan::autograd {

/// Threads: none of its own; call it from one actor.
class PassLedger {
 public:
  enum class Phase : std::uint8_t {
    opening,   ///< has asked the home to grant the pass, no reply yet
    counting,  ///< the ledger is open
    running,   ///< SMART: closed; gradients run
    deciding,  ///< the outcome is on its way to the home
    ended,
  };

  PassLedger(ContextId context, WorkerLife self, Mode mode) : pass_{context, {}}, self_(self), mode_(mode) {}

  /// Returns the request to the home to grant the pass. Call it once, first.
  PassActions start() const;
  /// The home's reply. The roots are the ledger's first entry. Ignored in any phase but `opening`.
  PassActions granted(PassNumber pass);
  PassActions refused(const Error& error);
  /// Enters what a participant has walked and marked. With Mode::smart the ledger is closed once everything that was
  /// marked has been walked (`phase`); with Mode::fast the pass is decided then, ok or `unused_branch`.
  /// A report that does not fit (DA-16) fails the pass.
  PassActions report(WorkerLife from, const Report& report);
  /// A participant has run its part. When all participants have: Decide ok.
  PassActions done(WorkerLife from);
  /// A participant's part has failed.
  PassActions failed(WorkerLife from, const Error& error);
  /// The pass has failed: a participant did, a worker was lost, or the deadline has come. Sends Decide with the error,
  /// unless a Decide is on its way already.
  PassActions fail(const Error& error);
  /// A session ended: fails the pass if that worker takes part. The loss of the home is not dealt with here.
  PassActions peer_down(WorkerLife peer, const std::string& name = {});
  /// The outcome that the home wrote. Resolves the pass and sends it to the participants.
  PassActions decided(const Decided& decided);
  /// The context ended under the pass: resolves it with `error`.
  PassActions abandoned(const Error& error);

  const PassId& pass() const noexcept { return pass_; }
  Mode mode() const noexcept { return mode_; }
  Phase phase() const noexcept { return phase_; }
  /// Returns how many participants are known so far, this worker included.
  std::size_t participants() const noexcept { return participants_.size(); }

 private:
  struct Entry {
    bool spawned = false;
    bool done = false;
  };
  bool enter(AutogradMessageId message, bool Entry::*side);
  PassActions decide(Result<void> outcome);
  void closed(PassActions& actions);
  PassActions out_of_line(WorkerLife from, const char* what);
  Error unused_branch() const;

  PassId pass_;
  WorkerLife self_;
  Mode mode_;
  Phase phase_ = Phase::opening;
  std::optional<Error> failed_early_;                     // before the home answered
  std::unordered_map<AutogradMessageId, Entry> entries_;  // the entry whose id has no number stands for the roots
  std::size_t open_ = 0;                                  // entries that are not both spawned and done
  struct Participant {
    bool done = false;
    std::vector<AutogradMessageId> missing;
  };
  std::map<WorkerLife, Participant> participants_;
  std::size_t undone_ = 0;
};

}  // namespace caftan::autograd

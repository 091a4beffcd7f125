/// `ContextPasses`: everything the backward protocol decides about one context at one worker. The context actor holds
/// one: it passes on what arrives and does what comes out (pass_actions.hpp). Rules: docs/protocols/dist_autograd.md.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "caftan/autograd/internal/pass_actions.hpp"
#include "caftan/autograd/internal/pass_home.hpp"
#include "caftan/autograd/internal/pass_ledger.hpp"
#include "caftan/autograd/internal/recorded_messages.hpp"
#include "caftan/autograd/internal/worker_pass.hpp"

namespace caftan::autograd {

struct OpenPass {
  Mode mode = Mode::smart;
  bool keep = false;                    ///< retain the graph for another pass
  std::vector<HeldByWaiter> held = {};  ///< objects that the code which waits for the pass holds
};

/// The parts that this worker plays: home, initiator, participant. Messages between them stay inside.
/// Threads: none of its own; call it from one actor.
class ContextPasses {
 public:
  /// @param self  this worker's life; the home if it made `context`
  /// @param recorded  must outlive this
  ContextPasses(ContextId context, WorkerLife self, const RecordedMessages& recorded, PassLimits limits = {});

  /// Reports to the home that this worker records in the context. Call it once, after construction; not at the home.
  PassActions join();

  /// Begins a backward pass; PassEnded follows, once. Errors: pass_busy (one of this worker is open), context_released.
  /// Precondition: no node of the context waits for this pass (DA-14, `Engine::is_inside_pass_of`).
  Result<PassActions> open(const OpenPass& options);
  /// Ends this worker's open pass with `error` (timeout, cancelled); does nothing if none is open.
  PassActions abort(const Error& error);
  /// A frame of a call or step of this context carried `decided`; deal with it before the frame itself.
  PassActions learn(const DecidedSet& decided);
  /// A message arrived from the context actor of `from`.
  /// @param bytes  of the tensors beside a Grad; the Grad's tensors are kept by the caller until RunGraph feeds them
  PassActions receive(WorkerLife from, const PassMessage& message, std::uint64_t bytes = 0);
  /// A session with `peer` ended, or a message could not be sent to it.
  /// @param name  of the worker, for the errors that this leads to
  PassActions peer_down(WorkerLife peer, const std::string& name = {});
  /// A message of this pass was not sent, for it is beyond a limit: this worker's part of the pass fails (DA-24).
  PassActions not_sent(PassNumber pass, const Error& error);

  /// The events by which the caller reports what came of WalkGraph and RunGraph (pass_actions.hpp). Events of a pass
  /// that is over are ignored.
  PassActions found(PassNumber pass, const std::vector<FoundRecv>& nodes);
  PassActions walked(PassNumber pass);
  PassActions produced(PassNumber pass, AutogradMessageId message);
  PassActions ran(PassNumber pass, const RunResult& result);
  PassActions graph_failed(PassNumber pass, const Error& error);

  /// At the home: the handle is gone, and its own calls and steps have ended (`ContextRecord` waits for these, DA-19).
  /// The release waits for a pass that this worker has open.
  PassActions release();

  bool is_home() const noexcept { return home_.has_value(); }
  bool is_released() const noexcept { return released_; }
  /// Returns the outcomes that every frame of this context carries.
  const DecidedSet& decided() const noexcept { return decided_; }
  /// Returns the workers that joined the context, at its home; none elsewhere, because joins are sent only to the home.
  std::vector<WorkerLife> workers() const;
  /// Returns the initiator's ledger of the open pass, for listings and tests; null if there is none.
  const PassLedger* ledger() const noexcept { return ledger_ ? &*ledger_ : nullptr; }
  const WorkerPass* pass() const noexcept { return worker_ ? &*worker_ : nullptr; }

 private:
  struct Waiting {
    WorkerLife from;
    PassMessage message;
    std::uint64_t bytes = 0;
  };

  void on(WorkerLife from, const PassOpen& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Granted& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Refused& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Mark& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Report& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Grad& message, std::uint64_t bytes, PassActions& out);
  void on(WorkerLife from, const Done& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Fail& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Decide& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Decided& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Join& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const End& message, std::uint64_t, PassActions& out);
  void on(WorkerLife from, const Release& message, std::uint64_t, PassActions& out);

  template <class Act>
  PassActions at_worker(PassNumber pass, Act act);
  bool takes_part(WorkerLife from, const PassHeader& header, const PassMessage& message, std::uint64_t bytes,
                  PassActions& out);
  bool is_ledgers(const PassId& pass) const;
  void answer_end(WorkerLife from, const PassId& pass, PassActions& out) const;
  void take_over(const DecidedSet& decided, PassActions& out);
  void by_worker(PassActions actions, PassActions& out);
  void by_ledger(PassActions actions, PassActions& out);
  void by_home(PassActions actions, PassActions& out);
  void append(PassActions actions, PassActions& out);
  void end_context(const Error& reason, PassActions& out);
  PassActions finished(PassActions out);

  ContextId context_;
  WorkerLife self_;
  const RecordedMessages& recorded_;
  PassLimits limits_;
  DecidedSet decided_;
  std::map<PassNumber, Error> failures_;  // why passes failed, as far as known here
  std::optional<PassHome> home_;
  std::optional<PassLedger> ledger_;
  bool keep_ = false;               // of the pass of `ledger_`
  std::vector<HeldByWaiter> held_;  // likewise
  std::optional<WorkerPass> worker_;
  // Messages for the next pass, kept until this worker's part of the pass before has stopped.
  std::vector<Waiting> waiting_;
  // Recorded messages whose graph a failed pass has freed, each with that pass.
  std::unordered_map<AutogradMessageId, PassNumber> freed_by_;
  std::deque<Waiting> inbox_;  // from this worker to itself
  bool released_ = false;
};

}  // namespace caftan::autograd

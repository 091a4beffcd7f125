/// `ContextTable`: which autograd contexts are open at one worker, its own and those of others that it takes part in. A
/// released context is refused for ever; for this the table keeps ranges of numbers for each life of which it has seen
/// a context (DA-13). Contexts that were open at a release divide the ranges. When they are released without this
/// worker, because it takes no part in them, the table asks their creator about the ranges that they divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "caftan/autograd/internal/pass_actions.hpp"
#include "caftan/base/result.hpp"

namespace caftan::autograd {

/// Threads: none of its own and no lock.
class ContextTable {
 public:
  explicit ContextTable(WorkerLife self) : self_(self) {}

  /// Returns the id of a new context of this worker, open from now on.
  ContextId create();
  /// A frame or user code wants to work in `context`. Returns true if it is new here: make its ContextPasses and join.
  /// Errors: context_released; unknown_context (of this worker, but never made).
  Result<bool> enter(ContextId context);
  /// The context is over here. Repeating it changes nothing.
  void released(ContextId context);
  /// Ranges of one creator above which the table asks the creator.
  static constexpr std::size_t kMostUnasked = 16;
  /// From now on refuses the contexts that a Release from `creator` names, all in the range `released`. Returns a
  /// released context of the creator if a Join of it has to be sent there: the reply is a Release whose range may join
  /// several that are kept here. Returns nothing unless this release made one range more.
  std::optional<ContextId> learn(WorkerLife creator, const ReleasedRange& released);
  /// A session with `peer` ended. Returns its contexts that were open here: send `peer_down` to each. The contexts of
  /// that life which this worker has seen or joined are refused from now on, because messages of them may be lost.
  std::vector<ContextId> peer_down(WorkerLife peer);

  /// Returns the reply to a message of a context that is not open here, if it needs one: the protocol's other parties
  /// must not wait for this worker.
  std::optional<Send> refuse(WorkerLife from, const PassMessage& message) const;

  bool is_open(ContextId context) const;
  /// Returns what a Release of `context`, one of this worker's, says: the longest range of released ones around it.
  ReleasedRange released_around(ContextId context) const;
  std::size_t open_contexts() const noexcept;
  /// Returns how many ranges of numbers are kept in order to refuse released contexts; the open contexts do not count.
  std::size_t remembered() const noexcept;

 private:
  struct Creator {
    std::map<std::uint64_t, std::uint64_t> released;  // first -> last number of each range; no two ranges touch
    std::set<std::uint64_t> open;                     // here
    std::uint64_t asked = 0;                          // the first number of the range that `learn` returned last
    bool refuses(std::uint64_t number) const;
    void add(ReleasedRange range);
  };

  WorkerLife self_;
  std::uint64_t made_ = 0;
  std::map<WorkerLife, Creator> creators_;
};

}  // namespace caftan::autograd

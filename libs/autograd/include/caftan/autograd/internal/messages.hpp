/// The messages of the backward protocol, between the context actors of one context. Each is registered with the
/// transport and travels by the wire archives; layout, senders and meaning: docs/protocols/dist_autograd.md,
/// "Messages".
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "caftan/autograd/internal/decided_set.hpp"
#include "caftan/autograd/mode.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::autograd {

/// Returns "worker 3", for texts.
inline std::string name_of(const WorkerLife& life) { return "worker " + std::to_string(life.id.value); }

/// A backward pass, by its context and its number there.
struct PassId {
  ContextId context;
  PassNumber number;
  auto operator<=>(const PassId&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& context& number;
  }
};
/// Returns for example "0.7#2".
std::string to_string(const PassId& pass);

/// Initiator -> home: may I begin a pass? Only if the initiator is not the home.
struct PassOpen {
  ContextId context;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& context;
  }
};
/// Home -> initiator: begin.
struct Granted {
  PassId pass;
  DecidedSet decided;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& decided;
  }
};
/// Home -> initiator: no pass (pass_busy, limit_exceeded). A context that is over answers Release instead.
struct Refused {
  ContextId context;
  Error error;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& context& error;
  }
};

/// An object whose turn the code that waits for a pass keeps (rpc::HeldObject).
struct HeldByWaiter {
  RRefId object;
  std::string name;
  bool operator==(const HeldByWaiter&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& object& name;
  }
};

/// How many objects the code that begins a pass may hold; with more of them the pass is refused.
inline constexpr std::size_t kMostHeld = 64;

/// What a worker must know to take part in a pass that is new to it.
struct PassHeader {
  PassId pass;
  DecidedSet decided;
  WorkerLife initiator;
  Mode mode = Mode::smart;
  bool keep = false;  ///< retain the graph
  /// Objects that the chain of calls which waits for the pass holds, at most kMostHeld.
  std::vector<HeldByWaiter> held = {};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& decided& initiator& mode& keep& held;
  }
};

/// The worker of R(m) -> the worker of S(m): these messages will each get a gradient in this pass.
struct Mark {
  PassHeader header;
  std::vector<AutogradMessageId> messages;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& header& messages;
  }
};

/// Participant -> initiator: the ledger's entries. SMART: marks walked, marks sent. FAST: gradients used up, gradients
/// sent. An id without number stands for the roots.
struct Report {
  PassId pass;
  std::vector<AutogradMessageId> done;
  std::vector<AutogradMessageId> spawned;
  std::vector<AutogradMessageId> missing;  ///< with Mode::fast: some messages that the sender still waits for
  bool drained = false;                    ///< FAST: the sender's part is complete
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& done& spawned& missing& drained;
  }
};

/// R(m) -> S(m): the gradient of one recorded message. Its tensors travel beside it, undefined ones as undefined.
struct Grad {
  PassHeader header;
  AutogradMessageId message;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& header& message;
  }
};

/// Participant -> initiator (SMART): all my gradients have arrived and my part of the graph has run.
struct Done {
  PassId pass;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass;
  }
};
/// Participant -> initiator, or home if the initiator is lost; also as a reply to a mark or gradient, and from a worker
/// whose context ends to its neighbours in the pass: this pass cannot succeed.
struct Fail {
  PassId pass;
  Error error;  ///< the error names the worker, and in its text the node
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& error;
  }
};

/// Initiator -> home: write this outcome.
struct Decide {
  PassId pass;
  Result<void> outcome;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& outcome;
  }
};
/// Home -> initiator: the outcome of the pass, which is the first that was written at the home.
struct Decided {
  PassId pass;
  Result<void> outcome;
  DecidedSet decided;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& outcome& decided;
  }
};
/// Initiator or home -> participants, and as a reply to messages of a pass that is over: the outcome of the pass.
struct End {
  PassId pass;
  Result<void> outcome;
  DecidedSet decided;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& pass& outcome& decided;
  }
};

/// A worker -> home: I record in this context from now on.
struct Join {
  ContextId context;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& context;
  }
};

/// Contexts of one creator's life that are released, by number: all from `first` to `last`.
struct ReleasedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;  ///< below `first`: none
  bool operator==(const ReleasedRange&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& first& last;
  }
};
/// Home -> workers that joined, and as a reply to messages of a context that is over: the context is released.
struct Release {
  ContextId context;
  ReleasedRange released;  ///< the longest one around it
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& context& released;
  }
};

/// Any message of the protocol of passes.
using PassMessage =
    std::variant<PassOpen, Granted, Refused, Mark, Report, Grad, Done, Fail, Decide, Decided, Join, End, Release>;

/// Returns the context a message is about.
ContextId context_of(const PassMessage& message);
/// Returns the message in one line, for traces: "Mark 0.7#2 [1.3 1.4]".
std::string to_string(const PassMessage& message);

}  // namespace caftan::autograd

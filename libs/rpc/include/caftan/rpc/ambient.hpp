/// `Ambient`: what goes along with running user code without being an argument: the time that is left, the cancel flag,
/// the trace, the autograd context, the objects that the call chain holds, grad mode. One thread-local pointer leads to
/// it. It is swapped (AmbientSwap), never scoped, wherever user code resumes: a runner's job, a continuation, a role's
/// handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/executor.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan {

namespace rpc {
class Turn;
}

/// Whether the caller of a running call gave up. Set once, by the worker that serves the call. Threads: any.
class CancelFlag {
 public:
  /// A part of the call that is given up with it: a call that it made and that has no reply yet. Owned by shared_ptr.
  class Part : public std::enable_shared_from_this<Part> {
   public:
    Part() = default;
    virtual ~Part() = default;
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    /// Called at most once, by the thread that sets the flag.
    virtual void give_up() noexcept = 0;

   private:
    friend class CancelFlag;
    Part* next_ = nullptr;
    Part** before_ = nullptr;  // null = this part is not in the list of a flag
  };

  /// Gives up all parts.
  void set() noexcept;
  /// Returns whether the caller gave up. Threads: any.
  bool is_set() const noexcept { return set_.load(); }

  /// Adds a part, unless the flag is set already: check `is_set` afterwards. Remove the part before it is destroyed. Do
  /// not call this in the part's constructor: `set` on another thread needs a part that a shared_ptr owns already.
  void add(const std::shared_ptr<Part>& part) const;
  /// Removes a part that may have been given up already. Threads: any.
  void remove(Part& part) const noexcept;

 private:
  std::atomic<bool> set_{false};
  mutable base::Mutex mutex_;
  mutable Part* parts_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
};

/// An object whose turn a call chain keeps while it waits (a method registered as exclusive).
struct HeldObject {
  RRefId id;
  std::string name;  ///< for the text of would_deadlock
  /// Set when the method has returned. Null if the method runs at another worker: its end is not known here, so it
  /// counts as running.
  std::shared_ptr<const std::atomic<bool>> over{};

  /// Returns whether the method is known to have returned.
  bool is_over() const noexcept { return over && over->load(std::memory_order_acquire); }
};
/// The chain, outermost first; null = nothing is held.
using HeldObjects = std::shared_ptr<const std::vector<HeldObject>>;

/// Where running code stands in an order that depends on the structure of the program alone, never on timing.
struct OrderKey {
  std::uint64_t key = 0;      ///< key of the call that is being served; 0 = none
  std::uint64_t ordinal = 0;  ///< number of calls and continuations that the served call has begun

  /// Returns the key of the next call or continuation.
  std::uint64_t next() noexcept { return mix64(mix64(key + 0x9e3779b97f4a7c15ULL) + ++ordinal); }
};

/// What goes along with the user code of one stack.
struct Ambient {
  std::weak_ptr<void> autograd_context;
  HeldObjects held;
  std::shared_ptr<const CancelFlag> cancel;  ///< null = cannot be cancelled
  base::TimePoint deadline = base::kNever;   ///< nested calls inherit the time that is left of it
  std::uint64_t trace = 0;
  unsigned depth = 0;  ///< calls that wait for this code, directly or not
  OrderKey order;
  rpc::Turn* turn = nullptr;           ///< the turn that the job on this stack holds; never copied to another stack
  base::Executor* executor = nullptr;  ///< the executor whose runner runs this stack; null = not a runner's
  const std::string* brief = nullptr;  ///< the function on this stack if it is registered as brief: it must not wait
  /// The mode with which this code begins; a mode that the code sets later is kept by the thread alone.
  bool grad_mode = true;
  bool inside_reading_wait = false;  ///< this stack is inside a wait that may read frames: user code must not run on it

  /// Returns the Ambient of the running code, null on a thread that bound none.
  static Ambient* current() noexcept { return current_; }

  /// Returns the Ambient of the running code. A thread that has none gets one of its own, which it keeps.
  static Ambient& of_thread() noexcept;

  /// Returns the Ambient for a continuation that is made now: a copy of the running code's, without the turn, the brief
  /// function and the executor. The grad mode is the thread's; the order is the continuation's own.
  static Ambient capture();

 private:
  friend class AmbientSwap;
  static thread_local constinit Ambient* current_;
};

/// Makes `next` current (null = none) and sets the thread's grad mode to it; the destructor puts both back. Lives on
/// the stack of one thread.
class AmbientSwap {
 public:
  explicit AmbientSwap(Ambient* next) noexcept;
  ~AmbientSwap();
  AmbientSwap(const AmbientSwap&) = delete;
  AmbientSwap& operator=(const AmbientSwap&) = delete;

 private:
  Ambient* const previous_;
  const bool previous_grad_mode_;
};

namespace rpc {

/// Errors: would_deadlock when the running function is registered as brief: no thread reads frames while it runs.
Result<void> check_may_wait();

/// While an object of this class lives, the Ambient is empty, and the stack is marked as one that must not run user
/// code: for a waiting caller that reads frames.
class NoUserCode {
 public:
  NoUserCode() noexcept;

 private:
  Ambient empty_;
  AmbientSwap swap_;
};

/// Appends the content of section `chain`: the objects of `held` whose methods have not returned, as far as is known.
/// Layout: docs/protocols/call.md.
void encode_held(const HeldObjects& held, wire::Bytes& to);

/// Reads the content of section `chain`.
/// Errors: malformed_payload (truncated, more than 64 objects, a name beyond 256 bytes, bytes left over).
Result<HeldObjects> decode_held(wire::ByteView from);

/// Returns `held` with one object more at its end.
HeldObjects with_held(const HeldObjects& held, HeldObject object);

}  // namespace rpc
}  // namespace caftan

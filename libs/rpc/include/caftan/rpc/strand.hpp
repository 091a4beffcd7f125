/// `Strand`: the turn queue of one hosted object. Its jobs run one at a time, in order of arrival. A job that waits
/// gives its turn back and, once it wakes, takes it again ahead of jobs that have not started; after a few such returns
/// the oldest of those goes first. Any code that must not overlap with an object's methods (optimizer steps, backward
/// slices) joins with `run`. Objects that are parts of another one share its strand: the tensors that its methods and
/// its constructor hand out references to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/task.hpp"
#include "caftan/rpc/ambient.hpp"

namespace caftan {

/// How a method shares its object.
enum class TurnMode : std::uint8_t {
  serial,      ///< alone; gives the turn back while it waits
  exclusive,   ///< alone, also while it waits
  concurrent,  ///< may overlap with other concurrent methods, never with the other kinds
};

namespace rpc {

/// Every job keeps alive what owns the Strand until the job itself is destroyed; so a Strand never dies with jobs in
/// it.
class Strand : public std::enable_shared_from_this<Strand> {
 public:
  /// @param executor  runs jobs that had to queue; outlives the strand
  /// @param object    whose methods take turns here
  explicit Strand(base::Executor& executor, RRefId object = {}) : executor_(executor), object_(object) {}
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  /// Runs `job` here and now if the turn is free and no job is queued, else queues it for a runner. The job finds
  /// the turn in `Ambient::current()->turn`. It must not throw. Threads: any; blocks only as the job does.
  template <class F>
  void run(F&& job, TurnMode mode = TurnMode::serial) {
    if (!try_start(mode)) return enqueue(base::Task(std::forward<F>(job)), mode);
    execute(job, mode);
  }

  /// Runs `job` here while holding the turns of all `strands`, besides those of the calling code, and returns null.
  /// Blocks. Turns are taken one after the other, ahead of jobs that have not started, and held. A turn that an
  /// exclusive job keeps while it waits may never become free as long as the others are held: then `job` does not run,
  /// and that strand is returned. The caller gives back its own turns and tries again when that strand is free.
  /// Precondition: all callers that take several turns take them in the same order.
  static std::shared_ptr<Strand> run_with_all(std::span<const std::shared_ptr<Strand>> strands,
                                              const std::function<void()>& job);

  /// Returns the strand whose turn the calling code holds, null if it holds none.
  static std::shared_ptr<Strand> held_here() noexcept;

  /// Returns the object whose methods take turns on this strand; other objects on this strand are parts of that object.
  RRefId object() const noexcept { return object_; }

  /// Returns whether the calling code holds this strand's turn.
  bool is_held_here() const noexcept;

  /// From now on no optimizer steps the tensors whose turns are here: the code that serves the object steps them
  /// itself.
  /// @param instead  what users call instead of an optimizer's step, for the error; lives as long as the program
  /// Threads: any
  void reserve_steps(const char* instead) noexcept { instead_of_steps_.store(instead); }
  /// Returns what `reserve_steps` was given; null: optimizers may step the tensors. Threads: any.
  const char* instead_of_steps() const noexcept { return instead_of_steps_.load(); }

 private:
  friend class FirstTurn;
  friend class TurnPause;
  struct Queued {
    base::Task job;
    TurnMode mode;
  };
  /// Gives the turn back however the job ends.
  class Release {
   public:
    Release(Strand& strand, TurnMode mode) noexcept : strand_(strand), mode_(mode) {}
    Release(const Release&) = delete;
    Release& operator=(const Release&) = delete;
    ~Release() { strand_.release(mode_); }

   private:
    Strand& strand_;
    const TurnMode mode_;
  };
  /// Whether code that wants a turn gives up where an exclusive job keeps it while it waits.
  enum class Patience : std::uint8_t { waits, gives_up };
  /// A job that gave the strand's turn back and wants it again, or that holds other turns and wants this strand's turn,
  /// too; lives on the job's stack.
  struct Returning {
    base::WaitPoint* point;
    TurnMode mode;
    Patience patience;
    enum class Outcome : std::uint8_t { none, granted, gave_up } outcome = Outcome::none;
    Returning* next = nullptr;
  };

  template <class F>
  void execute(F& job, TurnMode mode);
  bool try_start(TurnMode mode);
  void enqueue(base::Task job, TurnMode mode);
  bool may_start(TurnMode mode) const noexcept CAFTAN_REQUIRES(mutex_);
  void occupy(TurnMode mode) noexcept CAFTAN_REQUIRES(mutex_);
  /// Returns whether the oldest queued job goes ahead of the jobs that come back from a wait.
  bool is_queue_due() const noexcept CAFTAN_REQUIRES(mutex_) { return !queue_.empty() && returns_ >= kMostReturns; }
  /// Gives the turn to all jobs that may have it now: notifies those that come back from a wait, and returns the queued
  /// ones, which the caller starts with `post` once the lock is released.
  std::vector<Queued> take_startable() CAFTAN_REQUIRES(mutex_);
  void post(std::vector<Queued> jobs);
  /// Ends one turn and starts the jobs that may have it next.
  void release(TurnMode mode);
  /// Takes the turn ahead of queued jobs. Returns false, without the turn, if `patience` is `gives_up` and an exclusive
  /// job keeps the turn while it waits.
  bool take(TurnMode mode, Patience patience);
  /// Called by the job that has the turn, after a wait whose result was there at once: counts it as a return. Returns
  /// whether the oldest queued job goes first now.
  bool is_due_after_return();
  /// Called by the exclusive job that has the turn: when its wait begins, and when its wait is over.
  void keep_while_waiting();
  void stop_waiting();

  /// How often jobs that come back from a wait may go ahead of the oldest queued job; after that the queued job gets
  /// the turn.
  static constexpr std::uint32_t kMostReturns = 4;

  base::Executor& executor_;
  const RRefId object_;
  std::atomic<const char*> instead_of_steps_{nullptr};
  base::Mutex mutex_;
  // A serial or exclusive job has the turn.
  bool alone_ CAFTAN_GUARDED_BY(mutex_) = false;
  // Concurrent jobs that have it.
  std::uint32_t together_ CAFTAN_GUARDED_BY(mutex_) = 0;
  // Waits in which an exclusive job keeps the turn.
  std::uint32_t kept_ CAFTAN_GUARDED_BY(mutex_) = 0;
  // First in first out, ahead of queue_.
  Returning* returning_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
  Returning** returning_end_ CAFTAN_GUARDED_BY(mutex_) = &returning_;
  // How many jobs took the turn again after a wait since the present first job of queue_ became the first.
  std::uint32_t returns_ CAFTAN_GUARDED_BY(mutex_) = 0;
  // Not a deque: an empty deque takes 600 B in every object.
  std::list<Queued> queue_ CAFTAN_GUARDED_BY(mutex_);
};

/// A job's turn on a strand; lives on the job's stack. Ambient::turn points to it.
class Turn {
 public:
  Turn(Strand& strand, TurnMode mode) noexcept : strand_(strand), mode_(mode) {}

  const Strand& strand() const noexcept { return strand_; }
  TurnMode mode() const noexcept { return mode_; }
  /// Returns whether the job has its turn at this moment: a wait may have given it back.
  bool is_held() const noexcept { return held_; }
  /// Returns whether a wait gives this turn back.
  bool yields() const noexcept { return mode_ != TurnMode::exclusive; }

 private:
  friend class FirstTurn;
  friend class Strand;
  friend class TurnPause;
  Strand& strand_;
  const TurnMode mode_;
  bool held_ = true;
};

template <class F>
void Strand::execute(F& job, TurnMode mode) {
  const Release release(*this, mode);
  Turn turn(*this, mode);
  Ambient ambient;
  ambient.turn = &turn;
  ambient.executor = &executor_;
  const AmbientSwap swap(&ambient);
  job();
}

/// The turn of the code that constructs an object, on its new strand, which lives longer: what the constructor makes
/// references to takes its turns with the object. Lives on the stack of one thread.
class FirstTurn {
 public:
  /// Precondition: nothing else knows `strand` yet.
  explicit FirstTurn(Strand& strand);
  ~FirstTurn();
  FirstTurn(const FirstTurn&) = delete;
  FirstTurn& operator=(const FirstTurn&) = delete;

 private:
  const Strand::Release release_;
  Turn turn_;
  Ambient& ambient_;
  Turn* const around_;
};

/// While an object of this class lives, the turn of the running code is given back; every Caftan wait makes such an
/// object. The destructor blocks until the turn is here again. An exclusive turn is not given back; its strand then
/// knows that a waiting job keeps the turn.
class TurnPause {
 public:
  TurnPause();
  ~TurnPause();
  TurnPause(const TurnPause&) = delete;
  TurnPause& operator=(const TurnPause&) = delete;

  /// Counts a wait of the running code whose result was there before it began as a return from a wait. Returns whether
  /// the oldest queued job goes ahead of the running code now (CALL-7): then the caller makes a TurnPause.
  static bool is_due();

 private:
  static Turn* held_turn() noexcept;

  Turn* turn_;
};

}  // namespace rpc
}  // namespace caftan

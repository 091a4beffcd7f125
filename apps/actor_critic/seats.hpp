/// Who has sent what: the trajectories that the learner has not learned from, and the actors that wait for weights. A
/// plain class without calls; replies are functions. Start with `take` and `next_batch`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "actor_critic/player.hpp"
#include "caftan/base/result.hpp"

namespace caftan::actor_critic {

/// Threads: one at a time.
class Seats {
 public:
  /// @param actors  at least 1
  /// @param batch   trajectories of an update, of whichever actors; 0 = one of each actor that is left
  /// @param ahead   as LearnerConfig::ahead
  Seats(std::size_t actors, std::size_t batch, std::size_t ahead);

  /// Takes what an actor has played. Errors: bad_arguments (no such actor; more than it may be ahead).
  Result<void> take(Trajectories trajectories);

  /// Calls `reply` as soon as an update that is over has learned from `sent` trajectories of an actor, or at the end:
  /// now, or in the `answer` with which that update ends. Errors: bad_arguments (no such actor, or it has not sent so
  /// many); `reply` is not called then.
  Result<void> ask(std::uint64_t actor, std::uint64_t sent, std::function<void()> reply);

  /// Returns whether there is enough for an update.
  bool is_ready() const;
  /// Returns the trajectories of an update, those of the actors in their order with batch = 0, else the oldest; none if
  /// `is_ready` is false. They count as learned from: `answer` comes when they are.
  std::vector<Trajectories> next_batch();
  /// Calls the replies that are due.
  void answer();
  /// Calls all replies, and from then on each one at once.
  void end();

  /// An actor is lost: no update waits for it any more. What it has sent is still learned from.
  void lose(std::size_t actor);

  std::size_t left() const noexcept;
  std::size_t queued() const noexcept { return queue_.size(); }

 private:
  struct Question {
    std::uint64_t sent = 0;
    std::function<void()> reply;
  };
  struct Seat {
    std::uint64_t sent = 0;
    std::uint64_t learned = 0;
    std::uint64_t answered = 0;  // of these, those of updates that are over
    bool is_lost = false;
    std::vector<Question> questions{};
  };
  std::size_t wanted() const noexcept;

  std::vector<Seat> seats_;
  std::size_t batch_;
  std::size_t ahead_;
  std::deque<Trajectories> queue_{};
  bool is_over_ = false;
};

}  // namespace caftan::actor_critic

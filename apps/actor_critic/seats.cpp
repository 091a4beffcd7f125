#include "actor_critic/seats.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace caftan::actor_critic {
namespace {

Error no_actor(std::uint64_t actor, std::size_t actors) {
  return {Errc::bad_arguments,
          "there is no actor " + std::to_string(actor) + ", this learner has " + std::to_string(actors)};
}

}  // namespace

Seats::Seats(std::size_t actors, std::size_t batch, std::size_t ahead) : seats_(actors), batch_(batch), ahead_(ahead) {}

Result<void> Seats::take(Trajectories trajectories) {
  const std::uint64_t actor = trajectories.actor;
  if (actor >= seats_.size()) return no_actor(actor, seats_.size());
  if (is_over_) return {};
  Seat& seat = seats_[actor];
  if (seat.sent - seat.learned > ahead_) {
    return Error(Errc::bad_arguments, "actor " + std::to_string(actor) +
                                          " is more than ahead = " + std::to_string(ahead_) + " trajectories ahead");
  }
  ++seat.sent;
  queue_.push_back(std::move(trajectories));
  return {};
}

Result<void> Seats::ask(std::uint64_t actor, std::uint64_t sent, std::function<void()> reply) {
  if (actor >= seats_.size()) return no_actor(actor, seats_.size());
  Seat& seat = seats_[actor];
  if (is_over_ || seat.answered >= sent) {
    reply();
    return {};
  }
  if (sent > seat.sent) {
    return Error(Errc::bad_arguments, "actor " + std::to_string(actor) + " asks for weights behind trajectory " +
                                          std::to_string(sent) + ", it has sent " + std::to_string(seat.sent));
  }
  seat.questions.push_back({sent, std::move(reply)});
  return {};
}

/// Returns how many trajectories an update has: not more than the actors that are left can send.
std::size_t Seats::wanted() const noexcept { return std::min(batch_, left() * (ahead_ + 1)); }

bool Seats::is_ready() const {
  if (left() == 0) return false;
  if (batch_ > 0) return queue_.size() >= wanted();
  for (std::size_t actor = 0; actor < seats_.size(); ++actor) {
    if (seats_[actor].is_lost) continue;
    const bool is_there = std::ranges::any_of(queue_, [&](const Trajectories& one) { return one.actor == actor; });
    if (!is_there) return false;
  }
  return true;
}

std::vector<Trajectories> Seats::next_batch() {
  std::vector<Trajectories> batch;
  if (!is_ready()) return batch;
  if (batch_ > 0) {
    while (batch.size() < wanted()) {
      batch.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  } else {
    for (std::size_t actor = 0; actor < seats_.size(); ++actor) {
      const auto oldest = std::ranges::find_if(queue_, [&](const Trajectories& one) { return one.actor == actor; });
      if (oldest == queue_.end()) continue;
      batch.push_back(std::move(*oldest));
      queue_.erase(oldest);
    }
  }
  for (const Trajectories& one : batch) ++seats_[one.actor].learned;
  return batch;
}

void Seats::answer() {
  std::vector<std::function<void()>> due;
  for (Seat& seat : seats_) {
    seat.answered = seat.learned;
    std::erase_if(seat.questions, [&](Question& question) {
      if (!is_over_ && seat.answered < question.sent) return false;
      due.push_back(std::move(question.reply));
      return true;
    });
  }
  for (const auto& reply : due) reply();
}

void Seats::end() {
  is_over_ = true;
  queue_.clear();
  answer();
}

void Seats::lose(std::size_t actor) {
  seats_[actor].is_lost = true;
  seats_[actor].questions.clear();
}

std::size_t Seats::left() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(seats_, false, &Seat::is_lost));
}

}  // namespace caftan::actor_critic

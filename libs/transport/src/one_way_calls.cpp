#include "caftan/transport/internal/one_way_calls.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace caftan::transport {

bool OneWayCalls::send(wire::OutFrame& frame, std::uint64_t room, std::shared_ptr<const void> keep) {
  {
    // The lock is held until the frame is in the lane, so that the calls are counted in the order of the lane.
    const base::LockGuard lock(mutex_);
    const bool alone = open_.size() == 0;
    if (!ended_ && writer_.send(frame, alone ? std::nullopt : std::optional(FlushBy::soon))) {
      open_.append({room, std::move(keep)});
      return true;
    }
  }
  requests_.give_back(room);
  return false;
}

Result<void> OneWayCalls::on_ended(std::uint64_t count) {
  std::vector<net::OpenTells::Tell> ended;
  {
    const base::LockGuard lock(mutex_);
    auto taken = open_.on_ended(count);
    if (!taken) return taken.error();
    ended = *std::move(taken);
  }
  for (const net::OpenTells::Tell& one : ended) requests_.give_back(one.room);
  return {};
}

std::size_t OneWayCalls::end() {
  std::vector<net::OpenTells::Tell> lost;
  {
    const base::LockGuard lock(mutex_);
    ended_ = true;
    lost = open_.take_all();
  }
  for (const net::OpenTells::Tell& one : lost) requests_.give_back(one.room);
  return lost.size();
}

}  // namespace caftan::transport

#include "caftan/net/internal/serve_gate.hpp"

#include <utility>

namespace caftan::net {

bool ServeGate::pass(Place& place, const void* order, const std::function<base::Task()>& again, Tasks& ready) {
  const base::LockGuard lock(mutex_);
  const auto before = order ? by_order_.find(order) : by_order_.end();
  const bool is_next = before == by_order_.end() || before->second.front() == place.number;
  if (closed_ || (open_ && is_next)) {
    if (place.number != 0) held_.erase(place.number);
    if (!closed_ && place.number != 0 && before != by_order_.end()) {
      before->second.pop_front();
      if (before->second.empty()) {
        by_order_.erase(before);
      } else if (base::Task& next = held_.at(before->second.front())) {
        ready.push_back(std::exchange(next, base::Task()));
      }
    }
    update_busy();
    return true;
  }
  if (place.number == 0) {
    place.number = ++last_;
    if (order) by_order_[order].push_back(place.number);
  }
  held_[place.number] = again();
  update_busy();
  return false;
}

ServeGate::Tasks ServeGate::on_backlog(std::uint64_t backlog) {
  Tasks ready;
  if (!concerns(backlog)) return ready;
  const base::LockGuard lock(mutex_);
  if (closed_) return ready;
  open_ = !open_;
  for (auto held = held_.begin(); open_ && held != held_.end(); ++held) {
    if (held->second) ready.push_back(std::exchange(held->second, base::Task()));
  }
  update_busy();
  return ready;
}

ServeGate::Tasks ServeGate::close() {
  Tasks dropped;
  const base::LockGuard lock(mutex_);
  closed_ = true;
  for (auto& [place, task] : held_) dropped.push_back(std::move(task));
  held_.clear();
  by_order_.clear();
  busy_.store(false, std::memory_order_release);
  return dropped;
}

}  // namespace caftan::net

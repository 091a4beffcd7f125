/// A process of a model: its runners' tasks run one at a time, in the order that the model draws, and its time moves by
/// hand. No threads, so that a million histories take minutes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/transport/poller.hpp"

namespace caftan::transport {

class ModelProcess final : public PollingExecutor {
 public:
  /// @param clock  of all processes; it must outlive this one
  explicit ModelProcess(const base::Clock& clock) : clock_(clock) {}

  /// Runs one of the tasks that are there, by a drawn number. Returns false if there is none.
  bool run_one(std::uint32_t drawn) {
    take_due();
    if (tasks_.empty()) return false;
    const auto at = tasks_.begin() + static_cast<std::ptrdiff_t>(drawn % tasks_.size());
    base::Task task = std::move(*at);
    tasks_.erase(at);
    task();
    return true;
  }
  /// Writes what is held back.
  bool flush() {
    const auto held = std::exchange(held_, {});
    for (const auto& flushable : held) flushable->flush();
    return !held.empty();
  }
  /// Returns when the next timer is due, kNever if there is none.
  base::TimePoint next_timer() const {
    base::TimePoint next = base::kNever;
    for (const Timer& timer : timers_) next = std::min(next, timer.when);
    return next;
  }
  /// Nothing runs here any more.
  void kill() {
    is_killed_ = true;
    const auto tasks = std::exchange(tasks_, {});
    const auto timers = std::exchange(timers_, {});
    held_.clear();
  }

  void post(base::Task task) override {
    if (!is_killed_) tasks_.push_back(std::move(task));
  }
  void post_at(base::TimePoint when, base::Task task) override {
    if (!is_killed_) timers_.push_back({when, std::move(task)});
  }
  void keep_time(base::TimePoint when, base::Task task) override { post_at(when, std::move(task)); }
  const base::Clock& clock() const noexcept override { return clock_; }
  bool inside_reading_wait() const noexcept override { return false; }
  void watch(const std::shared_ptr<Pollable>&, std::uint32_t) override {}
  void rearm(const Pollable&, std::uint32_t) override {}
  void unwatch(const Pollable&) override {}
  void flush_later(std::shared_ptr<Flushable> flushable, FlushBy) override {
    if (!is_killed_) held_.push_back(std::move(flushable));
  }

 protected:
  /// The model's threads wait in the model.
  Wait* make_wait(std::byte*) override { std::abort(); }

 private:
  struct Timer {
    base::TimePoint when;
    base::Task task;
  };

  void take_due() {
    for (std::size_t i = 0; i < timers_.size();) {
      if (timers_[i].when > clock_.now()) {
        ++i;
        continue;
      }
      tasks_.push_back(std::move(timers_[i].task));
      timers_.erase(timers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const base::Clock& clock_;
  std::vector<base::Task> tasks_;
  std::vector<Timer> timers_;
  std::vector<std::shared_ptr<Flushable>> held_;
  bool is_killed_ = false;
};

}  // namespace caftan::transport

#include "worker/worker_log.hpp"

namespace caftan::actors {

void WorkerLog::write_repeated(const std::string& line, const std::string& more) {
  if (is_closed_.load() || !repeated_.add(more)) return;
  write(line);
  count_later(more);
}

void WorkerLog::flush_repeated() {
  for (const auto& [more, count] : repeated_.end_all()) write(base::RepeatedLines::with_count(more, count));
}

void WorkerLog::write_refusal(const Error& error) {
  using Action = net::RefusalLog::Action;
  const Errc code = error.code();
  Action action{};
  base::TimePoint until{};
  {
    const base::LockGuard lock(refusal_mutex_);
    action = refusals_.on_refused(code, executor_.clock().now());
    until = refusals_.until(code);
  }
  if (action == Action::write) write("a connection was refused: " + error.message());
  if (action != Action::count_first) return;
  executor_.post_at(until, [weak = weak_from_this(), code] {
    const auto self = weak.lock();
    if (!self) return;
    std::size_t counted = 0;
    {
      const base::LockGuard lock(self->refusal_mutex_);
      counted = self->refusals_.end_of_minute(code);
    }
    self->write(std::to_string(counted) +
                " more connections were refused within a minute: " + std::string(to_string(code)));
  });
}

void WorkerLog::count_later(const std::string& more) {
  constexpr base::Duration kPeriod = std::chrono::seconds(1);
  executor_.post_at(executor_.clock().now() + kPeriod, [weak = weak_from_this(), more] {
    const auto self = weak.lock();
    if (!self) return;
    const std::size_t count = self->repeated_.end_period(more);
    if (count == 0) return;
    self->write(base::RepeatedLines::with_count(more, count));
    self->count_later(more);
  });
}

}  // namespace caftan::actors

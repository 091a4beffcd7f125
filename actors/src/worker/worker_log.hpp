/// `WorkerLog`: the log lines of one worker. Of many lines about the same it writes the first ones, and then how many
/// more there were.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "caftan/base/error.hpp"
#include "caftan/base/executor.hpp"
#include "caftan/base/internal/repeated_lines.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/refusal_log.hpp"

namespace caftan::actors {

/// Threads: any, all methods.
class WorkerLog final : public std::enable_shared_from_this<WorkerLog> {
 public:
  /// @param write  may be empty: then nothing is logged  @param executor  outlives `close`
  WorkerLog(std::function<void(std::string_view)> write, base::Executor& executor)
      : write_(std::move(write)), executor_(executor) {}

  void write(const std::string& line) const {
    if (write_) write_(line);
  }
  /// Writes `line`. Of further lines with the same `more`, it writes `more` once a second, with their number for its
  /// '#'.
  void write_repeated(const std::string& line, const std::string& more);
  /// Writes that a connection was refused. Of many with one code it writes the first few of each minute, and then how
  /// many more there were (HS-14).
  void write_refusal(const Error& error);
  /// Writes the numbers that wait for the end of their second.
  void flush_repeated();
  /// From now on `write_repeated` does nothing: the executor may be gone.
  void close() noexcept { is_closed_.store(true); }

 private:
  void count_later(const std::string& more);

  const std::function<void(std::string_view)> write_;
  base::Executor& executor_;
  base::RepeatedLines repeated_;
  base::Mutex refusal_mutex_;
  net::RefusalLog refusals_ CAFTAN_GUARDED_BY(refusal_mutex_);
  std::atomic<bool> is_closed_{false};
};

}  // namespace caftan::actors

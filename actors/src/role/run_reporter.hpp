/// The reports of one role to the run: collects values and progress for a moment, so that a busy role does not wake the
/// launcher for each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/run/internal/run_messages.hpp"

namespace caftan::actors {

/// Takes the events of workers, those of each worker in their order. Threads: any. May block.
using RunSink = std::function<void(run::Event)>;

/// Threads: any, all methods.
class RunReporter : public std::enable_shared_from_this<RunReporter> {
 public:
  RunReporter(RunSink sink, std::uint32_t worker, base::Executor& executor)
      : sink_(std::move(sink)), worker_(worker), executor_(executor) {}

  void metric(std::string_view name, double value, std::optional<std::int64_t> step);
  void progress(std::int64_t done, std::int64_t total, std::string text);
  /// Sends the collected values and progress, then `body`. Long texts and errors are shortened, so that the event fits
  /// into one packet.
  void send(run::EventBody body);
  void flush();

 private:
  void schedule_locked() CAFTAN_REQUIRES(mutex_);
  void flush_locked() CAFTAN_REQUIRES(mutex_);

  const RunSink sink_;
  const std::uint32_t worker_;
  base::Executor& executor_;
  base::Mutex mutex_;  // held while an event is sent, so that the events of a worker stay in order
  bool scheduled_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::vector<run::Metric> values_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<run::Progress> progress_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors

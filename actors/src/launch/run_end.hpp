/// The end of a run, as it is shown to users and written into the run's folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "caftan/run/internal/losses.hpp"
#include "launch/launcher.hpp"
#include "launch/progress_line.hpp"
#include "launch/run_record.hpp"

namespace caftan::actors {

struct EndedRun {
  const LaunchOptions& launch;
  RunRecord& record;
  RunView& view;
  const SignalSource* signals = nullptr;  ///< a signal of this source ends a wait for readers; null = nothing does
  run::Verdict verdict{};
  std::string stragglers{};
  base::Duration elapsed{};
  std::vector<pid_t> pids{};        ///< by worker: the number of its process; 0 = this process, or one of another host
  std::vector<Error> errors{};      ///< by worker: the error that the worker itself has reported; Errc::ok = none
  std::vector<run::Loss> losses{};  ///< the lost workers without which the run went on
};

/// Writes the summary, prints how the run ended, and waits until that is read (RN-7). Returns the exit code.
int report_end(EndedRun run);

}  // namespace caftan::actors

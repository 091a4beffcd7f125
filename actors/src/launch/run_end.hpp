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
  const SignalSource* signals = nullptr;  ///< what ends a wait for readers; null = nothing
  run::Verdict verdict{};
  std::string stragglers{};
  base::Duration elapsed{};
  std::vector<pid_t> pids{};        ///< by worker; 0 = this process, or elsewhere
  std::vector<Error> errors{};      ///< by worker: the error that it reported itself; Errc::ok = none
  std::vector<run::Loss> losses{};  ///< without which the run went on
};

/// Writes the summary, prints how the run ended, and waits until that is read (RN-7). Returns the exit code.
int report_end(EndedRun run);

}  // namespace caftan::actors

/// summary.json: how a run ended, in one small file for scripts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// The content of summary.json: how a run ended, and under what conditions it ran.
struct RunSummary {
  /// One worker of the run.
  struct Worker {
    std::string name{};
    std::string host{};  ///< empty = the machine that wrote this
    std::int64_t pid = 0;
    std::string error{};  ///< why the worker ended early; empty = it did not, or only because another worker did
  };
  /// One worker that was lost and without which the run went on.
  struct Lost {
    std::string name{};
    double after_s = 0;   ///< since the start of the run
    std::string error{};  ///< why it was lost
  };
  /// Frames of one kind, and their bytes.
  struct Sent {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
  };
  std::string name{};
  std::string outcome{};  ///< "success", "failure", "interrupted"
  int exit_code = 0;
  double duration_s = 0;
  std::int64_t seed = 0;
  std::string placement{};
  bool deterministic = false;
  std::optional<std::string> fingerprint{};  ///< "sha256:..."
  std::string error{};                       ///< of a run that failed
  std::string error_code{};                  ///< the enumerator of Errc, "goal_missed"; empty without failure
  std::vector<Lost> lost{};                  ///< in the order in which they were lost
  std::map<std::string, double> metrics{};   ///< last values
  /// By kind of frame: what all workers sent until their roles had returned.
  std::map<std::string, Sent> frames_sent{};
  std::map<std::string, std::string> environment{};  ///< versions and machine: "caftan", "libtorch", "cores", ...
  std::vector<Worker> workers{};
};

/// Returns JSON text with all keys, also empty ones; numbers that are not finite are null, bytes that are no UTF-8
/// are replaced.
std::string summary_text(const RunSummary& summary);

/// Returns the metrics of a summary.json, whose null becomes NaN, its error and error_code; the other members are
/// empty. Errors: malformed_payload.
Result<RunSummary> read_summary(std::string_view text);

}  // namespace caftan::app

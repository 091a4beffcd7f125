/// The command "plot": pictures of runs that have ended, or that go on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::actors {

struct PlotCommand {
  std::vector<std::string> runs{};  ///< folders of runs, of sweeps and of runs of a sweep (`find_runs`)
  std::optional<std::string> metric{};
  std::string out = "plot.svg";
  std::string axis = "step";  ///< or "time"
  double smooth = 0;
  bool is_log = false;
};

/// Draws the runs into the file `out`, which it replaces.
/// Errors: bad_arguments (a word, a metric or a weight that there is not), those of the runs' files, io_error.
Result<void> draw_plot(const PlotCommand& command);

}  // namespace caftan::actors

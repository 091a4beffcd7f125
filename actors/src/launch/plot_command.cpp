#include "launch/plot_command.hpp"

#include <filesystem>
#include <utility>

#include "caftan/app/internal/run_directory.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/results/internal/plot.hpp"

namespace caftan::actors {

Result<void> draw_plot(const PlotCommand& command) {
  const bool is_time = command.axis == "time";
  if (!is_time && command.axis != "step") {
    return Error(Errc::bad_arguments, "--x is step or time, here it is '" + printable(command.axis) + "'");
  }
  const results::Axis axis = is_time ? results::Axis::time : results::Axis::step;
  std::vector<results::RunCurves> runs;
  for (const std::string& given : command.runs) {
    const auto folders = results::find_runs(given, axis);
    if (!folders) return folders.error();
    for (const std::filesystem::path& folder : *folders) {
      auto run = results::read_run(folder, axis, command.metric);
      if (!run) return run.error();
      runs.push_back(*std::move(run));
    }
  }
  const auto picture =
      results::plot(runs, {.axis = axis, .metric = command.metric, .smooth = command.smooth, .log_y = command.is_log});
  if (!picture) return picture.error();
  return app::write_whole_file(command.out, *picture);
}

}  // namespace caftan::actors

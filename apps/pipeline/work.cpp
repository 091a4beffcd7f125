#include "pipeline/work.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "caftan/svg/internal/gantt.hpp"

namespace caftan::pipeline {

double seconds(base::TimePoint time) noexcept { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

double idle_share(const std::vector<Work>& works, double window) noexcept {
  if (!(window > 0)) return 0;
  double busy = 0;
  for (const Work& work : works) busy += work.end - work.begin;
  return std::clamp(1 - busy / window, 0.0, 1.0);
}

Result<std::string> draw_batch(const std::string& title, const std::vector<std::string>& names,
                               const std::vector<std::vector<Work>>& works) {
  constexpr double kMilliseconds = 1e3;
  double start = std::numeric_limits<double>::infinity();
  for (const auto& of_stage : works) {
    for (const Work& work : of_stage) start = std::min(start, work.begin);
  }
  svg::Gantt gantt{.title = title, .x_label = "milliseconds", .kinds = {"forward", "backward"}};
  for (std::size_t stage = 0; stage < works.size(); ++stage) {
    svg::GanttRow row{.label = names[stage]};
    for (const Work& work : works[stage]) {
      row.boxes.push_back({.begin = (work.begin - start) * kMilliseconds,
                           .end = (work.end - start) * kMilliseconds,
                           .kind = work.kind == WorkKind::forward ? std::size_t{0} : std::size_t{1},
                           .label = std::to_string(work.micro_batch)});
    }
    gantt.rows.push_back(std::move(row));
  }
  return svg::render(gantt);
}

}  // namespace caftan::pipeline

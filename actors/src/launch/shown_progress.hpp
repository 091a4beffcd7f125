/// `ShownProgress`: the progress that workers of a run report, and which of it is drawn when.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "caftan/app/internal/plan.hpp"
#include "caftan/base/clock.hpp"
#include "launch/progress_line.hpp"

namespace caftan::actors {

/// Threads: one.
class ShownProgress {
 public:
  /// @param plan, view  outlive this object
  ShownProgress(const app::Plan& plan, RunView& view) : plan_(plan), view_(view), standing_(plan.workers.size()) {}

  /// Takes what a worker reports: from now on that worker's progress is drawn.
  void take(std::size_t worker, ProgressState progress);
  /// Results come: progress from before would be drawn behind them.
  void drop_news() noexcept { is_news_ = false; }
  /// Draws what has not been drawn. @param at_once  where lines are not drawn over: whether one is due
  /// @param elapsed  since the start was over
  void draw(bool at_once, base::TimePoint now, base::Duration elapsed);
  /// Returns where the run stands, as `where_of`; empty before the first report.
  std::string where() const;

 private:
  bool is_named(std::size_t worker) const;

  const app::Plan& plan_;
  RunView& view_;
  std::vector<std::optional<ProgressState>> standing_;  // by worker
  std::optional<std::size_t> shown_;                    // the worker whose progress is shown
  bool is_news_ = false;
  base::TimePoint next_drawing_{};
};

}  // namespace caftan::actors

#include "launch/shown_progress.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace caftan::actors {
namespace {

constexpr base::Duration kDrawEvery = std::chrono::milliseconds(100);

}  // namespace

void ShownProgress::take(std::size_t worker, ProgressState progress) {
  standing_[worker] = std::move(progress);
  shown_ = worker;
  is_news_ = true;
}

void ShownProgress::draw(bool at_once, base::TimePoint now, base::Duration elapsed) {
  if (!shown_ || !is_news_) return;
  const bool due = view_.is_live() ? now >= next_drawing_ : at_once;
  if (!due) return;
  next_drawing_ = now + kDrawEvery;
  view_.progress(plan_.workers[*shown_].name, *standing_[*shown_], elapsed, is_named(*shown_));
}

/// Whether lines of progress name the worker that reports them: not where that worker is the only one that drives.
bool ShownProgress::is_named(std::size_t worker) const {
  return std::ranges::count_if(plan_.workers, &app::PlannedWorker::drives) != 1 || !plan_.workers[worker].drives;
}

std::string ShownProgress::where() const { return shown_ ? where_of(*standing_[*shown_]) : std::string(); }

}  // namespace caftan::actors

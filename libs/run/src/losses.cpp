#include "caftan/run/internal/losses.hpp"

#include <algorithm>
#include <chrono>

#include "caftan/base/settings_io.hpp"

namespace caftan::run {

std::string to_text(const std::string& name, const Loss& loss) {
  return name + " " + loss.why + ", after " + format_fixed(std::chrono::duration<double>(loss.after).count(), 1) + " s";
}

bool Losses::goes_on_without(Loss loss, Reached reached) {
  Worker& lost = workers_[loss.worker];
  if (!lost.may_be_lost || reached == Reached::start) return false;
  const bool cuts_off = lost.drives && reached != Reached::returned;
  const auto is_left = [](const Worker& worker) { return worker.drives && !worker.is_cut_off; };
  // RN-18: this is the last worker that drives.
  if (cuts_off && std::ranges::count_if(workers_, is_left) == 1) return false;
  lost.is_cut_off = cuts_off;
  all_.push_back(std::move(loss));
  return true;
}

std::vector<Loss> Losses::take_new() {
  const auto first = all_.begin() + static_cast<std::ptrdiff_t>(taken_);
  taken_ = all_.size();
  return std::vector<Loss>(first, all_.end());
}

std::vector<BrokenSessions::Report> BrokenSessions::take_due(base::TimePoint now) {
  const auto later = std::stable_partition(reports_.begin(), reports_.end(),
                                           [now](const Report& report) { return report.due <= now; });
  std::vector<Report> due(reports_.begin(), later);
  reports_.erase(reports_.begin(), later);
  return due;
}

base::TimePoint BrokenSessions::first_due() const noexcept {
  const auto first = std::ranges::min_element(reports_, {}, &Report::due);
  return first == reports_.end() ? base::kNever : first->due;
}

}  // namespace caftan::run

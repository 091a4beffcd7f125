/// `Losses`: the workers that a run has lost and goes on without, and whether it can go on without one more. Rules
/// RN-15, RN-17 and RN-18: docs/protocols/run.md. `BrokenSessions`: reports that may become a loss (RN-16).
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/error.hpp"

namespace caftan::run {

/// One worker that is lost. Workers are meant by their number in the plan.
struct Loss {
  std::size_t worker = 0;
  base::Duration after{};  ///< since the start of the run
  std::string why{};       ///< "was killed by signal 9 (SIGKILL) in episode 121"
};

/// Returns "observer-0 was killed by signal 9 (SIGKILL) in episode 121, after 2.1 s".
std::string to_text(const std::string& name, const Loss& loss);

class Losses {
 public:
  /// What counts of a worker here.
  struct Worker {
    bool drives = false;
    bool may_be_lost = false;
    bool is_cut_off = false;  ///< the worker drives, and was lost before it had returned from run()
  };
  /// How far a worker had come.
  enum class Reached { start, constructed, returned };

  explicit Losses(std::vector<Worker> workers) : workers_(std::move(workers)) {}

  /// A worker is lost, for the first time. Returns whether the run goes on without it; if not, nothing is recorded.
  bool goes_on_without(Loss loss, Reached reached);
  /// Returns the lost workers without which the run goes on, in the order in which they were lost.
  const std::vector<Loss>& all() const noexcept { return all_; }
  /// Returns the losses that were added since the last call.
  std::vector<Loss> take_new();

 private:
  std::vector<Worker> workers_;
  std::vector<Loss> all_;
  std::size_t taken_ = 0;
};

/// Reports that two workers have no session any more though both processes live. Each report waits until the death of
/// one of the two processes would have been noticed.
class BrokenSessions {
 public:
  struct Report {
    std::size_t worker = 0;    ///< whom the reporter has lost
    std::size_t reporter = 0;  ///< the other one
    Error reason;
    base::TimePoint due;
  };

  void add(Report report) { reports_.push_back(std::move(report)); }
  /// Returns the reports that are due, in the order in which they came.
  std::vector<Report> take_due(base::TimePoint now);
  void put_off(base::Duration time) {
    for (Report& report : reports_) report.due += time;
  }
  /// Returns when the first report is due; base::kNever if there is none.
  base::TimePoint first_due() const noexcept;

 private:
  std::vector<Report> reports_;
};

}  // namespace caftan::run

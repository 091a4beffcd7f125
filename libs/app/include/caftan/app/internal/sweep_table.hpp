/// The table of a sweep: one row per combination of its keys but `run.seed`, whose values are repetitions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caftan/app/internal/student.hpp"
#include "caftan/app/internal/sweep_plan.hpp"
#include "caftan/base/result.hpp"

namespace caftan::app {

/// What a run that went to its end has left: with success, or with goal_missed.
struct SweepResult {
  std::size_t run = 0;
  std::map<std::string, double> metrics{};  ///< last values, by "worker.metric"
  bool has_missed_goal = false;
};

struct SweepRow {
  std::vector<std::string> values{};  ///< by key
  std::size_t runs = 0;               ///< that have a result
  std::size_t missed = 0;             ///< of these, that have missed their goal
  std::vector<MeanEstimate> means{};  ///< by metric, over the runs that report the metric
};

struct SweepTable {
  std::vector<std::string> keys{};     ///< of the plan, without run.seed
  std::vector<std::string> metrics{};  ///< "worker.metric", by name
  std::vector<SweepRow> rows{};        ///< in the order of the plan, also those without a result
};

/// @param metric  the only metric to show, "worker.metric", or "metric" of all workers; empty = all metrics
/// Errors: invalid_config (results without such a metric; the text lists those that there are). No error if no result
///         has any metric.
Result<SweepTable> make_sweep_table(const SweepPlan& plan, std::span<const SweepResult> results,
                                    const std::optional<std::string>& metric);

/// Returns the lines of the table for people: a heading, then "mean +- half" of each metric with 6 digits; half is
/// missing for a single run. Where fewer runs report a metric than the row has, their number follows in brackets. The
/// column `missed` is there if a run has missed its goal.
std::vector<std::string> sweep_lines(const SweepTable& table);

/// Returns the table as CSV (RFC 4180): the keys, `n`, `missed`, and for each metric M the columns `M.n`, `M.mean` and
/// `M.half`, with numbers that read back bit for bit. A cell without a value is empty.
std::string sweep_csv(const SweepTable& table);

}  // namespace caftan::app

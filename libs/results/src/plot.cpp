#include "caftan/results/internal/plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/svg/internal/chart.hpp"
#include "groups.hpp"

namespace caftan::results {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

/// One curve, whose values are read at ascending x.
class Cursor {
 public:
  explicit Cursor(const Curve& curve) : curve_(&curve) {}
  /// Returns the value at x, NaN outside of the curve and beside its gaps.
  double at(double x) {
    const std::vector<double>& xs = curve_->x;
    const std::vector<double>& ys = curve_->y;
    while (next_ < xs.size() && xs[next_] <= x) ++next_;
    if (next_ == 0) return kGap;
    const std::size_t before = next_ - 1;
    if (xs[before] == x) return ys[before];
    if (next_ == xs.size()) return kGap;
    const double share = (x - xs[before]) / (xs[next_] - xs[before]);
    return ys[before] + share * (ys[next_] - ys[before]);
  }

 private:
  const Curve* curve_;
  std::size_t next_ = 0;  // index of the first point behind the x of the last call
};

/// The values of all curves at one x.
struct Row {
  double x = 0;
  std::vector<double> values{};
  bool is_full = false;  // whether every curve has a finite value at x
};

Row row_at(double x, std::vector<Cursor>& cursors) {
  Row row{.x = x, .is_full = true};
  for (Cursor& cursor : cursors) {
    row.values.push_back(cursor.at(x));
    row.is_full = row.is_full && std::isfinite(row.values.back());
  }
  return row;
}

void append(svg::FaintLine& line, double x, double y) {
  if (!line.x.empty() && line.x.back() == x && std::isfinite(line.y.back())) return;  // where the last piece ends
  line.x.push_back(x);
  line.y.push_back(y);
}

/// Goes on with the faint line of one curve: it is drawn where the mean is not, and reaches to the mean.
void extend(svg::FaintLine& line, const Row& before, const Row& row, std::size_t curve) {
  const double start = before.values[curve];
  const double end = row.values[curve];
  const bool is_joined = std::isfinite(start);
  if (!std::isfinite(end) || (row.is_full && (before.is_full || !is_joined))) return;
  const double from = is_joined ? before.x : row.x;
  if (!line.x.empty() && line.x.back() != from) append(line, std::midpoint(line.x.back(), from), kGap);
  if (is_joined) append(line, before.x, start);
  append(line, row.x, end);
}

/// Returns the mean of the curves and the band around it, where all of them have a value; elsewhere faint lines.
svg::Series mean_of(const std::vector<const Curve*>& curves, std::string label) {
  svg::Series series{.label = std::move(label), .beside = std::vector<svg::FaintLine>(curves.size())};
  std::vector<Cursor> cursors;
  for (const Curve* const curve : curves) {
    series.x.insert(series.x.end(), curve->x.begin(), curve->x.end());
    cursors.emplace_back(*curve);
  }
  std::ranges::sort(series.x);
  series.x.erase(std::unique(series.x.begin(), series.x.end()), series.x.end());
  const auto count = static_cast<double>(curves.size());
  Row before{.values = std::vector<double>(curves.size(), kGap)};
  for (const double x : series.x) {
    Row row = row_at(x, cursors);
    const auto [low, high] = std::ranges::minmax(row.values);
    series.y.push_back(row.is_full ? std::accumulate(row.values.begin(), row.values.end(), 0.0) / count : kGap);
    series.low.push_back(row.is_full ? low : kGap);
    series.high.push_back(row.is_full ? high : kGap);
    for (std::size_t i = 0; i < curves.size(); ++i) extend(series.beside[i], before, row, i);
    before = std::move(row);
  }
  return series;
}

svg::Series series_of(const std::vector<const Curve*>& curves, std::string label) {
  if (curves.size() > 1) return mean_of(curves, std::move(label));
  return {.label = std::move(label), .x = curves.front()->x, .y = curves.front()->y};
}

/// Returns the workers that report each metric, in the order of the metrics, which is that of the charts.
std::map<std::string, std::set<std::string>> workers_by_metric(std::span<const RunCurves> runs) {
  std::map<std::string, std::set<std::string>> workers;
  for (const RunCurves& run : runs) {
    for (const Curve& curve : run.curves) workers[curve.metric].insert(curve.worker);
  }
  return workers;
}

const Curve* find_curve(const RunCurves& run, const std::string& worker, const std::string& metric) {
  const auto found = std::ranges::find_if(
      run.curves, [&](const Curve& curve) { return curve.worker == worker && curve.metric == metric; });
  return found == run.curves.end() ? nullptr : &*found;
}

svg::Chart chart_of(const std::string& metric, const std::set<std::string>& workers, const std::vector<Group>& groups,
                    const PlotOptions& options) {
  svg::Chart chart{.title = metric,
                   .x_label = options.axis == Axis::step ? "step" : "time (s)",
                   .log_y = options.log_y,
                   .smooth = options.smooth};
  for (const Group& group : groups) {
    for (const std::string& worker : workers) {
      std::vector<const Curve*> curves;
      for (const RunCurves* const run : group.runs) {
        if (const Curve* const curve = find_curve(*run, worker, metric)) curves.push_back(curve);
      }
      if (curves.empty()) continue;
      chart.series.push_back(series_of(curves, workers.size() > 1 ? group.label + " " + worker : group.label));
    }
  }
  return chart;
}

Error unknown_metric(std::span<const RunCurves> runs, const std::string& metric) {
  std::set<std::string> all;
  for (const RunCurves& run : runs) all.insert(run.metrics.begin(), run.metrics.end());
  const std::vector<std::string> names(all.begin(), all.end());
  const std::string near = did_you_mean(metric, names);
  return {Errc::bad_arguments,
          "no run has a metric '" + metric + "'" + (near.empty() ? "." : near) + " There are: " + base::joined(names)};
}

}  // namespace

Result<std::string> plot(std::span<const RunCurves> runs, const PlotOptions& options) {
  if (runs.empty()) return Error(Errc::bad_arguments, "there is no run to draw");
  if (!(options.smooth >= 0 && options.smooth < 1)) {
    return Error(Errc::bad_arguments, "the smoothing (--smooth) has to be >=0..<1");
  }
  const auto workers = workers_by_metric(runs);
  if (options.metric && workers.empty()) return unknown_metric(runs, *options.metric);
  if (workers.empty()) return Error(Errc::bad_arguments, "these runs have no point to draw");
  const std::vector<Group> groups = groups_of(runs);
  std::vector<svg::Chart> charts;
  for (const auto& [metric, of] : workers) charts.push_back(chart_of(metric, of, groups, options));
  return svg::render(charts, charts.size() == 1 ? 1 : 2);
}

}  // namespace caftan::results

/// What a run shows: results on standard output; start, progress and errors on standard error, the progress as one line
/// that is drawn over on a terminal, as plain lines elsewhere.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/app/application.hpp"
#include "caftan/base/clock.hpp"
#include "launch/output_stream.hpp"
#include "launch/signal_source.hpp"

namespace caftan::actors {

struct ProgressState {
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0 = unknown
  std::string text{};      ///< parts separated by two spaces
};

/// Returns "1:05": whole minutes and seconds.
std::string minutes_and_seconds(base::Duration elapsed);

/// Returns "0:02  step 120 of 600 [###------------]  loss 0.3". Where the text has " of TOTAL" itself, the count is
/// left out, and the bar stands behind the last part but one: "0:02  episode 190  running reward 300.2 of 475
/// [#########------]  34,120 steps".
/// @param elapsed  since the start was over
/// @param width    columns that the line may take: parts that do not fit are left out whole, the last ones and the bar
///                 first; 0 = any
/// @param named    the worker's name stands before the first part; without any part it does so always
std::string render_progress(const std::string& worker, const ProgressState& progress, base::Duration elapsed,
                            std::size_t width, bool named = false);

/// Returns where a run was when something happened: "step 120 of 600", or the first part of a text that counts itself,
/// "episode 121"; empty if neither is there.
std::string where_of(const ProgressState& progress);

/// Never waits for a reader (RN-7): progress that finds no room is dropped, all else is kept until there is room.
/// Threads: one.
class RunView {
 public:
  /// @param progress  automatic: live if standard error is a terminal
  explicit RunView(app::Progress progress);
  ~RunView();
  RunView(const RunView&) = delete;
  RunView& operator=(const RunView&) = delete;

  /// A line of results.
  void result(std::string_view line);
  /// Returns why a line of results could not be written; empty if all were, or if the reader has closed its end.
  std::string lost_results() const;
  /// Shows a line about the run, such as its start or its curve, unless progress is "none".
  void note(std::string_view line);
  void error(std::string_view line);
  /// @param named  as for `render_progress`
  void progress(const std::string& worker, const ProgressState& state, base::Duration elapsed, bool named);
  /// Whether progress is drawn over, and may be so more often than every `output.every`.
  bool is_live() const noexcept { return mode_ == app::Progress::live; }

  /// Whether so much waits for a reader of the results that no more should be made.
  bool is_full() const noexcept;
  /// Appends what to wait for until more can be written.
  void add_to(std::vector<pollfd>& waited) const;
  /// Writes as much of the waiting output as there is room for now.
  void flush();
  /// Waits until all output is written, `until` has come, or `signals` has a signal. Returns whether all is written;
  /// output that is not is dropped.
  bool wait_for_reader(const SignalSource* signals, base::TimePoint until);

 private:
  void erase();
  void say(std::string_view text);
  app::Progress mode_;
  bool drawn_ = false;
  bool dropped_ = false;  // results that were not read
  OutputStream out_;
  OutputStream err_;
  std::string plain_;  // content of the last plain line: unchanged content is not printed again
};

}  // namespace caftan::actors

/// What the file of a run says of a simulation's clock: [roles.NAME.config] of a role type `NAME.clock`. Each key is
/// declared once, in `settings`. Start with `ClockConfig`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/settings.hpp"

namespace caftan::sim {

/// How partitions wait for each other, as files say it. The results are the same.
enum class SyncChoice : std::uint8_t { window, null_message };
constexpr bool is_valid(SyncChoice sync) noexcept { return sync <= SyncChoice::null_message; }

/// What a run does when it falls behind real time.
enum class Late : std::uint8_t { report, fail };

/// Which borders of a run are saved.
struct CheckpointSettings {
  double every = 0;
  std::int64_t keep = 2;

  static void settings(auto& s, CheckpointSettings& c) {
    s("every", c.every, "time between borders that are saved; 0 = none").at_least(0).unit("units");
    s("keep", c.keep, "newest ones that are kept").range(1, 1'000'000);
  }
};

/// Which values of `LpContext::record` are kept.
struct RecordSettings {
  std::vector<std::string> series{};
  double every = 0;

  static void settings(auto& s, RecordSettings& c) {
    s("series", c.series, "names of the series that series.csv has; [\"*\"] = all").default_text("none");
    s("every", c.every, "least time between two values of one process and name; 0 = all").at_least(0).unit("units");
  }
};

/// What a run writes so that `caftan sim diff` finds where two runs part.
struct LogSettings {
  double hashes = 0;
  bool events = false;
  double from = 0;
  std::optional<double> until{};

  static void settings(auto& s, LogSettings& c) {
    s("hashes", c.hashes, "time between borders whose hash borders.csv has; 0 = none").at_least(0).unit("units");
    s("events", c.events, "each partition writes the events that it handles to events-INDEX.jsonl");
    s("from", c.from, "events before it are not written").at_least(0).unit("units");
    s("until", c.until, "events from it on are not written").at_least(0).unit("units").default_text("none");
  }
};

/// Where a debugger stops a partition.
struct BreakSettings {
  std::optional<double> time{};
  std::int64_t lp = -1;

  static void settings(auto& s, BreakSettings& c) {
    s("time", c.time,
      "stops the partition's process (SIGTRAP) before the first event from this time on, if a debugger is there")
        .at_least(0)
        .unit("units")
        .default_text("none");
    s("lp", c.lp, "only before events of this process; -1 = of any").at_least(-1);
  }
};

/// What a role type `NAME.clock` reads.
struct ClockConfig {
  SyncChoice sync = SyncChoice::window;
  double end_time = 0;
  double warmup = 0;
  CheckpointSettings checkpoint{};
  RecordSettings record{};
  double real_time = 0;
  Late late = Late::report;
  base::Duration tolerance = std::chrono::milliseconds(100);
  std::vector<std::string> pause_at{};
  std::optional<std::filesystem::path> resume{};
  std::vector<std::string> changed{};
  std::int64_t events = 100'000'000;
  LogSettings log{};
  BreakSettings break_at{};

  static void settings(auto& s, ClockConfig& c) {
    using namespace std::chrono_literals;
    s("sync", c.sync, "how partitions wait for each other; the results are the same")
        .one_of({{"window", "each sends every other one a frame per window"},
                 {"null_message", "each promises the others how far they may go"}});
    s("end_time", c.end_time, "events at or after it stay pending").greater_than(0).unit("units").required();
    s("warmup", c.warmup, "statistics before it are forgotten; 0 = none").at_least(0).unit("units");
    s("checkpoint", c.checkpoint, "what a later run can go on from, in the run's folder");
    s("record", c.record, "the series of series.csv");
    s("real_time", c.real_time, "units a second; 0 = as fast as possible").at_least(0).unit("units a second");
    s("late", c.late, "in real time, when a border comes late by more than the tolerance")
        .one_of({{"report", "lateness.csv has it"}, {"fail", "the run fails"}});
    s("tolerance", c.tolerance, "in real time, how late a border may come").at_least(0s);
    s("pause_at", c.pause_at, "times at which the run waits for `caftan sim go RUN`, as texts: [\"10\", \"12.5\"]")
        .default_text("none");
    s("resume", c.resume, "goes on from a checkpoint: its folder, or that of a run that has some").default_text("none");
    s("changed", c.changed, "keys of the partition's config that may differ from those of the checkpoint")
        .default_text("none");
    s("events", c.events, "most pending events of a partition").range(1, 4'000'000'000);
    s("log", c.log, "what `caftan sim diff RUN RUN` compares");
    s("break_at", c.break_at, "where a debugger stops");
  }
};

}  // namespace caftan::sim

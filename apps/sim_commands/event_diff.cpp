#include "sim_commands/event_diff.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <tuple>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "caftan/sim/time.hpp"

namespace caftan::sim_commands {
namespace {

namespace fs = std::filesystem;

/// An event of a log.
struct Logged {
  std::int64_t time = 0;
  std::int64_t priority = 0;
  std::int64_t source = 0;
  std::int64_t sequence = 0;
  std::int64_t lp = 0;
  std::string rest{};  // its type and the hash of its payload, as they stand in the file

  auto operator<=>(const Logged&) const = default;
  std::string text() const {
    return "LP " + std::to_string(lp) + " handles " + rest + " of LP " + std::to_string(source) +
           ", its event number " + std::to_string(sequence) + ", priority " + std::to_string(priority);
  }
};

/// Reads the number behind `key` and a colon.
std::optional<std::int64_t> number_of(const std::string& line, const std::string& key) {
  const std::string name = "\"" + key + "\":";
  const std::size_t at = line.find(name);
  if (at == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  const char* const begin = line.data() + at + name.size();
  if (std::from_chars(begin, line.data() + line.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

/// The log of one partition, read one event ahead.
class Log {
 public:
  explicit Log(fs::path file) : file_(std::move(file)), stream_(file_) {}

  Result<void> read() {
    next_.reset();
    std::string line;
    if (!std::getline(stream_, line)) return {};
    ++line_;
    const auto time = number_of(line, "time");
    const auto priority = number_of(line, "priority");
    const auto source = number_of(line, "source");
    const auto sequence = number_of(line, "sequence");
    const auto lp = number_of(line, "lp");
    const std::size_t rest = line.find("\"event\":");
    // The last line of a run that was killed may be cut off.
    if (!time || !priority || !source || !sequence || !lp || rest == std::string::npos || !line.ends_with("}")) {
      if (stream_.eof()) return {};
      return Error(Errc::malformed_payload, file_.string() + ":" + std::to_string(line_) + ": no event of a log");
    }
    next_ = Logged{*time, *priority, *source, *sequence, *lp, line.substr(rest + 8, line.size() - rest - 9)};
    return {};
  }
  const std::optional<Logged>& next() const { return next_; }

 private:
  fs::path file_;
  std::ifstream stream_;
  std::size_t line_ = 0;
  std::optional<Logged> next_;
};

/// The logs of all partitions of a run, which together have the same events whatever their number.
class RunLog {
 public:
  explicit RunLog(const fs::path& run) {
    for (std::size_t i = 0; fs::exists(run / ("events-" + std::to_string(i) + ".jsonl")); ++i)
      logs_.emplace_back(run / ("events-" + std::to_string(i) + ".jsonl"));
  }
  bool is_there() const { return !logs_.empty(); }
  Result<void> begin() {
    for (Log& log : logs_) {
      if (auto read = log.read(); !read) return read;
    }
    return {};
  }
  /// Returns the events of the next moment, sorted; none at the end.
  Result<std::vector<Logged>> take() {
    std::optional<std::int64_t> time;
    for (const Log& log : logs_) {
      if (log.next() && (!time || log.next()->time < *time)) time = log.next()->time;
    }
    std::vector<Logged> events;
    for (Log& log : logs_) {
      while (log.next() && log.next()->time == *time) {
        events.push_back(*log.next());
        if (auto read = log.read(); !read) return read.error();
      }
    }
    std::ranges::sort(events);
    return events;
  }

 private:
  std::vector<Log> logs_;
};

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void compare_borders(const fs::path& one, const fs::path& other, Difference& found) {
  const auto a = lines_of(one / "borders.csv");
  const auto b = lines_of(other / "borders.csv");
  if (a.empty() || b.empty()) return;
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 1; i < common; ++i) {
    if (a[i] == b[i]) continue;
    found.is_equal = false;
    const std::string before = i > 1 ? a[i - 1].substr(0, a[i - 1].find(',')) : "0";
    found.lines.push_back(
        "borders: equal up to virtual time " + before + ", different at " + a[i].substr(0, a[i].find(',')) +
        (a[i].substr(0, a[i].find(',')) == b[i].substr(0, b[i].find(',')) ? std::string()
                                                                          : " and " + b[i].substr(0, b[i].find(','))));
    return;
  }
  found.lines.push_back("borders: " + std::to_string(common - 1) + " are equal" +
                        (a.size() == b.size() ? std::string() : "; one run has more"));
}

Result<void> compare_events(RunLog& one, RunLog& other, Difference& found) {
  if (auto begun = one.begin(); !begun) return begun;
  if (auto begun = other.begin(); !begun) return begun;
  std::uint64_t equal = 0;
  while (true) {
    const auto a = one.take();
    if (!a) return a.error();
    const auto b = other.take();
    if (!b) return b.error();
    if (a->empty() && b->empty()) break;
    const auto [here, there] = std::ranges::mismatch(*a, *b);
    equal += static_cast<std::uint64_t>(here - a->begin());
    if (here == a->end() && there == b->end()) continue;
    found.is_equal = false;
    const auto shown = [](const std::vector<Logged>& all, auto at) {
      return at == all.end() ? std::string("nothing at that time")
                             : "at " + to_string(sim::Time{at->time}) + ": " + printable(at->text());
    };
    found.lines.push_back("events: " + std::to_string(equal) + " are equal, then they differ");
    found.lines.push_back("  first run:  " + shown(*a, here));
    found.lines.push_back("  second run: " + shown(*b, there));
    return {};
  }
  found.lines.push_back("events: " + std::to_string(equal) + " are equal");
  return {};
}

}  // namespace

Result<Difference> compare_runs(const fs::path& one, const fs::path& other) {
  Difference found;
  for (const fs::path& run : {one, other}) {
    if (fs::exists(run / "borders.csv") || RunLog(run).is_there()) continue;
    return Error(Errc::io_error, run.string() +
                                     ": it has no borders.csv and no events-0.jsonl; run the simulation with "
                                     "roles.clock.config.log.hashes=TIME or roles.clock.config.log.events=true");
  }
  compare_borders(one, other, found);
  RunLog a(one);
  RunLog b(other);
  if (a.is_there() && b.is_there()) {
    if (auto done = compare_events(a, b, found); !done) return done.error();
  }
  if (found.lines.empty())
    return Error(Errc::io_error, "one run has only borders.csv, the other one only logs of events");
  return found;
}

}  // namespace caftan::sim_commands

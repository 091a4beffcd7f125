/// The sequential kernel of simulations against a loop that a user would write over std::priority_queue: PHOLD with one
/// event for each process. Both sides draw the same numbers and take turns; a line has the medians of CPU time per
/// event, and their ratio. Then what records of one event in a hundred cost, and what the hash of an event costs.
/// Usage: sim_bench [processes ...]
///
/// sim_bench scale PROCESSES EVENTS runs the kernel alone: CPU time, memory of a process and of an event, the most
/// memory of the run, and the time and size of a checkpoint.
///
/// A line `name: value unit (target <= limit)` is a measure that the design has a target for.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "caftan/sim/internal/kernel.hpp"
#include "rolling_hash.hpp"

namespace {

using namespace caftan;

constexpr double kRemote = 0.25;
constexpr double kMean = 1;
constexpr double kLookahead = 1;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Ball {
  void serialize(auto&, unsigned) {}
};

struct Process {
  using Events = sim::Events<Ball>;
  std::uint32_t processes = 0;
  std::uint64_t seen = 0;
  void start(sim::LpContext& lp) { send(lp, lp.id()); }
  void on(const Ball&, sim::LpContext& lp) {
    if (++seen % 100 == 0) lp.record("seen", static_cast<double>(seen));
    send(lp, lp.random().uniform() < kRemote ? sim::LpId(lp.random().below(processes)) : lp.id());
  }
  void send(sim::LpContext& lp, sim::LpId to) { lp.schedule(kLookahead + lp.random().exponential(kMean), Ball{}, to); }
  void serialize(auto& archive, unsigned) { archive& seen; }
};

/// A side of the benchmark: goes on by some units of time, and returns how many events it has handled.
using Side = std::function<std::uint64_t(double units)>;

std::unique_ptr<sim::Kernel> make_phold(std::uint32_t processes, const sim::RecordPlan& records = {}) {
  auto made = sim::make_kernel(
      [=](sim::Builder& builder) {
        builder.lookahead(kLookahead);
        builder.add<Process>(processes, [=](sim::LpId) { return Process{processes}; });
      },
      {.seed = 1, .records = records});
  return std::move(made).value();
}

Side make_kernel_side(std::uint32_t processes, const sim::RecordPlan& records = {}) {
  const std::shared_ptr<sim::Kernel> kernel = make_phold(processes, records);
  kernel->start().value();
  return [kernel](double units) {
    const std::uint64_t before = kernel->counters().handled;
    kernel->run_until(sim::later(kernel->bound(), sim::time_of(units).value())).value();
    (void)kernel->recorder().take();
    return kernel->counters().handled - before;
  };
}

/// What a user would write: events in a std::priority_queue, state in a vector.
class Loop {
 public:
  explicit Loop(std::uint32_t processes)
      : processes_(processes), seen_(processes), draws_(processes), sequences_(processes) {
    for (std::uint32_t id = 0; id < processes; ++id) {
      sim::Random random(1, id, 0, draws_[id]);
      send(0, id, id, random);
    }
  }
  std::uint64_t run(double units) {
    end_ += sim::time_of(units).value().ticks;
    std::uint64_t handled = 0;
    while (queue_.top().time < end_) {
      const Event event = queue_.top();
      queue_.pop();
      sim::Random random(1, event.to, 0, draws_[event.to]);
      ++seen_[event.to];
      const bool is_remote = random.uniform() < kRemote;
      send(event.time, event.to, is_remote ? static_cast<std::uint32_t>(random.below(processes_)) : event.to, random);
      ++handled;
    }
    return handled;
  }

 private:
  struct Event {
    std::int64_t time;
    std::uint32_t source;
    std::uint32_t to;
    std::uint64_t sequence;
    bool operator<(const Event& other) const {
      if (time != other.time) return time > other.time;
      if (source != other.source) return source > other.source;
      return sequence > other.sequence;
    }
  };
  void send(std::int64_t now, std::uint32_t from, std::uint32_t to, sim::Random& random) {
    const sim::Time delay = sim::time_of(kLookahead + random.exponential(kMean)).value();
    queue_.push({now + delay.ticks, from, to, sequences_[from]++});
  }

  std::uint32_t processes_;
  std::priority_queue<Event> queue_;
  std::vector<std::uint64_t> seen_;
  std::vector<std::uint64_t> draws_;
  std::vector<std::uint64_t> sequences_;
  std::int64_t end_ = 0;
};

Side make_loop_side(std::uint32_t processes) {
  return [loop = std::make_shared<Loop>(processes)](double units) { return loop->run(units); };
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Lets two sides take turns and returns the medians of their nanoseconds an event.
std::array<double, 2> in_turns(const std::array<Side, 2>& sides, std::uint32_t processes) {
  constexpr int kTurns = 7;
  constexpr double kEvents = 1'000'000;  // of a turn
  const double units = std::max(1.0, kEvents * (kLookahead + kMean) / processes);
  std::array<std::vector<double>, 2> nanoseconds;
  std::array<std::uint64_t, 2> events{};
  for (int turn = 0; turn <= kTurns; ++turn) {
    for (std::size_t side = 0; side < 2; ++side) {
      const double begin = cpu_seconds();
      const std::uint64_t handled = sides[side](units);
      events[side] += handled;
      if (turn > 0)
        nanoseconds[side].push_back((cpu_seconds() - begin) * 1e9 /
                                    static_cast<double>(handled));  // the first one warms up
    }
  }
  if (events[0] != events[1]) {
    std::fprintf(stderr, "sim_bench: the sides have handled %llu and %llu events\n",
                 static_cast<unsigned long long>(events[0]), static_cast<unsigned long long>(events[1]));
    std::exit(1);
  }
  return {median(nanoseconds[0]), median(nanoseconds[1])};
}

/// Returns the limit of the kernel's time over the loop's, for the sizes that have one.
double limit_of(std::uint32_t processes) {
  if (processes == 256) return 1.6;
  if (processes == 65'536) return 0.8;
  return processes == 1'048'576 ? 0.4 : 0;
}

void compare(std::uint32_t processes) {
  const auto [kernel, loop] = in_turns({make_kernel_side(processes), make_loop_side(processes)}, processes);
  std::printf("kernel / loop, %u processes (%.0f and %.0f ns an event): %.2f", processes, kernel, loop, kernel / loop);
  if (const double limit = limit_of(processes); limit > 0) std::printf(" (target <= %.1f)", limit);
  std::printf("\n");
  std::fflush(stdout);
}

void compare_records() {
  constexpr std::uint32_t kProcesses = 4096;
  const auto [with, without] =
      in_turns({make_kernel_side(kProcesses, {.series = {"seen"}}), make_kernel_side(kProcesses)}, kProcesses);
  std::printf("kernel with records of 1 in 100 events / without, %u processes: %.2f (target <= 1.05)\n", kProcesses,
              with / without);
  // The hash cannot be switched off: its three words for each of as many events, next to the time of an event.
  constexpr int kEvents = 10'000'000;
  std::vector<std::uint64_t> hashes(kProcesses);
  const double begin = cpu_seconds();
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    std::uint64_t& hash = hashes[i * 2654435761U % kProcesses];
    hash = sim::mixed_in(sim::mixed_in(sim::mixed_in(hash, i), i << 8), i + 1);
  }
  const double each = (cpu_seconds() - begin) * 1e9 / kEvents;
  std::printf("kernel with hash / without (%.1f of %.0f ns), %u processes: %.2f (target <= 1.1)\n", each, without,
              kProcesses, without / (without - each));
  std::fflush(stdout);
  if (sim::mixed_in(hashes[0], hashes[1]) == 0) std::printf("a hash of 0\n");  // the loop must not be left out
}

/// Returns the memory that the process has now.
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Returns the most memory that the process has had.
double most_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// @param limit  its target, 0 = none
void print_measure(const char* name, double value, const char* unit, double limit) {
  std::printf("%s: %.2f %s", name, value, unit);
  if (limit > 0) std::printf(" (target <= %g)", limit);
  std::printf("\n");
  std::fflush(stdout);
}

void measure_scale(std::uint32_t processes, double events) {
  const double empty = resident_bytes();
  std::unique_ptr<sim::Kernel> kernel = make_phold(processes);
  const double with_processes = resident_bytes();
  kernel->start().value();
  const double with_events = resident_bytes();
  const double begin = cpu_seconds();
  // Each process handles an event in kLookahead + kMean units.
  kernel->run_until(sim::time_of(events / processes * (kLookahead + kMean)).value()).value();
  const double run = cpu_seconds() - begin;
  const auto handled = static_cast<double>(kernel->counters().handled);
  const double most = most_bytes();
  const double n = processes;
  const bool is_largest = processes == 1'000'000 && handled > 0.95e8;  // what the targets are for
  std::printf("phold %u processes: %.0f events, %.0f ns each\n", processes, handled, run / handled * 1e9);
  print_measure("their CPU time", run, "s", is_largest ? 40 : 0);
  print_measure("the most memory", most * 1e-6, "MB", is_largest ? 400 : 0);
  print_measure("a process beside its object", (with_processes - empty) / n - sizeof(Process), "B",
                is_largest ? 48 : 0);
  print_measure("a pending event", (with_events - with_processes) / n, "B", is_largest ? 64 : 0);
  const std::string file =
      (std::filesystem::temp_directory_path() / ("sim-bench-" + std::to_string(::getpid()))).string();
  const double before_save = cpu_seconds();
  wire::write_checkpoint_file(file, kernel->save().value()).value();
  const double save = cpu_seconds() - before_save;
  const auto size = static_cast<double>(std::filesystem::file_size(file));
  const auto hashes = kernel->hashes().value();
  kernel.reset();
  const double before_load = cpu_seconds();
  kernel = make_phold(processes);
  kernel->load(wire::read_checkpoint_file(file, "caftan.sim.partition").value()).value();
  const double load = cpu_seconds() - before_load;
  std::filesystem::remove(file);
  if (kernel->hashes().value() != hashes) {
    std::fprintf(stderr, "sim_bench: the checkpoint has another state\n");
    std::exit(1);
  }
  std::printf("a checkpoint of %.0f MB, with it at most %.0f MB\n", size * 1e-6, most_bytes() * 1e-6);
  print_measure("the checkpoint saved", save, "s", is_largest ? 2 : 0);
  print_measure("the checkpoint resumed", load, "s", is_largest ? 2 : 0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4 && std::string(arguments[1]) == "scale") {
    measure_scale(static_cast<std::uint32_t>(std::strtoul(arguments[2], nullptr, 10)), std::atof(arguments[3]));
    return 0;
  }
  std::vector<std::uint32_t> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(static_cast<std::uint32_t>(std::strtoul(arguments[i], nullptr, 10)));
  if (std::count(sizes.begin(), sizes.end(), 0U) > 0) {
    std::fprintf(stderr, "usage: sim_bench [processes ...], each at least 1; or sim_bench scale PROCESSES EVENTS\n");
    return 2;
  }
  if (sizes.empty()) sizes = {256, 4096, 65'536, 1'048'576};
  for (const std::uint32_t processes : sizes) compare(processes);
  compare_records();
}

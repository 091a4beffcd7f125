// Simulations over workers: what a window costs that has next to no events, what a run of one partition costs beside
// the bare kernel, how much quicker two partitions are than one, and how many null messages only promise. Each side is
// a run of its own, in turns; the fingerprints of the sides must be equal.
//
// A line `name: value unit (target <= limit)` is a measure that the design has a target for.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/sim/sequential.hpp"
#include "cqn/register.hpp"
#include "phold/phold.hpp"
#include "phold/register.hpp"

namespace {

/// What a run says of itself.
struct Said {
  double seconds = 0;
  double windows = 0;
  double frames = 0;
  double empty_frames = 0;  // without events
  double lambda = 0;
  std::string fingerprint{};
};

/// Returns the number behind `start` in the line that has it.
double number_behind(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? 0 : std::atof(text.c_str() + at + start.size());
}

Said run(const std::string& program, const std::string& file, const std::string& overrides) {
  const std::string command =
      "'" + program + "' run '" + file + "' output.progress=none run.wall=5min " + overrides + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  char block[4096];
  while (const std::size_t size = pipe ? std::fread(block, 1, sizeof block, pipe) : 0) text.append(block, size);
  if (!pipe || ::pclose(pipe) != 0) {
    std::fprintf(stderr, "simulation_bench: %s\n%s", command.c_str(), text.c_str());
    std::exit(1);
  }
  const std::size_t print = text.find("fingerprint ");
  return {number_behind(text, " events in "),
          number_behind(text, "partitions, "),
          number_behind(text, " %, "),
          number_behind(text, " frames ("),
          number_behind(text, "lambda "),
          print == std::string::npos ? "" : text.substr(print, text.find('\n', print) - print)};
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// A model with its overrides, and the speed-up that design and literature lead to expect.
struct Model {
  const char* name;
  const char* file;
  const char* overrides;
  double target;
};

void compare(const std::string& program, const Model& model) {
  constexpr int kTurns = 5;
  std::vector<double> seconds[2];
  std::string fingerprint;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int side = 0; side < 2; ++side) {
      const Said said = run(program, model.file,
                            std::string(model.overrides) + " roles.partition.replicas=" + std::to_string(side + 1));
      seconds[side].push_back(said.seconds);
      if (fingerprint.empty()) fingerprint = said.fingerprint;
      if (fingerprint == said.fingerprint && !fingerprint.empty()) continue;
      std::fprintf(stderr, "simulation_bench: the sides of %s have the fingerprints %s and %s\n", model.name,
                   fingerprint.c_str(), said.fingerprint.c_str());
      std::exit(1);
    }
  }
  const double one = median(seconds[0]);
  const double two = median(seconds[1]);
  std::printf("speed-up of 2 partitions, %s (%.2f and %.2f s): %.2f (target >= %.1f)\n", model.name, one, two,
              one / two, model.target);
  std::fflush(stdout);
}

/// One partition, and the same model in a loop around the kernel.
void compare_with_kernel(const std::string& program, const std::string& file) {
  constexpr int kTurns = 7;
  std::vector<double> ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    const Said said = run(program, file,
                          "roles.clock.config.end_time=500.0 roles.partition.replicas=1 "
                          "roles.partition.config.processes=16384");
    const auto begin = std::chrono::steady_clock::now();
    auto bare = caftan::sim::run_sequential<caftan::phold::Phold>({.processes = 16'384}, {.end_time = 500, .seed = 1});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!bare || said.fingerprint.find(bare.value().fingerprint) == std::string::npos) {
      std::fprintf(stderr, "simulation_bench: the run has %s, the kernel another fingerprint\n",
                   said.fingerprint.c_str());
      std::exit(1);
    }
    ratios.push_back(said.seconds / seconds);
  }
  std::printf("a run of one partition / the bare kernel: %.2f (target <= 1.05)\n", median(ratios));
  std::fflush(stdout);
}

void measure_promises(const std::string& program, const std::string& file) {
  const Said said = run(program, file,
                        "roles.clock.config.end_time=1000.0 roles.clock.config.sync=null_message "
                        "roles.partition.replicas=2");
  std::printf("null messages that only promise, lambda %.2g: %.3f (target <= 0.2)\n", said.lambda,
              said.empty_frames / std::max(said.frames, 1.0));
  std::fflush(stdout);
}

/// One event in about two windows of two processes: next to all of the time is the exchange.
void measure_window(const std::string& program, const std::string& file, const std::string& placement) {
  const Said said =
      run(program, file,
          "roles.clock.config.end_time=20000.0 roles.partition.config.processes=2 roles.partition.config.mean=1e-3 "
          "roles.partition.replicas=2 run.placement=" +
              placement);
  std::printf("a window without events, %s: %.1f us\n", placement.c_str(),
              said.seconds / std::max(said.windows, 1.0) * 1e6);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    caftan::Program program("simulation_bench");
    caftan::phold::register_phold(program);
    caftan::cqn::register_cqn(program);
    return program.main(argc, argv);
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string folder = (std::filesystem::temp_directory_path() / "caftan-bench-XXXXXX").string();
  if (!::mkdtemp(folder.data()) || ::chdir(folder.c_str()) != 0) return 1;
  const std::string phold = std::string(CAFTAN_CONFIGS) + "/phold.toml";
  const std::string cqn = std::string(CAFTAN_CONFIGS) + "/cqn.toml";
  for (const char* const placement : {"one_process", "processes"}) measure_window(self, phold, placement);
  for (const Model& model : {Model{"phold", phold.c_str(), "roles.clock.config.end_time=1000.0", 1.4},
                             Model{"phold, work = 10us", phold.c_str(),
                                   "roles.clock.config.end_time=100.0 roles.partition.config.work=10us", 1.7},
                             Model{"cqn", cqn.c_str(), "roles.clock.config.end_time=50000.0", 1.5}}) {
    compare(self, model);
  }
  compare_with_kernel(self, phold);
  measure_promises(self, phold);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return 0;
}

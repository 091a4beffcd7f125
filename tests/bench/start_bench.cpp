// How long an application of five processes takes from its command to its end when its role's run() returns at once,
// beside what six processes (the command and the five) take to load libtorch and leave.
//
//   start_bench            answers requests, as every side of the benchmark
//   start_bench load       loads libtorch and leaves
//   start_bench run FILE   the application
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/actors/program.hpp"
#include "folder.hpp"
#include "measure.hpp"

extern char** environ;

namespace caftan::bench {
namespace {

constexpr int kWorkers = 5;

class Idle {
 public:
  explicit Idle(RoleContext&) {}
};

class Driver {
 public:
  explicit Driver(RoleContext&) {}
  Result<void> run(std::stop_token) { return {}; }
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "start_bench: %s\n", what.c_str());
  std::exit(1);
}

class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "start_bench");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid_, "/proc/self/exe", &files, nullptr, argv.data(), environ) != 0)
      fail("cannot start a process");
    posix_spawn_file_actions_destroy(&files);
  }
  void finish(const char* what) const {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_ || status != 0) fail(std::string(what) + " did not end well");
  }

 private:
  pid_t pid_ = 0;
};

double run_ms(const std::string& file) {
  const auto start = std::chrono::steady_clock::now();
  Child({"run", file}).finish("the application");
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the time in which the processes of a run load the program: first the command, then all workers at once.
double load_ms() {
  const auto start = std::chrono::steady_clock::now();
  Child({"load"}).finish("loading");
  std::vector<Child> workers;
  for (int i = 0; i < kWorkers; ++i) workers.emplace_back(std::vector<std::string>{"load"});
  for (const Child& worker : workers) worker.finish("loading");
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int serve() {
  const test::Folder folder;
  const std::string file = folder / "start.toml";
  std::ofstream(file) << "caftan = 1\n[run]\nname = \"start\"\nplacement = \"processes\"\n"
                      << "[roles.driver]\ntype = \"driver\"\n[roles.driver.uses]\nothers = \"idle\"\n"
                      << "[roles.idle]\ntype = \"idle\"\nreplicas = " << kWorkers - 1 << "\n"
                      << "[output]\ndir = \"" << folder / "runs"
                      << "\"\nprogress = \"none\"\n";
  const Rig rig("caftan start", {});
  return rig.serve({{"start", [&](const Request& request) {
                       std::vector<double> runs;
                       std::vector<double> loads;
                       std::vector<double> beyond;
                       const auto start = std::chrono::steady_clock::now();
                       do {
                         loads.push_back(load_ms());
                         runs.push_back(run_ms(file));
                         beyond.push_back(runs.back() - loads.back());
                       } while (runs.size() < request.calls && std::chrono::steady_clock::now() - start < request.time);
                       Line line;
                       line.add("side", std::string("caftan start")).add("measure", request.measure);
                       line.add("starts", std::uint64_t{runs.size()}).add("run_ms", median(runs));
                       return line.add("load_ms", median(loads)).add("beyond_load_ms", median(beyond));
                     }}});
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  if (argc == 1) return caftan::bench::serve();
  if (argc == 2 && std::string(argv[1]) == "load") return 0;
  caftan::Program program("start_bench");
  program.role<caftan::bench::Idle>("idle");
  program.role<caftan::bench::Driver>("driver").uses<caftan::bench::Idle>("others", caftan::at_least(1));
  return program.main(argc, argv);
}

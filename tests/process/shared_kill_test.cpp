// The parameter server when one of its processes is killed in a forward pass, in a step, in a checkpoint or while it
// loads one: the others end with a typed error or go on, as the file says, and what they made is the replay of their
// log. A resumed run continues from the last checkpoint bit for bit: with one trainer and in mode sync it ends with the
// bits of a run that nothing disturbed, in every mode with those of the replay of its log.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

#include "command.hpp"
#include "file_watch.hpp"
#include "lines.hpp"
#include "parameter_server_runs.hpp"
#include "soak_size.hpp"

namespace caftan::test::shared_kill_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int kSteps = 20;  // of each trainer
constexpr int kEvery = 5;   // between two checkpoints
const optim::SGD kAlgorithm{.lr = 0.2, .momentum = 0.5};

enum class Point { forward, step, checkpoint, load };

/// Who is killed, in which mode, and when.
struct Moment {
  Point point{};
  std::string mode{};
  int trainers = 1;
  bool goes_on = false;  // without a trainer
  std::string victim{};  // empty: a trainer that did not make the last step of the log
  int step = 0;          // the line of the log that is waited for
  int further = 0;       // events of files, or turns of the server's threads, from there on
};

std::vector<std::string> names(int trainers) {
  if (trainers == 1) return {"trainer-0"};
  return {"trainer-0", "trainer-1"};
}

Moment moment_of(Point point, std::uint64_t seed) {
  std::mt19937_64 random(1000 * static_cast<std::uint64_t>(point) + seed);
  Moment moment{.point = point};
  moment.mode = std::vector<std::string>{"sync", "locked", "versioned"}[random() % 3];
  moment.trainers = random() % 4 == 0 ? 1 : 2;
  moment.goes_on = random() % 2 == 0 && moment.trainers > 1;
  const bool is_server = random() % 2 == 0;
  moment.victim = is_server ? "server" : names(moment.trainers)[random() % static_cast<unsigned>(moment.trainers)];
  const int lines = moment.mode == "sync" ? 1 : moment.trainers;  // for one step of each trainer
  moment.step = kEvery * lines + 1 + static_cast<int>(random() % static_cast<unsigned>(kEvery * lines));
  moment.further = static_cast<int>(random() % (point == Point::checkpoint ? 5 : 24));
  if (point == Point::step) moment.further = 0;
  if (point == Point::forward && moment.mode == "locked" && moment.trainers > 1 && !is_server) {
    moment.victim.clear();  // which waits for the lease in its first call
    moment.further = 0;
  }
  return moment;
}

struct Case {
  Point point;
  std::uint64_t seed;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Point point : {Point::forward, Point::step, Point::checkpoint, Point::load}) {
    for (std::uint64_t seed = 0; seed < soak_size("CAFTAN_SHARED_MOMENTS", 2); ++seed) all.push_back({point, seed});
  }
  return all;
}
std::string name_of(const Case& one) {
  const std::map<Point, std::string> points{
      {Point::forward, "Forward"}, {Point::step, "Step"}, {Point::checkpoint, "Checkpoint"}, {Point::load, "Load"}};
  return points.at(one.point) + "_Seed" + std::to_string(one.seed);
}

/// Returns how often the threads of a process have waited; 0 when the process is gone.
std::uint64_t turns_of(pid_t pid) {
  std::uint64_t turns = 0;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      constexpr std::string_view kKey = "voluntary_ctxt_switches:";
      if (line.starts_with(kKey)) turns += std::stoull(line.substr(kKey.size()));
    }
  }
  return turns;
}

class KilledSharedServer : public ::testing::TestWithParam<Case> {
 protected:
  KilledSharedServer() { at::set_num_threads(1); }  // as workers have it
  static void TearDownTestSuite() {
    std::cout << "kills: " << kills_ << ", of them the others went on after " << went_on_ << "; resumed " << resumed_
              << ", to the bits of an undisturbed run " << same_ << '\n';
  }

  std::vector<std::string> command(std::vector<std::string> more) const {
    more.insert(more.begin(), {kSharing + "consistency.mode=" + moment_.mode, "run.deterministic=false",
                               kSharing + "goal=0.0", kSharing + "optimizer.momentum=0.5",
                               kSharing + "evaluate_every=0", kSharing + "checkpoint.every=" + std::to_string(kEvery),
                               "roles.trainer.replicas=" + std::to_string(moment_.trainers),
                               std::string("roles.trainer.on_loss=") + (moment_.goes_on ? "go_on" : "fail")});
    return run_shared_file(std::move(more));
  }
  static std::string steps(int number) { return kSharing + "max_steps=" + std::to_string(number); }

  /// Returns the fingerprint of a run that nothing disturbs.
  std::string undisturbed() const {
    std::string& print = undisturbed_[moment_.mode + std::to_string(moment_.trainers)];
    if (print.empty()) {
      const Folder folder;
      const Finished whole = run_to_end(folder, kCaftan, command({steps(kSteps)}));
      EXPECT_EQ(whole.code, 0) << whole.err;
      print = line_with(whole.out, "fingerprint sha256:");
    }
    return print;
  }

  std::filesystem::path latest() const { return std::filesystem::canonical(folder_.path() / "runs/latest"); }

  /// Waits until all processes are known.
  void wait_for_workers() {
    ASSERT_TRUE(command_->wait_for_line("  server")) << command_->err();
    for (const std::string& name : names(moment_.trainers)) {
      ASSERT_TRUE(command_->wait_for_line("  " + name)) << command_->err();
    }
  }
  /// Waits until the log has the line of the moment's step, which is there before a parameter changes (CM-24).
  /// Returns the last line.
  std::string wait_for_step() {
    if (!command_->wait_for_line("trains convnet")) return {};
    const std::filesystem::path log = latest() / "steps.log";
    FileWatch watch(log, IN_MODIFY);
    for (;;) {
      std::ifstream text(log);
      std::string line, last;
      int lines = 0;
      for (; std::getline(text, line); ++lines) last = line;
      if (lines > moment_.step) return last;  // behind the heading
      if (!watch.wait_for(1)) return {};
    }
  }
  /// Waits until the server's threads have waited `further` times.
  void wait_for_turns() const {
    const pid_t server = command_->worker("server");
    const std::uint64_t begin = turns_of(server);
    for (std::uint64_t now = begin; now != 0 && now < begin + static_cast<std::uint64_t>(moment_.further);) {
      now = turns_of(server);
    }
  }

  void start_and_reach_a_step() {
    command_.emplace(folder_, kCaftan, command({steps(kSteps)}));
    ASSERT_NO_FATAL_FAILURE(wait_for_workers());
    const std::string line = wait_for_step();
    ASSERT_NE(line, "") << command_->err();
    if (moment_.point == Point::checkpoint) {
      FileWatch watch(latest() / "checkpoints", IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE);
      ASSERT_TRUE(watch.wait_for(1 + moment_.further));
    } else {
      wait_for_turns();
    }
    if (moment_.victim.empty()) {
      moment_.victim = line.substr(line.find(' ') + 1).starts_with("0:") ? "trainer-1" : "trainer-0";
    }
  }
  void start_and_reach_a_load() {
    const Finished half = run_to_end(folder_, kCaftan, command({steps(kSteps / 2)}));
    ASSERT_EQ(half.code, 0) << half.err;
    from_ = latest();
    FileWatch watch(from_ / "checkpoints" / "step-000010", IN_OPEN | IN_CLOSE_NOWRITE);
    command_.emplace(folder_, kCaftan, command({steps(kSteps), kSharing + "resume=" + from_.string()}));
    ASSERT_TRUE(command_->wait_for_line("  server")) << command_->err();
    watch.drain();  // the launcher has looked at it
    ASSERT_TRUE(watch.wait_for(moment_.further % 2 == 0 ? 1 : 2)) << command_->err();
    ASSERT_NO_FATAL_FAILURE(wait_for_workers());
    wait_for_turns();
  }

  void kill() {
    const pid_t pid = command_->worker(moment_.victim);
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ++kills_;
    const bool goes_on = moment_.goes_on && moment_.victim != "server";
    ASSERT_EQ(command_->wait(), goes_on ? 0 : 1) << command_->err();
    EXPECT_TRUE(command_->nothing_is_left(0ms));
    const std::string run = command_->run_directory();
    EXPECT_TRUE(is_whole_csv(folder_.read(run + "/metrics.csv")));
    if (goes_on) {
      ++went_on_;
      EXPECT_THAT(command_->err(),
                  ContainsRegex("\nlost: " + moment_.victim + " was killed by signal 9 \\(SIGKILL\\)"));
      EXPECT_THAT(command_->out(), HasSubstr("of 500 test images, in evaluation mode"));
      return;
    }
    const std::string dead = moment_.victim + " (pid " + std::to_string(pid) + ")";
    EXPECT_THAT(command_->err(), HasSubstr("error: " + dead + " was killed by signal 9"));
    if (command_->err().find("; server: ") != std::string::npos) {
      EXPECT_THAT(command_->err(), ContainsRegex("; server: peer_down: [^\n]*" + moment_.victim));
    }
    EXPECT_THAT(folder_.read(run + "/summary.json"), HasSubstr("\"exit_code\": 1"));
  }

  /// Goes on from the newest checkpoint of `run`.
  void expect_resume(const std::filesystem::path& run) {
    const auto checkpoint = checkpoints::read_checkpoint(run, {{"model", "convnet"}});
    ASSERT_TRUE(checkpoint) << checkpoint.error();
    const Finished rest = run_to_end(folder_, kCaftan, command({steps(kSteps), kSharing + "resume=" + run.string()}));
    ASSERT_EQ(rest.code, 0) << rest.err;
    ++resumed_;
    EXPECT_THAT(rest.out, HasSubstr("resumed: step " + std::to_string(checkpoint->step) + " of "));
    if (moment_.mode == "sync" || moment_.trainers == 1) {
      EXPECT_EQ(line_with(rest.out, "fingerprint sha256:"), undisturbed());
      ++same_;
    }
    if (checkpoint->step < kSteps) expect_replay(latest(), replicas(), kAlgorithm, *checkpoint);
  }
  std::uint32_t replicas() const { return static_cast<std::uint32_t>(moment_.trainers); }

  Moment moment_ = moment_of(GetParam().point, GetParam().seed);
  Folder folder_;
  std::optional<Command> command_;
  std::filesystem::path from_;  // what the killed run went on from, if it did
  inline static std::map<std::string, std::string> undisturbed_;
  inline static int kills_ = 0, went_on_ = 0, resumed_ = 0, same_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Moments, KilledSharedServer, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(KilledSharedServer, CM15_CM17_TheOthersGoOnAndAResumedRunHasTheSameBits) {
  SCOPED_TRACE(moment_.mode + ", " + std::to_string(moment_.trainers) + " trainers, " + moment_.victim +
               (moment_.goes_on ? ", go_on" : ", fail"));
  ASSERT_NO_FATAL_FAILURE(moment_.point == Point::load ? start_and_reach_a_load() : start_and_reach_a_step());
  ASSERT_NO_FATAL_FAILURE(kill());
  if (moment_.goes_on && moment_.victim != "server") {
    std::optional<checkpoints::ModelCheckpoint> from;
    if (!from_.empty()) from = checkpoints::read_checkpoint(from_, {{"model", "convnet"}}).value();
    expect_replay(latest(), replicas(), kAlgorithm, from);
  } else {
    expect_resume(from_.empty() ? latest() : from_);
  }
}

}  // namespace
}  // namespace caftan::test::shared_kill_test

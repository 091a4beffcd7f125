// Simulations as a user starts them: one fingerprint for every placement, rule and number of borders, checkpoints, what
// becomes of a run when one of its processes is killed, pauses, real time, and the command that compares runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "caftan/sim/sequential.hpp"
#include "command.hpp"
#include "cqn/cqn.hpp"
#include "lines.hpp"
#include "phold/phold.hpp"
#include "programs.hpp"
#include "quarter_car/quarter_car.hpp"
#include "soak_size.hpp"

namespace caftan::test::simulation_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPhold = kConfigs + "/phold.test.toml";
const std::string kClock = "roles.clock.config.";
const std::string kPartition = "roles.partition.config.";

std::vector<std::string> run_of(const std::string& file, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"run", file});
  return overrides;
}
std::string fingerprint_of(const std::string& out) { return line_with(out, "fingerprint sha256:"); }

/// Returns the values of one measure in scalars.csv.
double scalar(const Folder& folder, const std::string& statistic, const std::string& measure) {
  std::istringstream lines(folder.read("runs/latest/scalars.csv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(statistic + ",") && line.find("," + measure + ",") != std::string::npos)
      return std::stod(line.substr(line.rfind(',') + 1));
  }
  return -1;
}

/// Returns the values of series.csv.
std::vector<double> series(const Folder& folder) {
  std::vector<double> values;
  std::istringstream lines(folder.read("runs/latest/series.csv"));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) values.push_back(std::stod(line.substr(line.rfind(',') + 1)));
  return values;
}

TEST(Simulations, SM18_OneFingerprintForEveryPlacementRuleAndNumberOfBorders) {
  phold::PholdConfig config;
  config.processes = 256;
  auto sequential = sim::run_sequential<phold::Phold>(config, {.end_time = 100, .seed = 1});
  const std::string expected = "fingerprint sha256:" + sequential.value().fingerprint;
  const std::vector<std::vector<std::string>> all{
      {"roles.partition.replicas=1"},
      {"roles.partition.replicas=2"},
      {"roles.partition.replicas=4", "run.placement=one_process"},
      {"roles.partition.replicas=4", kClock + "sync=null_message"},
      {"roles.partition.replicas=2", kClock + "sync=null_message", "run.placement=one_process"},
      {"roles.partition.replicas=2", kClock + "checkpoint.every=7", "run.deterministic=true"}};
  for (const auto& overrides : all) {
    const Folder folder;
    const Finished run = run_to_end(folder, kCaftan, run_of(kPhold, overrides));
    ASSERT_EQ(run.code, 0) << overrides.back() << run.err;
    EXPECT_EQ(fingerprint_of(run.out), expected) << overrides.back();
    EXPECT_THAT(run.out, HasSubstr("virtual time 100, " + std::to_string(sequential.value().handled) + " events in "));
  }
}

TEST(Simulations, ARunWithAnotherFingerprintThanTheFileAsksForFails) {
  const Folder folder;
  const Finished wrong = run_to_end(folder, kCaftan, run_of(kPhold, {"run.fingerprint=\"sha256:00\""}));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err,
              ContainsRegex("error: the fingerprint is sha256:[0-9a-f]+, not run.fingerprint = \"sha256:00\""));
  const std::string found = fingerprint_of(wrong.out).substr(std::string("fingerprint ").size());
  const Finished right = run_to_end(folder, kCaftan, run_of(kPhold, {"run.fingerprint=\"" + found + "\""}));
  EXPECT_EQ(right.code, 0) << right.err;
}

/// A run that lasts some seconds, with checkpoints, and one of its processes to kill.
class KilledSimulation : public ::testing::TestWithParam<std::size_t> {
 protected:
  static std::vector<std::string> overrides() {
    return {kClock + "end_time=400.0", kClock + "checkpoint.every=10.0", kPartition + "processes=64"};
  }
  static void SetUpTestSuite() {
    const Folder folder;
    const Finished whole = run_to_end(folder, kCaftan, run_of(kPhold, overrides()));
    ASSERT_EQ(whole.code, 0) << whole.err;
    whole_ = fingerprint_of(whole.out);
  }
  void kill_and_resume(const std::string& victim) {
    std::mt19937 random(static_cast<unsigned>(GetParam()));
    const std::string moment = "checkpoint: virtual time " + std::to_string(10 * (1 + random() % 20)) + " ";
    auto slow = run_of(kPhold, overrides());
    slow.push_back(kPartition + "work=200us");
    Command command(folder_, kCaftan, slow);
    ASSERT_TRUE(command.wait_for_line(moment)) << command.err();
    const pid_t pid = command.worker(victim);
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    EXPECT_EQ(command.wait(), 1);
    EXPECT_TRUE(command.nothing_is_left(2s));
    EXPECT_THAT(command.err(),
                HasSubstr("error: " + victim + " (pid " + std::to_string(pid) + ") was killed by signal 9"));
    const std::string run = command.run_directory();
    // SM-14: the others say who is lost, at which virtual time; the clock also from where to go on.
    EXPECT_THAT(
        folder_.read(run + "/log/partition-0.log"),
        ContainsRegex(victim +
                      " is lost( at virtual time [0-9.]+)?; this partition has handled all events before [0-9.]+"));
    if (victim != "clock") {
      EXPECT_THAT(
          folder_.read(run + "/log/clock.log"),
          ContainsRegex("peer_down: [^\n]*" + victim +
                        " is lost at virtual time [0-9.]+[^\n]*roles.clock.config.resume=[^\n]*/checkpoints/step-"));
    }
    auto again = run_of(kPhold, overrides());
    again.insert(again.end(), {kClock + "resume=" + folder_.path().string() + "/" + run, kClock + "changed=[\"work\"]",
                               "roles.partition.replicas=" + std::to_string(1 + random() % 4)});
    const Finished resumed = run_to_end(folder_, kCaftan, again);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(resumed.out, HasSubstr("resumed: virtual time "));
    EXPECT_EQ(fingerprint_of(resumed.out), whole_);
  }

  const Folder folder_;
  static inline std::string whole_{};
};
INSTANTIATE_TEST_SUITE_P(Moments, KilledSimulation,
                         ::testing::Range<std::size_t>(0, soak_size("CAFTAN_SIM_MOMENTS", 2)));

TEST_P(KilledSimulation, SM14_WithoutAPartitionTheOthersSayWhereAndAResumedRunHasTheSameBits) {
  kill_and_resume("partition-1");
}
TEST_P(KilledSimulation, SM14_WithoutTheClockThePartitionsSayWhereAndAResumedRunHasTheSameBits) {
  kill_and_resume("clock");
}

TEST(Simulations, ACheckpointOfAnotherConfigOrSeedIsRefusedWithTheFirstDifference) {
  const Folder folder;
  ASSERT_EQ(run_to_end(folder, kCaftan, run_of(kPhold, {kClock + "checkpoint.every=50.0"})).code, 0);
  const std::string resume = kClock + "resume=" + folder.path().string() + "/runs/latest";
  const Finished other = run_to_end(folder, kCaftan, run_of(kPhold, {resume, kPartition + "mean=2.0"}));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("mean = 2.0, the checkpoint has 1.0; take over its value, or list the key in `changed`"));
  const Finished changed =
      run_to_end(folder, kCaftan, run_of(kPhold, {resume, kPartition + "mean=2.0", kClock + "changed=[\"mean\"]"}));
  EXPECT_THAT(changed.err, Not(HasSubstr("the checkpoint has")));
}

TEST(Simulations, ScalarsHaveWhatTheQueueingTheorySays) {
  const Folder folder;
  // Exact by mean value analysis of the whole network: 69.28 services a unit, 1.3649 jobs in a queue.
  const Finished run = run_to_end(folder, kCaftan, run_of(kConfigs + "/cqn.toml", {kClock + "end_time=30000.0"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NEAR(scalar(folder, "services", "count") / 20000, 69.28, 0.005 * 69.28);
  EXPECT_NEAR(scalar(folder, "jobs in queue", "mean"), 1.3649, 0.005 * 1.3649);
}

TEST(Simulations, AQuarterCarHasTheErrorsOfItsSteps) {
  // The undivided system: both equations in one loop.
  const auto undivided = [] {
    quarter_car::Wheel wheel;
    quarter_car::Chassis chassis;
    std::vector<double> positions;
    for (std::int64_t i = 0; i < 500'000; ++i) {
      if (i % 1000 == 0) positions.push_back(chassis.position);
      wheel.chassis_position = chassis.position;
      wheel.chassis_velocity = chassis.velocity;
      chassis.wheel_position = wheel.position;
      chassis.wheel_velocity = wheel.velocity;
      wheel.step(static_cast<double>(i) * 1e-5, 1e-5);
      chassis.step(0, 1e-5);
    }
    return positions;
  }();
  const auto error_of = [&](const std::string& step, const std::string& algorithm) {
    const Folder folder;
    const Finished run =
        run_to_end(folder, kCaftan,
                   run_of(kConfigs + "/quarter_car.toml",
                          {"roles.car.config.base_step=" + step, "roles.car.config.algorithm=" + algorithm}));
    EXPECT_EQ(run.code, 0) << run.err;
    const std::vector<double> found = series(folder);
    EXPECT_EQ(found.size(), undivided.size());
    double largest = 0;
    for (std::size_t i = 0; i < std::min(found.size(), undivided.size()); ++i)
      largest = std::max(largest, std::abs(found[i] - undivided[i]));
    return largest;
  };
  EXPECT_NEAR(error_of("1e-4", "jacobi"), 2.7e-5, 0.02 * 2.7e-5);
  EXPECT_NEAR(error_of("1e-3", "jacobi"), 3.06e-4, 0.02 * 3.06e-4);
  EXPECT_NEAR(error_of("1e-2", "jacobi"), 4.02e-3, 0.02 * 4.02e-3);
  EXPECT_NEAR(error_of("1e-3", "gauss_seidel"), 2.56e-4, 0.02 * 2.56e-4);
}

/// Gives a command to the run in the folder. A Command would wait for all children of the test, the run among them.
int tell(const Folder& folder, const std::string& word) {
  const std::string line = "cd '" + folder.path().string() + "' && '" + kCaftan + "' sim " + word + " runs/latest";
  return WEXITSTATUS(std::system(line.c_str()));  // NOLINT: the words are the test's own
}

TEST(Simulations, APausedRunWaitsForACommandAndAStepIsOneTime) {
  const Folder folder;
  Command command(folder, kCaftan, run_of(kPhold, {kClock + "pause_at=[\"50\"]"}));
  ASSERT_TRUE(command.wait_for_line("paused at virtual time 50")) << command.err();
  EXPECT_EQ(tell(folder, "step"), 0);
  ASSERT_TRUE(command.wait_for_line("paused at virtual time 50.0")) << command.err();
  EXPECT_EQ(tell(folder, "go"), 0);
  EXPECT_EQ(command.wait(), 0) << command.err();
  const Folder other;
  EXPECT_EQ(fingerprint_of(command.out()), fingerprint_of(run_to_end(other, kCaftan, run_of(kPhold)).out));
  EXPECT_EQ(tell(folder, "go"), 2) << "the run is over";
}

TEST(Simulations, SM16_RealTimeRecordsItsLateness) {
  const Folder folder;
  const Finished run = run_to_end(folder, kCaftan,
                                  run_of(kConfigs + "/cqn.test.toml",
                                         {kClock + "end_time=20.0", kClock + "warmup=0.0", kClock + "real_time=40.0"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(folder.read("runs/latest/lateness.csv"), AllOf(HasSubstr("time,lateness\n"), HasSubstr("\n20,")));
}

TEST(Simulations, TheCommandFindsWhereTwoRunsPart) {
  const Folder folder;
  const std::vector<std::string> logs{kClock + "log.hashes=10.0", kClock + "log.events=true", kClock + "end_time=50.0"};
  auto first = run_of(kPhold, logs);
  auto second = run_of(kPhold, logs);
  second.push_back("roles.partition.replicas=3");
  auto third = run_of(kPhold, logs);
  third.push_back("run.seed=2");
  for (const auto& arguments : {first, second, third}) ASSERT_EQ(run_to_end(folder, kCaftan, arguments).code, 0);
  std::vector<std::string> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "runs")) {
    if (!entry.is_symlink()) runs.push_back(entry.path().string());
  }
  std::sort(runs.begin(), runs.end());
  ASSERT_EQ(runs.size(), 3U);
  const Finished same = run_to_end(folder, kCaftan, {"sim", "diff", runs[0], runs[1]});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("borders: 5 are equal"), ContainsRegex("events: [0-9]+ are equal")));
  const Finished other = run_to_end(folder, kCaftan, {"sim", "diff", runs[0], runs[2]});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out, AllOf(HasSubstr("borders: equal up to virtual time 0, different at 10"),
                               ContainsRegex("  first run:  at [0-9.]+: LP [0-9]+ handles \"[^\n]*Ball")));
}

TEST(Simulations, SeriesAreDrawn) {
  const Folder folder;
  ASSERT_EQ(run_to_end(folder, kCaftan, run_of(kConfigs + "/quarter_car.test.toml")).code, 0);
  const Finished drawn = run_to_end(folder, kCaftan, {"sim", "plot", "runs/latest"});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(folder.read("runs/latest/series.svg"), AllOf(HasSubstr("<svg"), HasSubstr("chassis.position")));
}

TEST(Simulations, BadFilesAreRefusedByCheck) {
  const Folder folder;
  const auto check = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"check", kPhold});
    const Finished checked = run_to_end(folder, kCaftan, overrides);
    return std::to_string(checked.code) + " " + checked.out + checked.err;
  };
  EXPECT_THAT(check({kClock + "end_time=0.0"}), AllOf(HasSubstr("2 "), HasSubstr("end_time must be > 0")));
  EXPECT_THAT(check({kClock + "end_time=1e11"}), AllOf(HasSubstr("2 "), HasSubstr("end_time = ")));
  EXPECT_THAT(check({kClock + "warmup=100.0"}), AllOf(HasSubstr("2 "), HasSubstr("it is not before end_time")));
  EXPECT_THAT(check({kPartition + "lookahead=0.0"}), AllOf(HasSubstr("2 "), HasSubstr("lookahead must be > 0")));
  EXPECT_THAT(check({kPartition + "lookahead=1e-10"}), AllOf(HasSubstr("2 "), HasSubstr("below one tick")));
  EXPECT_THAT(check({kClock + "sync=windows"}), AllOf(HasSubstr("2 "), HasSubstr("window")));
  EXPECT_THAT(check({"roles.clock.uses.partitions=clock"}), AllOf(HasSubstr("2 "), HasSubstr("phold.partition")));
  EXPECT_THAT(check({kPartition + "processes=3", "roles.partition.replicas=4"}),
              AllOf(HasSubstr("0 "), HasSubstr("only 3 groups: some partitions have nothing to do")));
}

}  // namespace
}  // namespace caftan::test::simulation_test

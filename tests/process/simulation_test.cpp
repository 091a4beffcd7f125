// Simulations as a user starts them: one fingerprint for every placement, rule and number of borders, checkpoints, what
// becomes of a run when one of its processes is killed, pauses, real time, and the command that compares runs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "caftan/sim/sequential.hpp"
#include "command.hpp"
#include "file_limit.hpp"
#include "lines.hpp"
#include "phold/phold.hpp"
#include "programs.hpp"
#include "soak_size.hpp"

namespace caftan::test::simulation_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kPhold = kConfigs + "/phold.test.toml";
const std::string kClock = "roles.clock.config.";
const std::string kPartition = "roles.partition.config.";

std::vector<std::string> run_of(const std::string& file, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"run", file});
  return overrides;
}
std::string fingerprint_of(const std::string& out) { return line_with(out, "fingerprint sha256:"); }

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

TEST(Simulations, RN25_PartitionsKeepToCoresOfTheirOwnUnlessTheFileSaysOtherwise) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core cannot be divided";
  const Folder folder;
  const auto log_of = [&](const std::string& worker, const std::string& own_cores) {
    Command command(folder, kCaftan, run_of(kPhold, {kClock + "end_time=2.0", "run.own_cores=" + own_cores}));
    EXPECT_EQ(command.wait(), 0) << command.err();
    return folder.read(command.run_directory() + "/log/" + worker + ".log");
  };
  const std::string words = " worker: on [0-9]+ of [0-9]+ cores: [0-9, ]+ .run.own_cores.";
  EXPECT_THAT(log_of("partition-0", "true"), ContainsRegex(words));
  EXPECT_THAT(log_of("partition-1", "true"), ContainsRegex(words));
  EXPECT_THAT(log_of("clock", "true"), ::testing::Not(HasSubstr("own_cores")));
  EXPECT_THAT(log_of("partition-0", "false"), ::testing::Not(HasSubstr("own_cores")));
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
    // SM-14: the others say who is lost, at which virtual time; the clock also from where to go on. The launcher may
    // see the loss before a partition does, and end the run.
    EXPECT_THAT(
        folder_.read(run + "/log/partition-0.log"),
        ContainsRegex("(" + victim + " is lost( at virtual time [0-9.]+)?; this partition has handled all events " +
                      "before [0-9.]+|before its clock has closed it; this partition has handled all events " +
                      "before [0-9.]+ [^\n]*" + victim + " was killed by signal 9)"));
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

TEST(Simulations, ACheckpointThatDoesNotFitIsRefusedByCheckWithTheFirstDifference) {
  const Folder folder;
  ASSERT_EQ(run_to_end(folder, kCaftan, run_of(kPhold, {kClock + "checkpoint.every=40.0"})).code, 0);
  const std::filesystem::path first = std::filesystem::canonical(folder.path() / "runs/latest");
  const std::string resume = kClock + "resume=" + first.string();
  const auto found = [&](const std::string& verb, const std::vector<std::string>& changes) {
    std::vector<std::string> arguments{verb, kPhold, resume};
    arguments.insert(arguments.end(), changes.begin(), changes.end());
    const Finished done = run_to_end(folder, kCaftan, arguments);
    return std::to_string(done.code) + " " + done.out + done.err;
  };
  for (const char* const verb : {"check", "run"}) {
    EXPECT_THAT(
        found(verb, {kPartition + "mean=2.0"}),
        AllOf(StartsWith("2 "), HasSubstr("command line: error: "),
              HasSubstr("step-000002: the checkpoint is of a run with"),
              HasSubstr("mean = 2.0, the checkpoint has 1.0; take over its value, or list the key in `changed`")));
  }
  EXPECT_THAT(found("check", {"run.seed=9"}),
              AllOf(StartsWith("2 "), HasSubstr("another seed: run.seed = "), HasSubstr(", not 9")));
  for (const char* const verb : {"check", "run"}) {
    EXPECT_THAT(
        found(verb, {kClock + "warmup=30.0"}),
        AllOf(StartsWith("2 "), HasSubstr("step-000002: the checkpoint has statistics that begin at virtual time 0, "
                                          "so that warmup = 30 would have no effect; set warmup to 0, or to a time "
                                          "behind 80")));
  }
  EXPECT_THAT(found("check", {kClock + "warmup=90.0"}), StartsWith("0 "));
  EXPECT_THAT(found("check", {kClock + "end_time=80.0"}),
              AllOf(StartsWith("2 "), HasSubstr("is at virtual time 80, and end_time is 80")));
  EXPECT_THAT(found("check", {kPartition + "processes=64", kClock + "changed=[\"processes\"]"}),
              AllOf(StartsWith("2 "), HasSubstr("of another model")));
  EXPECT_THAT(
      found("check", {kPartition + "mean=2.0", kClock + "changed=[\"maen\"]"}),
      AllOf(StartsWith("2 "), HasSubstr("'maen', which is no key of the model's config; did you mean 'mean'?")));
  EXPECT_THAT(found("check", {kPartition + "mean=2.0", kClock + "changed=[\"mean\"]"}), StartsWith("0 "));
  EXPECT_THAT(found("run", {kPartition + "mean=2.0", kClock + "changed=[\"mean\"]"}), StartsWith("0 "));
  const std::filesystem::path part = first / "checkpoints/step-000002/partition-1";
  ASSERT_TRUE(std::filesystem::exists(part)) << part;
  std::filesystem::resize_file(part, std::filesystem::file_size(part) - 1);
  EXPECT_THAT(found("check", {}), AllOf(StartsWith("2 "), HasSubstr("step-000002/partition-1: ")));
  const Finished none = run_to_end(folder, kCaftan, {"run", kPhold, kClock + "resume=" + folder.path().string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no whole checkpoint"));
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

TEST(Simulations, ASweepOverTheReplicasIsDrawnAsSpeedUp) {
  const Folder folder;
  const Finished swept =
      run_to_end(folder, kCaftan,
                 {"sweep", kPhold, "roles.partition.replicas=1,2", kPartition + "remote=0.1,0.5", "--out", "speed"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  const Finished drawn = run_to_end(folder, kCaftan, {"sim", "plot", "speed"});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(folder.read("speed/speed-up.svg"),
              AllOf(HasSubstr("<svg"), HasSubstr("speed-up against 1 partition"), HasSubstr("remote=0.1"),
                    HasSubstr("remote=0.5"), HasSubstr("as many times as quick")));
  ASSERT_EQ(run_to_end(folder, kCaftan, {"sweep", kPhold, "run.seed=1..2", "--out", "seeds"}).code, 0);
  const Finished refused = run_to_end(folder, kCaftan, {"sim", "plot", "seeds"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("must vary the replicas of one role"));
}

TEST(Simulations, ASweepOverSeedsComparesTheMeansOfTheStatistics) {
  const Folder folder;
  const Finished swept = run_to_end(
      folder, kCaftan,
      {"sweep", kConfigs + "/cqn.test.toml", "run.seed=1..2", "--out", "seeds", "--metric", "jobs in queue.mean"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_THAT(swept.out, ContainsRegex("n +clock.jobs in queue.mean\n2 +[0-9.]+ \\+- [0-9.]+"));
  EXPECT_THAT(folder.read("seeds/001/latest/scalars.csv"), HasSubstr("jobs in queue,jobs,mean,"));
}

TEST(Simulations, TheLogOfEventsIsLinesOfJsonOfThoseAskedFor) {
  const Folder folder;
  const Finished run =
      run_to_end(folder, kCaftan,
                 run_of(kPhold, {kClock + "log.events=true", kClock + "log.from=10.0", kClock + "log.until=12.0"}));
  ASSERT_EQ(run.code, 0) << run.err;
  std::istringstream lines(folder.read("runs/latest/events-0.jsonl"));
  std::size_t count = 0;
  std::int64_t before = 10'000'000'000;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_THAT(line, ContainsRegex("^\\{\"time\":[0-9]+,\"priority\":0,\"source\":[0-9]+,\"sequence\":[0-9]+,"
                                    "\"lp\":[0-9]+,\"event\":\"[^\"]*Ball\",\"payload\":[0-9]+\\}$"));
    const std::int64_t time = std::stoll(line.substr(line.find(':') + 1));
    EXPECT_GE(time, before);
    EXPECT_LT(time, 12'000'000'000);
    before = time;
  }
  EXPECT_GT(count, 50U);
}

/// A run of one process with a debugger: this test. The thread that stops first is the one that raised SIGTRAP.
class Traced {
 public:
  Traced(const Folder& folder, std::vector<std::string> arguments) {
    std::vector<char*> argv{const_cast<char*>(kCaftan.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    const int out = ::open((folder / "out").c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    if (::chdir(folder.path().c_str()) == 0) ::execv(kCaftan.c_str(), argv.data());
    ::_exit(127);
  }
  /// Lets all threads go on until one has raised SIGTRAP, or the process has ended. Returns whether one has.
  bool runs_to_a_trap() {
    for (int status = 0;;) {
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      if (thread < 0) return false;
      if (!WIFSTOPPED(status)) {
        if (thread != pid_) continue;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
        return false;
      }
      if (!std::exchange(is_begun_, true))  // exec
        ::ptrace(PTRACE_SETOPTIONS, thread, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
      siginfo_t info{};
      const bool has_signal = ::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0;
      const int signal = WSTOPSIG(status);
      const bool is_trap = signal == SIGTRAP && has_signal && info.si_code == SI_TKILL;
      // The signals of tracing itself are not for the process.
      ::ptrace(PTRACE_CONT, thread, nullptr, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
      if (is_trap) return true;
    }
  }
  int code() const { return code_; }

 private:
  pid_t pid_ = 0;
  bool is_begun_ = false;
  int code_ = -1;
};

TEST(Simulations, ADebuggerStopsBeforeTheEventAndWithoutOneTheRunGoesOn) {
  const std::vector<std::string> stops{kClock + "break_at.time=20.0", kClock + "break_at.lp=7",
                                       "run.placement=one_process"};
  const std::string where = "break_at: LP 7 \\([^\n]*Process\\) is about to handle [^\n]*Ball at 2[0-9.]+";
  {
    const Folder folder;
    Traced traced(folder, run_of(kPhold, stops));
    EXPECT_TRUE(traced.runs_to_a_trap()) << folder.read("out");
    EXPECT_FALSE(traced.runs_to_a_trap()) << "it stops once";
    EXPECT_EQ(traced.code(), 0) << folder.read("out");
    EXPECT_THAT(folder.read("runs/latest/log/partition-0.log"), ContainsRegex(where + "\n"));
  }
  const Folder folder;
  ASSERT_EQ(run_to_end(folder, kCaftan, run_of(kPhold, stops)).code, 0);
  EXPECT_THAT(folder.read("runs/latest/log/partition-0.log"),
              ContainsRegex(where + "; no debugger is attached, so the run goes on"));
}

TEST(Simulations, AFrozenPartitionIsNamed) {
  const Folder folder;
  Command command(
      folder, kCaftan,
      run_of(kPhold, {kClock + "end_time=1e6", kClock + "checkpoint.every=10.0", "cluster.heartbeat=300ms"}));
  ASSERT_TRUE(command.wait_for_line("checkpoint: virtual time 20 ")) << command.err();
  const pid_t pid = command.worker("partition-1");
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGSTOP);
  EXPECT_EQ(command.wait(), 1) << command.err();
  EXPECT_THAT(command.err(),
              HasSubstr("error: partition-1 (pid " + std::to_string(pid) + ") has shown no sign of life for 1500ms"));
}

TEST(Simulations, AFullDiskInACheckpointIsAnErrorAndTheOneBeforeStays) {
  const Folder folder;
  const std::vector<std::string> overrides{kClock + "checkpoint.every=30.0", kPartition + "processes=4096"};
  ASSERT_EQ(run_to_end(folder, kCaftan, run_of(kPhold, overrides)).code, 0);
  const FileLimit limit(50'000);  // the file of a partition has more
  const Finished full = run_to_end(folder, kCaftan, run_of(kPhold, overrides));
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, ContainsRegex("io_error: partition-[01]: [^\n]*checkpoints/step-000001/partition-[01]"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs/latest/checkpoints/step-000001/manifest"));
}

TEST(Simulations, ASeriesThatNoProcessRecordsIsAWarningWithTheNearestName) {
  const Folder folder;
  const Finished run = run_to_end(
      folder, kCaftan, run_of(kConfigs + "/quarter_car.test.toml", {kClock + "record.series=[\"chassis.positon\"]"}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out + run.err,
              HasSubstr("warning: no process has recorded the series 'chassis.positon'; did you mean "
                        "'chassis.position'?"));
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST(Simulations, BadFilesAreRefusedByCheckWithTheirLine) {
  const Folder folder;
  // The line with `old` becomes `line`; what check prints names it.
  const auto check = [&](const std::string& file, const std::string& old, const std::string& line) {
    std::istringstream lines(text_of(kConfigs + "/" + file));
    std::string text;
    std::size_t at = 0;
    std::size_t number = 0;
    for (std::string one; std::getline(lines, one);) {
      ++number;
      const bool is_it = at == 0 && one.starts_with(old);
      if (is_it) at = number;
      text += (is_it ? line : one) + "\n";
    }
    EXPECT_GT(at, 0U) << old;
    folder.write("bad.toml", text);
    const Finished checked = run_to_end(folder, kCaftan, {"check", "bad.toml"});
    std::string found = std::to_string(checked.code) + " " + checked.out + checked.err;
    const std::string place = "bad.toml:" + std::to_string(at) + ":";
    for (std::size_t from = 0; (from = found.find(place, from)) != std::string::npos;)
      found.replace(from, place.size(), "HERE:");
    return found;
  };
  const auto refused = [](const std::string& text) {
    return AllOf(StartsWith("2 "), ContainsRegex("HERE:[0-9]+: error: [^\n]*" + text));
  };
  const std::string phold = "phold.test.toml";
  for (const std::string wrong : {"0.0", "-1.0", "nan", "inf"})
    EXPECT_THAT(check(phold, "end_time", "end_time = " + wrong), refused("end_time must be")) << wrong;
  EXPECT_THAT(check(phold, "end_time", "end_time = 1e11"), refused("end_time = "));
  EXPECT_THAT(check(phold, "end_time", "end_time = 100.0\nwarmup = 100.0"), HasSubstr("it is not before end_time"));
  EXPECT_THAT(check(phold, "processes", "lookahead = 0.0"), refused("lookahead must be > 0"));
  EXPECT_THAT(check(phold, "processes", "lookahead = 1e-10"), refused("below one tick"));
  EXPECT_THAT(check(phold, "processes", "processes = 3").substr(0, 2), "0 ");
  EXPECT_THAT(check(phold, "end_time", "sync = \"windows\"\nend_time = 100.0"), refused("did you mean 'window'"));
  EXPECT_THAT(check(phold, "partitions", "partitions = \"clock\""), refused("phold.partition"));
  EXPECT_THAT(check(phold, "type     = \"phold.partition\"", "type = \"cqn.partition\""),
              AllOf(StartsWith("2 "), HasSubstr("wants a phold.partition")));
  const std::string car = "quarter_car.test.toml";
  EXPECT_THAT(check(car, "base_step", "base_step = 1.5e-9"), refused("whole number of ticks"));
  const auto connected = [&](const std::string& connection) {
    return check(car, "connections", "connections = [ \"" + connection + "\",");
  };
  EXPECT_THAT(connected("wheel.positon -> chassis.wheel_position"), refused("did you mean 'wheel.position'"));
  EXPECT_THAT(connected("wheel.position -> chassis.wheel_position"), refused("two sources"));
  EXPECT_THAT(connected("wheel.position -> chassis.position"), refused("'chassis.position' is no input"));
  EXPECT_THAT(check(car, "  \"chassis.velocity", ""),
              AllOf(StartsWith("0 "), HasSubstr("'wheel.chassis_velocity' has no source")));
  const auto with_scenario = [&] { return check(car, "base_step", "scenario = \"kerb.toml\""); };
  EXPECT_THAT(with_scenario(), refused("kerb.toml"));
  folder.write("kerb.toml", "[[at]]\ntime = 0.1\nset = { \"wheel.tire\" = 1.0 }\n");
  EXPECT_THAT(with_scenario(),
              AllOf(StartsWith("2 "), HasSubstr("kerb.toml:3:"), HasSubstr("did you mean 'wheel.tyre'?")));
  folder.write("kerb.toml", "[[at]]\ntime = 0.5\nset = { \"wheel.tyre\" = 1.2e5 }\n");
  EXPECT_THAT(
      with_scenario(),
      AllOf(StartsWith("0 "),
            ContainsRegex(
                "bad.toml:[0-9]+:[0-9]+: warning: [^\n]*'wheel.tyre' changes at 0.5, but the run ends at 0.5")));
}

TEST(Simulations, MorePartitionsThanGroupsIsAWarning) {
  const Folder folder;
  const Finished checked =
      run_to_end(folder, kCaftan, {"check", kPhold, kPartition + "processes=3", "roles.partition.replicas=4"});
  EXPECT_EQ(checked.code, 0);
  EXPECT_THAT(checked.out + checked.err, HasSubstr("only 3 groups: some partitions have nothing to do"));
}

}  // namespace
}  // namespace caftan::test::simulation_test

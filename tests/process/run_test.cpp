// Whole runs of real commands: what they print, what they leave behind, what they return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <utility>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::run_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string line_with(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

/// Returns the lines of a run's output that must not depend on where its workers are.
std::string placeless(const std::string& out) {
  std::string kept;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const bool timed = line.starts_with("solved: ") || line.starts_with("runs/");
    if (!timed) kept += line + "\n";
  }
  return kept;
}

/// Returns the frames and bytes that the last run in a folder has sent, by kind; without `ping`, `pong` and
/// `membership.view`, which depend on time and placement.
std::string frames_sent(const Folder& folder) {
  const std::string summary = folder.read("runs/latest/summary.json");
  const std::size_t begin = summary.find("\"frames_sent\": {");
  std::string kept;
  std::istringstream lines(summary.substr(begin, summary.find("\n  }", begin) - begin));
  bool is_kept = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with("{"))
      is_kept = line.find("\"ping\"") == std::string::npos && line.find("\"pong\"") == std::string::npos &&
                line.find("\"membership.view\"") == std::string::npos;
    if (is_kept) kept += line + "\n";
  }
  return kept;
}

class EachPlacement : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Placements, EachPlacement, ::testing::Values("one_process", "processes"));

TEST_P(EachPlacement, TheUsersProgramRunsAsPrinted) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run = run_to_end(folder, kCounting, {"run", "counting.toml", "run.placement=" + GetParam()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(": resolved.toml metrics.csv metrics.jsonl summary.json log/\n"));
  EXPECT_THAT(folder.read("runs/latest/summary.json"),
              AllOf(HasSubstr("\"outcome\": \"success\""), HasSubstr("\"driver.sum\": 100.0")));
  EXPECT_TRUE(is_whole_csv(folder.read("runs/latest/metrics.csv")));
}

TEST_P(EachPlacement, OutputOfACommandWithClosedDescriptorsStaysOutOfTheRunsFiles) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const std::string command =
      "exec '" + std::string(kCounting) + "' run counting.toml run.placement=" + GetParam() + " >&- 2>&- <&-";
  EXPECT_EQ(run_to_end(folder, "/bin/sh", {"-c", command}).code, 0);
  EXPECT_TRUE(is_whole_csv(folder.read("runs/latest/metrics.csv")));
  std::istringstream rows(folder.read("runs/latest/metrics.jsonl"));
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) EXPECT_THAT(row, StartsWith("{"));
  EXPECT_GT(count, 0U);
}

TEST_P(EachPlacement, CartPoleHasOneFingerprintInAllPlacementsAndWithAnyNumberOfObserversTheSameTwice) {
  for (const std::string replicas : {"1", "2", "4"}) {
    const Folder folder;
    const std::vector<std::string> in_one{"run", kConfigs + "/cartpole.test.toml", "run.placement=one_process",
                                          "roles.observer.replicas=" + replicas};
    std::vector<std::string> here = in_one;
    here[2] = "run.placement=" + GetParam();
    const Finished first = run_to_end(folder, kCaftan, in_one);
    const std::string frames = frames_sent(folder);
    const std::string curve = folder.read("runs/latest/curve.csv");
    const Finished second = run_to_end(folder, kCaftan, here);
    ASSERT_EQ(first.code, 0) << first.err;
    ASSERT_EQ(second.code, 0) << second.err;
    const std::string fingerprint = line_with(first.out, "fingerprint sha256:");
    EXPECT_THAT(fingerprint, StartsWith("fingerprint sha256:"));
    EXPECT_EQ(line_with(second.out, "fingerprint sha256:"), fingerprint) << replicas << " observers";
    EXPECT_THAT(folder.read("runs/latest/summary.json"),
                AllOf(HasSubstr(fingerprint.substr(12)), HasSubstr("\"frames_sent\": {\n    \"call\": {")));
    EXPECT_THAT(second.out, AllOf(HasSubstr("solved: "), HasSubstr("greedy evaluation: 3 episodes")));
    EXPECT_THAT(frames, AllOf(HasSubstr("\"method\": {"), HasSubstr("\"response\": {"), HasSubstr("\"down\": {")));
    EXPECT_EQ(frames_sent(folder), frames);
    EXPECT_THAT(curve, AllOf(StartsWith("step,name,value\r\n1,agent.loss,"), HasSubstr("\n2,agent.running_reward,")));
    EXPECT_EQ(folder.read("runs/latest/curve.csv"), curve) << replicas << " observers";
    EXPECT_EQ(placeless(second.out), placeless(first.out));
  }
}

TEST(Run, EachProtocolOfCartPoleSendsTheSameFramesInEveryPlacement) {
  for (const std::string protocol : {"fused", "rollout"}) {
    const Folder folder;
    std::vector<std::string> words{"run", kConfigs + "/cartpole.test.toml", "run.placement=one_process",
                                   "roles.observer.replicas=4", "roles.agent.config.protocol=" + protocol};
    const Finished in_one = run_to_end(folder, kCaftan, words);
    const std::string frames = frames_sent(folder);
    words[2] = "run.placement=processes";
    const Finished in_five = run_to_end(folder, kCaftan, words);
    ASSERT_EQ(in_one.code, 0) << in_one.err;
    ASSERT_EQ(in_five.code, 0) << in_five.err;
    EXPECT_THAT(frames, HasSubstr("\"method\": {"));
    EXPECT_EQ(frames_sent(folder), frames) << protocol;
    EXPECT_EQ(placeless(in_five.out), placeless(in_one.out)) << protocol;
  }
}

TEST(Run, WorkersTalkOverTcpWhenTheFileSaysSo) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run = run_to_end(folder, kCounting, {"run", "counting.toml", "cluster.channel=tcp"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("channel tcp"));
  EXPECT_THAT(folder.read("runs/latest/log/driver.log"), HasSubstr("over tcp"));
}

TEST(Run, DP1_WorkersShareMemoryWhenTheFileSaysSoAndSendTheSameFrames) {
  const Folder folder;
  std::vector<std::string> words{"run", kConfigs + "/cartpole.test.toml", "roles.observer.replicas=4",
                                 "cluster.channel=unix"};
  const Finished over_sockets = run_to_end(folder, kCaftan, words);
  const std::string frames = frames_sent(folder);
  words.back() = "cluster.channel=shm";
  const Finished shared = run_to_end(folder, kCaftan, words);
  ASSERT_EQ(over_sockets.code, 0) << over_sockets.err;
  ASSERT_EQ(shared.code, 0) << shared.err;
  EXPECT_THAT(shared.err, HasSubstr("channel shm"));
  EXPECT_THAT(folder.read("runs/latest/log/agent.log"), AllOf(HasSubstr("over shm"), Not(HasSubstr("not over shm"))));
  EXPECT_THAT(frames, HasSubstr("\"method\": {"));
  EXPECT_EQ(frames_sent(folder), frames);
  EXPECT_EQ(placeless(shared.out), placeless(over_sockets.out));
}

TEST(Run, SP1_DP7_WaitingWithoutSleepChangesTimeOnlyAndIsShown) {
  const Folder folder;
  std::vector<std::string> words{"run", kConfigs + "/cartpole.test.toml", "cluster.channel=shm", "cluster.spin=off"};
  const Finished asleep = run_to_end(folder, kCaftan, words);
  const std::string frames = frames_sent(folder);
  words.back() = "cluster.spin=1ms";
  const Finished spinning = run_to_end(folder, kCaftan, words);
  ASSERT_EQ(asleep.code, 0) << asleep.err;
  ASSERT_EQ(spinning.code, 0) << spinning.err;
  EXPECT_EQ(frames_sent(folder), frames);
  EXPECT_EQ(placeless(spinning.out), placeless(asleep.out));
  EXPECT_THAT(asleep.err, HasSubstr("channel shm, spin off, in"));
  EXPECT_THAT(spinning.err, HasSubstr("channel shm, spin "));  // 1ms, or off with the reason of this machine
  EXPECT_THAT(folder.read("runs/latest/log/agent.log"), HasSubstr("spin "));
  words.front() = "plan";
  EXPECT_THAT(run_to_end(folder, kCaftan, words).out, HasSubstr("spin here: "));
}

TEST(Run, DP8_WithoutMemoryToShareWorkersTalkOverSocketsAndTheirLogsSayWhy) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run =
      run_to_end(folder, kCounting, {"run", "counting.toml", "cluster.channel=shm", "limits.shared_memory=64KiB"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(folder.read("runs/latest/log/driver.log"),
              AllOf(HasSubstr("over unix"), HasSubstr("channel to counter"),
                    HasSubstr(": not over shm: limits.shared_memory has no room for more rings")));
}

TEST(Run, BU1_WhereTheKernelLetsNoMemoryBeReadTensorsGoThroughTheRingsAndAllOutputSaysWhy) {
  const Folder folder;
  const std::vector<std::string> words{"run", kConfigs + "/cartpole.test.toml", "cluster.channel=shm"};
  const Finished lent = run_to_end(folder, kCaftan, words);
  const std::string frames = frames_sent(folder);
  std::vector<std::string> refused{kCaftan};
  refused.insert(refused.end(), words.begin(), words.end());
  const Finished run = run_to_end(folder, kRefusing, refused);
  ASSERT_EQ(lent.code, 0) << lent.err;
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(placeless(run.out), placeless(lent.out));
  EXPECT_EQ(frames_sent(folder), frames);
  const std::string why = "large tensors go through the rings: process_vm_readv: Operation not permitted";
  EXPECT_THAT(lent.err, Not(HasSubstr("large tensors")));
  EXPECT_THAT(run.err, HasSubstr("channel shm (" + why));
  refused[1] = "plan";
  EXPECT_THAT(run_to_end(folder, kRefusing, refused).out, HasSubstr("\nchannel here: shm, " + why));
}

TEST(Run, T8_EachRoleOfOneProcessMayWaitHoweverManyThereAre) {
  const Folder folder;
  folder.write("t.toml",
               ticking_file("placement = \"one_process\"\nstart_timeout = \"20s\"\nstop_timeout = \"20s\"\n"));
  // 128 threads are there for calls; the threads for run() of the roles come in addition.
  const Finished run = run_to_end(folder, kTicking,
                                  {"run", "t.toml", "roles.ticker.replicas=130", "roles.ticker.config.together=130",
                                   "roles.ticker.config.rounds=1"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(Run, StreamsOfRandomNumbersDependOnTheSeedOnly) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const auto seed_line = [&](const std::string& seed, const std::string& placement) {
    const Finished run =
        run_to_end(folder, kTicking, {"run", "t.toml", "roles.ticker.config.rounds=1", "run.seed=" + seed, placement});
    return line_with(run.out, "seed ");
  };
  const std::string first = seed_line("5", "run.placement=one_process");
  EXPECT_THAT(first, StartsWith("seed "));
  EXPECT_EQ(seed_line("5", "run.placement=processes"), first);
  EXPECT_NE(seed_line("6", "run.placement=one_process"), first);
}

TEST_P(EachPlacement, U13_WhoIsReadyStandsBeforeTheFirstResults) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run = run_to_end(
      folder, "/bin/sh",
      {"-c", "exec '" + kTicking + "' run t.toml roles.ticker.config.rounds=50 run.placement=" + GetParam() + " 2>&1"});
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_LT(run.out.rfind(" ready after "), run.out.find("\ntick 1\n")) << run.out;
}

}  // namespace
}  // namespace caftan::test::run_test

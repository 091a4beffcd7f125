// CartPole with batched requests as a user starts it: batches change no reward, a killed observer stalls no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "command.hpp"
#include "lines.hpp"
#include "programs.hpp"

namespace caftan::test::cartpole_batch_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kAgent = "roles.agent.config.";

/// A run of the small file in a folder of its own.
struct BatchRun {
  Folder folder{};
  Finished end{};
  std::string fingerprint{};
  std::string rewards{};  // rows of the curves

  explicit BatchRun(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", kConfigs + "/cartpole_batch.test.toml"});
    end = run_to_end(folder, kCaftan, more);
    EXPECT_EQ(end.code, 0) << end.err;
    fingerprint = line_with(end.out, "fingerprint sha256:");
    rewards = folder.read("runs/latest/curve.csv");
    EXPECT_FALSE(fingerprint.empty());
  }
};

TEST(CartPoleBatch, BatchAndNoBatchGiveTheSameRewards) {
  for (const std::string observers : {"1", "3"}) {
    const std::string replicas = "roles.observer.replicas=" + observers;
    const BatchRun batch({replicas});
    const BatchRun alone({replicas, kAgent + "batch.enabled=false"});
    EXPECT_EQ(batch.fingerprint, alone.fingerprint) << observers;
    EXPECT_EQ(batch.rewards, alone.rewards) << observers;
    EXPECT_THAT(batch.rewards, HasSubstr("sub_episode_reward"));
    EXPECT_THAT(batch.end.out, HasSubstr("mean batch size"));
    EXPECT_THAT(alone.end.out, Not(HasSubstr("mean batch size")));
  }
}

TEST(CartPoleBatch, OneProcessAndProcessesHaveTheSameFingerprint) {
  const BatchRun processes;
  const BatchRun one({"run.placement=one_process"});
  EXPECT_EQ(processes.fingerprint, one.fingerprint);
  const BatchRun partial({kAgent + "batch.max_size=1", kAgent + "batch.max_wait=0s"});
  EXPECT_EQ(processes.fingerprint, partial.fingerprint) << "which requests share a batch changes no bit";
}

/// Runs so long that an observer can be killed in it, and ends by itself.
std::vector<std::string> long_run(const std::string& on_loss) {
  return {"run",
          kConfigs + "/cartpole_batch.test.toml",
          "roles.observer.replicas=3",
          "output.progress=plain",
          "output.every=100ms",
          kAgent + "episodes=60",
          kAgent + "batch.max_wait=10min",  // the run's own limit of time ends first if a batch waits
          "roles.observer.on_loss=" + on_loss};
}

pid_t kill_an_observer(Command& command) {
  EXPECT_TRUE(command.wait_for_line("  observer-1")) << command.err();
  EXPECT_TRUE(command.wait_for_line("  observer-2")) << command.err();
  EXPECT_TRUE(command.wait_for_line("0:0")) << command.err() << command.out();
  const pid_t pid = command.worker("observer-1");
  EXPECT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  return pid;
}

TEST(CartPoleBatch, ALostObserverEndsTheRunWithATypedError) {
  const Folder folder;
  Command command(folder, kCaftan, long_run("fail"));
  kill_an_observer(command);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), HasSubstr("error: observer-1"));
  EXPECT_THAT(command.err(), HasSubstr("was killed by signal 9"));
}

TEST(CartPoleBatch, TheOthersPlayOnWithoutALostObserver) {
  const Folder folder;
  Command command(folder, kCaftan, long_run("go_on"));
  kill_an_observer(command);
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.out(), HasSubstr("played: 60 episodes with 2 observers"));
  EXPECT_THAT(command.err(), HasSubstr("lost: observer-1 was killed by signal 9"));
}

TEST(CartPoleBatch, AMaxSizeThatIsNotUsedIsNotedAndOneThatCannotBeIsRefused) {
  const Folder folder;
  const Finished run =
      run_to_end(folder, kCaftan, {"run", kConfigs + "/cartpole_batch.test.toml", kAgent + "batch.max_size=3"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("mean batch size 2.0")) << "no batch waits for a third observer";
  EXPECT_THAT(folder.read("runs/latest/resolved.toml"), HasSubstr("a batch has 2 requests at most"));
  const Finished none =
      run_to_end(folder, kCaftan, {"check", kConfigs + "/cartpole_batch.test.toml", kAgent + "batch.max_size=0"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("max_size"));
}

}  // namespace
}  // namespace caftan::test::cartpole_batch_test

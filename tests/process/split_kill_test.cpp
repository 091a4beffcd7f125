// Workers of a split training that are killed: the others end with a typed error that names the dead one, the launcher
// names it, nothing is left.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "command.hpp"
#include "programs.hpp"
#include "soak_size.hpp"

namespace caftan::test::split_kill_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kSplitting = CAFTAN_SPLITTING;

struct Moment {
  std::string name;
  std::string victim;
  std::string line;      // the kill follows it
  std::string holder{};  // or the kill finds this owner in the middle of a commit of trainer-0's,
  int step = 0;          // of this step
};

/// Any victim, wherever either trainer is in one of the first steps.
Moment random_moment(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string victim = std::vector<std::string>{"trainer-0", "trainer-1", "server"}[random() % 3];
  const std::string trainer = "trainer-" + std::to_string(random() % 2) + " " + std::to_string(1 + random() % 30);
  const std::string hop = std::to_string(random() % 6);
  const std::vector<std::string> where{" forward " + hop, " backward " + hop, " backward " + hop, " backward done",
                                       " stepped"};
  return {"Seed" + std::to_string(seed), victim, trainer + where[random() % where.size()]};
}

/// Any victim, while a trainer's step is prepared: the line comes before the first of its frames.
Moment prepare_moment(std::uint64_t seed) {
  std::mt19937_64 random(1000 + seed);
  const std::string victim = std::vector<std::string>{"trainer-0", "trainer-1", "server"}[random() % 3];
  const std::string trainer = "trainer-" + std::to_string(random() % 2) + " " + std::to_string(1 + random() % 30);
  return {"Prepare_Seed" + std::to_string(seed), victim, trainer + " prepare"};
}

/// Any victim, while an owner has stepped one half of a parameter.
Moment commit_moment(std::uint64_t seed) {
  std::mt19937_64 random(2000 + seed);
  const std::string victim = std::vector<std::string>{"trainer-0", "trainer-1", "server"}[random() % 3];
  return {"Commit_Seed" + std::to_string(seed), victim, "", random() % 2 == 0 ? "server" : "other",
          static_cast<int>(1 + random() % 30)};
}

std::vector<Moment> moments() {
  const std::size_t number = soak_size("CAFTAN_SPLIT_MOMENTS", 0);
  std::vector<Moment> all{{"AServerInForward", "server", "trainer-0 3 forward 2"},
                          {"AServerInBackward", "server", "trainer-0 7 backward 4"},
                          {"AServerInAStep", "server", "trainer-1 5 backward done"},
                          {"ATrainerInItsOwnBackward", "trainer-0", "trainer-0 4 backward 3"},
                          {"ATrainerInTheOthersBackward", "trainer-1", "trainer-0 6 backward 5"},
                          {"ATrainerBetweenTwoSteps", "trainer-1", "trainer-1 8 stepped"}};
  for (std::uint64_t seed = 0; seed < number; ++seed) all.push_back(random_moment(seed));
  for (std::uint64_t seed = 0; seed < (number > 0 ? number : 2); ++seed) {
    all.push_back(prepare_moment(seed));
    all.push_back(commit_moment(seed));
  }
  return all;
}

class KilledSplit : public ::testing::TestWithParam<Moment> {
 protected:
  static void TearDownTestSuite() {
    std::cout << "kills: " << kills_ << ", slowest from kill to exit: " << slowest_.count() << " ms\n";
  }

  /// Waits until the holder is in its commit, and lets it go on once the victim is dead.
  void kill_in_commit(pid_t pid) const {
    const int pipe = ::open((folder_ / "commit").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(pipe, 0);
    ::kill(pid, SIGKILL);
    ::close(pipe);
  }

  Folder folder_;
  inline static int kills_ = 0;
  inline static std::chrono::milliseconds slowest_{0};
};
INSTANTIATE_TEST_SUITE_P(Moments, KilledSplit, ::testing::ValuesIn(moments()),
                         [](const auto& info) { return info.param.name; });

TEST_P(KilledSplit, BI6_TheOthersNameItAndNothingHangs) {
  const Moment& moment = GetParam();
  folder_.write("s.toml",
                "caftan = 1\n[run]\nname = \"splitting\"\n[roles.trainer]\ntype = \"trainer\"\nreplicas = 2\n"
                "[roles.trainer.config]\nhold = " +
                    std::to_string(moment.step) + "\nholder = \"" + moment.holder +
                    "\"\n[roles.trainer.uses]\nserver = \"server\"\nother = \"trainer\"\n"
                    "[roles.server]\ntype = \"server\"\n");
  ASSERT_EQ(::mkfifo((folder_ / "commit").c_str(), 0600), 0);
  Command command(folder_, kSplitting, {"run", "s.toml"});
  for (const char* worker : {"trainer-0", "trainer-1", "server"}) {
    ASSERT_TRUE(command.wait_for_line("  " + std::string(worker))) << command.err();
  }
  const pid_t pid = command.worker(moment.victim);
  ASSERT_GT(pid, 0);
  if (moment.step > 0) {
    ASSERT_NO_FATAL_FAILURE(kill_in_commit(pid));
  } else {
    ASSERT_TRUE(command.wait_for_line(moment.line)) << command.err();
    ::kill(pid, SIGKILL);
  }
  const auto killed = Clock::now();
  EXPECT_EQ(command.wait(), 1);
  slowest_ = std::max(slowest_, std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - killed));
  ++kills_;
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(),
              HasSubstr("error: " + moment.victim + " (pid " + std::to_string(pid) + ") was killed by signal 9"));
  for (const std::string trainer : {"trainer-0", "trainer-1"}) {
    if (trainer == moment.victim) continue;
    const std::size_t end = command.out().find(trainer + " ends: ");
    ASSERT_NE(end, std::string::npos);
    const std::string said = command.out().substr(end, command.out().find('\n', end) - end);
    EXPECT_THAT(said, AllOf(HasSubstr("peer_down"), HasSubstr(moment.victim)));
  }
  const std::string run = command.run_directory();
  EXPECT_THAT(folder_.read(run + "/summary.json"), HasSubstr("\"exit_code\": 1"));
  EXPECT_TRUE(is_whole_csv(folder_.read(run + "/metrics.csv")));
}

}  // namespace
}  // namespace caftan::test::split_kill_test

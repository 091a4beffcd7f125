// CartPole as a user starts it: a run that fails reports so, each env step costs the observer two calls, and a run with
// one command for each worker plays the same episodes as a run in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "command.hpp"
#include "free_port.hpp"
#include "programs.hpp"

namespace caftan::test::cartpole_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::int64_t number(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) return -1;
  std::string digits = match[1];
  std::erase(digits, ',');
  return std::stoll(digits);
}

TEST(CartPole, AnObserverMakesTwoCallsForEachEnvStep) {
  const Folder folder;
  const Finished run = run_to_end(folder, kCaftan, {"run", kConfigs + "/cartpole.test.toml"});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::int64_t episodes = number(run.out, "after ([0-9,]+) episodes");
  const std::int64_t steps = number(run.out, "([0-9,]+) env steps");
  const std::int64_t observers = 2;
  // Calls of the agent: one to start each episode, one for the facts, one for the evaluation.
  const std::int64_t of_agent = observers * episodes + 2;
  ASSERT_GT(steps, 1000);
  const std::string summary = folder.read("runs/latest/summary.json");
  EXPECT_EQ(number(summary, "\"method\": \\{\\s+\"frames\": ([0-9]+)") - of_agent, 2 * steps) << summary;
}

TEST(CartPole, WhatIsNotSolvedInTimeFails) {
  const Folder folder;
  const Finished run =
      run_to_end(folder, kCaftan, {"run", kConfigs + "/cartpole.toml", "roles.agent.config.max_episodes=5"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: agent: goal_missed: "), HasSubstr("after 5 episodes")));
  EXPECT_THAT(run.out, Not(HasSubstr("solved: ")));
  EXPECT_THAT(folder.read("runs/latest/summary.json"), HasSubstr("\"exit_code\": 1"));
}

TEST(CartPole, PM3_ARuleThatForbidsWhatObserversDoEndsTheRunWithItsLine) {
  const Folder folder;
  const Finished run =
      run_to_end(folder, kCaftan, {"run", kConfigs + "/cartpole.test.toml", "permissions.observer.roles=[]"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("not_permitted"), HasSubstr("may not call cartpole.agent."),
                             HasSubstr("[permissions.observer] roles (resolved.toml:")));
  const std::string log = folder.read("runs/latest/log/agent.log");
  EXPECT_EQ(log.find("not permitted: observer-0"), log.rfind("not permitted: observer-0")) << log;
  EXPECT_THAT(log, HasSubstr("not permitted: observer-0 may not call cartpole.agent."));
}

TEST(CartPole, M1_TheSameEpisodesWithoutLearningBringNoReward) {
  const Folder folder;
  const auto reward_with = [&](const std::string& rate) {
    const Finished run = run_to_end(folder, kCaftan,
                                    {"run", kConfigs + "/cartpole.toml", "roles.agent.config.learning_rate=" + rate,
                                     "roles.agent.config.max_episodes=150"});
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, HasSubstr("error: agent: goal_missed: "));
    return number(run.err, "the running reward is ([0-9,]+)");
  };
  const std::int64_t idle = reward_with("1e-9");
  const std::int64_t learned = reward_with("1e-2");
  EXPECT_GT(idle, 5);
  EXPECT_GT(learned, 2 * idle) << "the learning rate makes no difference";
}

TEST(CartPole, OneCommandForEachWorkerPlaysTheEpisodesOfOneProcess) {
  const Folder folder;
  folder.write("secret", "our shared secret\n");
  FreePort port;
  const std::string roles =
      "[roles.agent]\ntype = \"cartpole.agent\"\n[roles.agent.config]\nsteps_per_episode = 500\nsolved_at = 20.0\n"
      "max_episodes = 300\nevaluate = 3\n[roles.agent.uses]\nobservers = \"observer\"\n"
      "[roles.observer]\ntype = \"cartpole.observer\"\nreplicas = 3\n";
  folder.write("one.toml",
               "caftan = 1\n[run]\nname = \"pole\"\nstart_timeout = \"30s\"\nplacement = "
               "\"one_process\"\ndeterministic = true\n" +
                   roles);
  folder.write(
      "hosts.toml",
      "caftan = 1\n[run]\nname = \"pole\"\nstart_timeout = \"30s\"\nplacement = \"hosts\"\ndeterministic = true\n" +
          roles + "[cluster]\nsecret_file = \"secret\"\n[hosts.here]\naddress = \"127.0.0.1:" + port.number() + "\"\n");
  const Finished in_one = run_to_end(folder, kCaftan, {"run", "one.toml"});
  ASSERT_EQ(in_one.code, 0) << in_one.err;
  port.release();
  Command agent(folder, kCaftan, {"run", "hosts.toml", "--role", "agent"});
  Command first(folder, kCaftan, {"run", "hosts.toml", "--role", "observer", "--replica", "0"});
  Command second(folder, kCaftan, {"run", "hosts.toml", "--role", "observer", "--replica", "1"});
  Command third(folder, kCaftan, {"run", "hosts.toml", "--role", "observer", "--replica", "2"});
  EXPECT_EQ(agent.wait(), 0) << agent.err();
  for (Command* observer : {&first, &second, &third}) EXPECT_EQ(observer->wait(), 0) << observer->err();
  const std::size_t at = in_one.out.find("fingerprint sha256:");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(agent.out(), HasSubstr(in_one.out.substr(at, in_one.out.find('\n', at) - at)));
}

TEST(CartPole, U8_AGoalThatCannotBeReachedIsFoundBeforeAnythingStarts) {
  const Folder folder;
  for (const std::string command : {"check", "run"}) {
    const Finished run =
        run_to_end(folder, kCaftan, {command, kConfigs + "/cartpole.toml", "roles.observer.replicas=16"});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err,
                HasSubstr("error: role 'agent': 16 observers share 5000 steps an episode, 312 each: no running "
                          "reward can pass the goal of 475.0; steps_per_episode has to be 7616 at least\n"));
  }
  folder.write("mixed.toml",
               "caftan = 1\n[roles.agent]\ntype = \"cartpole.agent\"\nuses.observers = \"observer\"\n"
               "[roles.observer]\ntype = \"cartpole.observer\"\nreplicas = 2\n"
               "[roles.observer.per_replica.1]\nenvironment = \"CartPole-v0\"\n");
  const Finished mixed = run_to_end(folder, kCaftan, {"run", "mixed.toml"});
  EXPECT_EQ(mixed.code, 2);
  EXPECT_THAT(mixed.err, HasSubstr("error: role 'agent': its observers have environments with different thresholds, "
                                   "CartPole-v1 (475.0) and CartPole-v0 (195.0): set solved_at"));
  const Finished given = run_to_end(folder, kCaftan, {"check", "mixed.toml", "roles.agent.config.solved_at=300"});
  EXPECT_EQ(given.code, 0);
  EXPECT_THAT(given.err, HasSubstr("warning: roles.agent.config.solved_at=300: role 'agent': CartPole-v0 ends an "
                                   "episode after 200 steps: no running reward can pass the goal of 300.0"));
  const Finished endless =
      run_to_end(folder, kCaftan, {"check", kConfigs + "/cartpole.toml", "roles.agent.config.solved_at=1e9"});
  EXPECT_EQ(endless.code, 0);
  EXPECT_THAT(endless.err, HasSubstr("CartPole-v1 ends an episode after 500 steps"));
}

}  // namespace
}  // namespace caftan::test::cartpole_test

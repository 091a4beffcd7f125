#include "agents/agent_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "folder.hpp"

namespace caftan::agents::agent_file_test {
namespace {

using test::Folder;

Agent made_agent(std::int64_t step) {
  Agent agent{.environment = {"CartPole-v1", 2},
              .shape = {.observation = 4, .hidden = 3, .layers = 1, .outputs = 2},
              .step = step,
              .step_name = "frames"};
  agent.weights.assign(weight_count(agent.shape), static_cast<float>(step));
  return agent;
}

std::vector<wire::CheckpointRecord> more() { return {{"more", wire::Bytes(3)}}; }

TEST(AgentFile, IsReadAsItWasWritten) {
  const Folder folder;
  const auto path = write_agent(folder.path() / "checkpoints", made_agent(600), more(), 2);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->filename(), "step-000600");
  const auto read = read_agent(folder.path(), Wanted::newest);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->path, *path);
  EXPECT_EQ(read->agent.environment.name, "CartPole-v1");
  EXPECT_EQ(read->agent.environment.action_repeat, 2);
  EXPECT_EQ(read->agent.shape, made_agent(600).shape);
  EXPECT_EQ(read->agent.weights, made_agent(600).weights);
  EXPECT_EQ(read->file.find("more").value().size(), 3U);
}

TEST(AgentFile, TheNewestStayAndTheBestWithThem) {
  const Folder folder;
  for (const std::int64_t step : {100, 200, 300}) ASSERT_TRUE(write_agent(folder.path(), made_agent(step), {}, 2));
  ASSERT_TRUE(write_best(folder.path(), made_agent(50), {}));
  ASSERT_TRUE(write_best(folder.path(), made_agent(150), {}));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "step-000100"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "step-000200"));
  EXPECT_EQ(read_agent(folder.path(), Wanted::newest)->agent.step, 300);
  EXPECT_EQ(read_agent(folder.path(), Wanted::best)->agent.step, 150);
  EXPECT_EQ(read_agent(folder.path() / "step-000200", Wanted::best)->agent.step, 200);
}

TEST(AgentFile, TheBestGoesOnWithItsTraining) {
  const Folder before;
  const Folder after;
  EXPECT_TRUE(carry_best(before.path(), after.path() / "checkpoints", 200)) << "there is none";
  ASSERT_TRUE(write_best(before.path(), made_agent(150), more()));
  EXPECT_TRUE(carry_best(before.path(), after.path() / "checkpoints", 149));
  EXPECT_FALSE(std::filesystem::exists(after.path() / "checkpoints")) << "the best is of a later step";
  ASSERT_TRUE(carry_best(before.path(), after.path() / "checkpoints", 150));
  const auto carried = read_agent(after.path(), Wanted::best);
  ASSERT_TRUE(carried);
  EXPECT_EQ(carried->agent.weights, made_agent(150).weights);
  EXPECT_EQ(carried->file.find("more").value().size(), 3U);
}

TEST(AgentFile, WhatIsMissingOrDamagedIsNamed) {
  const Folder folder;
  const auto none = read_agent(folder.path(), Wanted::best);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Errc::io_error);
  EXPECT_NE(none.error().text().find(folder.path().string() + ": there is no checkpoint of an agent"),
            std::string::npos);
  EXPECT_EQ(read_agent(folder.path() / "nowhere", Wanted::best).error().code(), Errc::io_error);

  const auto path = write_agent(folder.path(), made_agent(7), {}, 1);
  std::string bytes = folder.read("step-000007");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(*path, std::ios::binary) << bytes;
  const auto damaged = read_agent(folder.path(), Wanted::newest);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code(), Errc::malformed_payload);
  EXPECT_NE(damaged.error().text().find(path->string()), std::string::npos);
}

TEST(AgentFile, RefusesWeightsThatDoNotFitTheirShape) {
  for (int fault = 0; fault < 4; ++fault) {
    const Folder folder;
    Agent agent = made_agent(1);
    if (fault == 0) agent.weights.pop_back();
    if (fault == 1) agent.shape.hidden = std::size_t{1} << 40;
    if (fault == 2) agent.shape.observation = 0;
    if (fault == 3) agent.environment.action_repeat = 0;
    ASSERT_TRUE(write_agent(folder.path(), agent, {}, 1));
    const auto refused = read_agent(folder.path(), Wanted::newest);
    ASSERT_FALSE(refused) << fault;
    EXPECT_EQ(refused.error().code(), Errc::malformed_payload) << fault;
  }
}

}  // namespace
}  // namespace caftan::agents::agent_file_test

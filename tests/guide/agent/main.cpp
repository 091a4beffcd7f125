// An agent learns to cross a meadow from observers that ask it for each action. Its file is agent.toml.
#include <caftan/caftan.hpp>
#include <caftan/rl/environment.hpp>
#include <caftan/rl/random.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meadow.hpp"
#include "values.hpp"

class Agent;

class Observer {  // steps an environment, and asks the agent for each action
 public:
  explicit Observer(caftan::RoleContext& context)
      : seed_(context.seed("meadow")), meadow_(context.environments().make("Meadow").value()) {}
  caftan::Result<std::vector<Step>> play(const caftan::RRef<Agent>& agent, std::uint64_t self, std::uint64_t episode);

 private:
  std::uint64_t seed_;  // of this replica
  std::unique_ptr<caftan::rl::Environment> meadow_;
};

class Agent {  // learns values of actions, and drives the episodes
 public:
  struct Config {
    int episodes = 300;
    double exploration = 0.1;
    double goal = -16;
  };
  static void settings(auto& s, Config& c) {
    s("episodes", c.episodes, "episodes of each observer").at_least(1);
    s("exploration", c.exploration, "probability of a random action").range(0, 1);
    s("goal", c.goal, "a running reward below this at the end = failure");
  }

  Agent(caftan::RoleContext& context, Config config)
      : context_(context), config_(config), observers_(context.uses<Observer>("observers")) {}

  int choose(std::uint64_t observer, int cell) {  // called by observers while run() waits
    return values_.choose(cell, config_.exploration, streams_.at(observer));
  }

  caftan::Result<void> run(std::stop_token stop) {
    double running = 0;
    for (int episode = 1; episode <= config_.episodes; ++episode) {
      if (stop.stop_requested()) return {};
      double reward = 0;
      for (const std::vector<Step>& path : play(static_cast<std::uint64_t>(episode))) reward += values_.learn(path);
      reward /= static_cast<double>(observers_.size());
      running = episode == 1 ? reward : running + 0.05 * (reward - running);
      context_.metric("reward", reward, {.step = episode});
      context_.progress(episode, config_.episodes, "running reward " + std::to_string(running));
    }
    if (running >= config_.goal) return {};
    return caftan::Error(caftan::Errc::goal_missed, "the running reward is " + std::to_string(running));
  }

 private:
  std::vector<std::vector<Step>> play(std::uint64_t episode) {
    streams_.clear();
    for (std::uint64_t i = 0; i < observers_.size(); ++i) {
      streams_.push_back(caftan::rl::make_stream({context_.seed("actions"), episode, i}));
    }
    std::vector<caftan::Future<std::vector<Step>>> paths;
    for (std::uint64_t i = 0; i < observers_.size(); ++i) {
      paths.push_back(observers_[i].rpc_async<&Observer::play>(context_.self<Agent>(), i, episode));
    }
    return caftan::wait_all(std::move(paths));  // calls of `choose` take their turns meanwhile
  }

  caftan::RoleContext& context_;
  Config config_;
  std::vector<caftan::RRef<Observer>> observers_;
  std::vector<caftan::rl::Pcg64> streams_;  // random actions, one stream for each observer
  Values values_;
};

caftan::Result<std::vector<Step>> Observer::play(const caftan::RRef<Agent>& agent, std::uint64_t self,
                                                 std::uint64_t episode) {
  std::vector<Step> path;
  const auto first = meadow_->reset(caftan::rl::derive_seed({seed_, episode}));
  if (!first) return first.error();
  int cell = static_cast<int>(first->front());
  for (bool ended = false; !ended;) {
    const int action = agent.rpc_sync<&Agent::choose>(self, cell);
    const auto step = meadow_->step(action);
    if (!step) return step.error();
    const int next = static_cast<int>(step->observation.front());
    path.push_back({cell, action, step->reward, next, step->terminated});
    cell = next;
    ended = step->ended();
  }
  return path;
}

int main(int argc, char** argv) {
  caftan::Program program("agent");
  program.environment<Meadow>("Meadow", {.max_steps = 60});
  program.role<Observer>("observer").method<&Observer::play>("play");
  program.role<Agent>("agent")
      .uses<Observer>("observers", caftan::at_least(1))
      .method<&Agent::choose>("choose", caftan::brief);
  return program.main(argc, argv);
}

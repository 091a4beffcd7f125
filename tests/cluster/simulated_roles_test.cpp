// Whole programs of one process whose simulations ask a role by futures (SM-12).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include "caftan/caftan.hpp"
#include "caftan/rl/cartpole.hpp"
#include "simulated_run.hpp"

namespace caftan::test::simulated_roles_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct PlantConfig {
  int plants = 4;
  double latency = 0.02;
  static void settings(auto& s, PlantConfig& c) {
    s("plants", c.plants, "that are simulated").at_least(1);
    s("latency", c.latency, "of an action").at_least(0);
  }
};
/// An event, and what the agent answers.
struct Action {
  int push = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& push;
  }
};
struct Moment {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

/// The policy that pushes towards the fall.
class Agent {
 public:
  struct Config {
    int fails_at = 0;  // call; 0 = never
  };
  static void settings(auto& s, Config& c) { s("fails_at", c.fails_at, "call that throws").at_least(0); }
  Agent(RoleContext&, const Config& config) : fails_at_(config.fails_at) {}
  Action act(unsigned, std::array<double, 4> state) {
    if (++calls_ == fails_at_) throw std::runtime_error("no such policy");
    return {state[2] + state[3] > 0 ? 1 : 0};
  }

 private:
  int fails_at_;
  int calls_ = 0;
};

std::atomic<int> steps_of_first_episode = 0;  // of plant 0 in the last run

struct Plant {
  using Events = sim::Events<Moment, Action>;
  const PlantConfig* config;
  RRef<Agent> agent;
  rl::CartPole cart{};
  int push = 0, steps = 0, episodes = 0;

  void start(sim::LpContext& lp) {
    (void)cart.reset(lp.id().value);
    ask(lp);
    lp.schedule(0.02, Moment{});
  }
  void on(const Moment&, sim::LpContext& lp) {
    ++steps;
    if (cart.step(push).value().terminated) {
      if (lp.id() == sim::LpId(0) && episodes == 0) steps_of_first_episode = steps;
      lp.record("episode", ++episodes);
      (void)cart.reset(lp.random().below(1 << 30));
    }
    lp.schedule(0.02, Moment{});
    ask(lp);
  }
  void ask(sim::LpContext& lp) {
    lp.schedule(config->latency, agent.rpc_async<&Agent::act>(lp.id().value, cart.state()), lp.id(), {.priority = 1});
  }
  void on(const Action& action, sim::LpContext&) { push = action.push; }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& cart& push& steps& episodes;
  }
};
struct Plants {  // no lookahead: plants never send to each other
  using Config = PlantConfig;
  static void build(sim::Builder& builder, const Config& config, RoleContext& role) {
    builder.add<Plant>(static_cast<std::uint64_t>(config.plants),
                       [&config, agent = role.uses<Agent>("agent").front()](sim::LpId) {
                         return Plant{&config, agent};
                       });
  }
};

class SimulatedRoles : public SimulatedRun {
 protected:
  SimulatedRoles() {
    program_.role<Agent>("agent").method<&Agent::act>("act", brief);
    sim::add<Plants>(program_, "plant").uses<Agent>("agent");
  }
  std::string plants(int partitions, const std::string& latency, const std::string& agent = "fails_at = 0") {
    const std::string file =
        "caftan = 1\n[run]\nplacement = \"one_process\"\nseed = 3\n"
        "[roles.clock]\ntype = \"plant.clock\"\nconfig = { end_time = 7.0 }\nuses = { partitions = \"plant\" }\n"
        "[roles.plant]\ntype = \"plant.partition\"\nreplicas = " +
        std::to_string(partitions) + "\nconfig = { latency = " + latency +
        " }\nuses = { agent = \"agent\" }\n[roles.agent]\ntype = \"agent\"\nconfig = { " + agent + " }\n";
    return result_of(file);
  }
};

TEST_F(SimulatedRoles, SM12_PlantsThatAskARoleHaveOneFingerprintForAnyPartitions) {
  const std::string one = plants(1, "0.02");
  EXPECT_THAT(one, HasSubstr("sha256:"));
  EXPECT_EQ(steps_of_first_episode, 247);
  EXPECT_EQ(plants(3, "0.02"), one);
  EXPECT_EQ(steps_of_first_episode, 247);
}

TEST_F(SimulatedRoles, SM12_WithoutLatencyThePlantIsGymnasiums) {
  EXPECT_THAT(plants(2, "0.0"), HasSubstr("sha256:"));
  EXPECT_EQ(steps_of_first_episode, 334);
}

TEST_F(SimulatedRoles, SM12_ACallThatFailsEndsTheRunAndNamesProcessAndCall) {
  EXPECT_THAT(plants(1, "0.02", "fails_at = 50"), AllOf(HasSubstr("LP "), HasSubstr("Plant"), HasSubstr("Action"),
                                                        HasSubstr("the future of this event has failed"),
                                                        HasSubstr("agent.act"), HasSubstr("no such policy")));
}

}  // namespace
}  // namespace caftan::test::simulated_roles_test

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "caftan/rl/checked_environment.hpp"
#include "caftan/rl/environments.hpp"
#include "caftan/rl/trajectory.hpp"

namespace caftan::rl::conformance_test {
namespace {

class Shipped : public ::testing::TestWithParam<std::string> {};

TEST_P(Shipped, EN1_EN2_EN3_EN4_EN5_EN6_EN7_KeepsTheRules) {
  const auto checked = check_environment([] { return Environments().make(GetParam()); });
  EXPECT_TRUE(checked) << checked.error().message();
}

TEST_P(Shipped, EN9_AVectorHasTheBitsOfEnvironmentsAlone) {
  constexpr std::size_t kSize = 3;
  const Environments known;
  const auto vector = known.make_vector(GetParam(), kSize).value();
  const EnvironmentSpec& spec = vector->spec();
  std::vector<std::unique_ptr<Environment>> alone;
  std::vector<std::vector<float>> seen;
  const auto first = vector->reset(7).value();
  for (std::size_t i = 0; i < kSize; ++i) {
    alone.push_back(known.make(GetParam()).value());
    EXPECT_EQ(alone[i]->spec(), spec);
    const auto observation = alone[i]->reset(7 + i).value();
    seen.emplace_back(observation.begin(), observation.end());
  }
  ASSERT_EQ(first.size(), kSize * spec.observation_size);
  const auto row = [&](std::span<const float> all, std::size_t i) {
    const auto part = all.subspan(i * spec.observation_size, spec.observation_size);
    return std::vector<float>(part.begin(), part.end());
  };
  Pcg64 random(1);
  int ends = 0;
  for (int step = 0; step < 1100; ++step) {
    std::vector<std::int32_t> actions;
    std::vector<float> forces;
    for (std::size_t i = 0; i < kSize; ++i) {
      actions.push_back(static_cast<std::int32_t>(random.uniform() * spec.actions));
      for (std::size_t j = 0; j < spec.action_size(); ++j) forces.push_back(static_cast<float>(random.uniform(-3, 3)));
    }
    const auto taken = spec.is_continuous() ? vector->step_continuous(forces) : vector->step(actions);
    ASSERT_TRUE(taken) << taken.error().message();
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto force = std::span<const float>(forces).subspan(i * spec.action_size(), spec.action_size());
      const auto single = spec.is_continuous() ? alone[i]->step_continuous(force) : alone[i]->step(actions[i]);
      ASSERT_TRUE(single) << single.error().message();
      EXPECT_EQ(taken->rewards[i], single->reward);
      EXPECT_EQ(taken->terminated[i] != 0, single->terminated);
      EXPECT_EQ(taken->truncated[i] != 0, single->truncated);
      seen[i].assign(single->observation.begin(), single->observation.end());
      if (single->ended()) {
        ++ends;
        EXPECT_EQ(row(taken->last_observations, i), seen[i]) << "EN-10";
        const auto next = alone[i]->reset().value();
        seen[i].assign(next.begin(), next.end());
      }
      EXPECT_EQ(row(taken->observations, i), seen[i]) << step;
    }
  }
  EXPECT_GE(ends, static_cast<int>(kSize));
}

/// All but those of MuJoCo in a build without it; mujoco_test.cpp says why these are skipped.
std::vector<std::string> ids_of_this_build() {
  std::vector<std::string> ids = Environments().ids();
  std::erase_if(ids,
                [](const std::string& id) { return id.starts_with("Mujoco") && !Environments().make(id).has_value(); });
  return ids;
}

INSTANTIATE_TEST_SUITE_P(All, Shipped, ::testing::ValuesIn(ids_of_this_build()), [](const auto& tested) {
  std::string name = tested.param;
  std::erase(name, '-');
  return name;
});

/// Breaks one rule, as the test says.
class Faulty final : public Environment {
 public:
  using Change = std::function<void(Faulty&)>;
  explicit Faulty(Change change = [](Faulty&) {}) : change_(std::move(change)) {}

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t) override { return reset(); }
  FirstObservation reset() override {
    step_ = 0;
    return std::span<const float>(observation);
  }
  Result<Transition> step(int action) override {
    if (checks) {
      if (step_ == 3) return step_after_end(spec_);
      if (auto fits = check_action(spec_, action); !fits) return fits.error();
    }
    ++step_;
    change_(*this);
    return Transition{.observation = observation, .reward = reward, .terminated = step_ == 3};
  }

  EnvironmentSpec spec_{.id = "Faulty", .observation_size = 2, .actions = 2};
  std::vector<float> observation{1, 2};
  double reward = 1;
  bool checks = true;

 private:
  Change change_;
  int step_ = 3;
};

/// The error of the second step, in which the environment does something wrong.
Error fault(const Faulty::Change& change) {
  int calls = 0;
  CheckedEnvironment environment(std::make_unique<Faulty>([&, change](Faulty& faulty) {
                                   if (++calls == 2) change(faulty);
                                 }),
                                 "Mine");
  EXPECT_TRUE(environment.reset(0));
  EXPECT_TRUE(environment.step(0));
  const auto second = environment.step(0);
  EXPECT_FALSE(second);
  EXPECT_FALSE(environment.step(0)) << "a step after a fault";
  return second ? Error() : second.error();
}

TEST(Checked, EN8_NamesTheEnvironmentTheStepAndTheField) {
  const Error nan = fault([](Faulty& faulty) { faulty.observation[1] = std::numeric_limits<float>::quiet_NaN(); });
  EXPECT_EQ(nan.code(), Errc::user_error);
  EXPECT_EQ(nan.kind(), "environment.not_finite");
  EXPECT_EQ(nan.text(), "environment 'Mine', step 2: value 1 of the observation is nan");
  const Error reward = fault([](Faulty& faulty) { faulty.reward = std::numeric_limits<double>::infinity(); });
  EXPECT_EQ(reward.kind(), "environment.not_finite");
  EXPECT_EQ(reward.text(), "environment 'Mine', step 2: the reward is inf");
  const Error shape = fault([](Faulty& faulty) { faulty.observation.push_back(0); });
  EXPECT_EQ(shape.kind(), "environment.shape");
  EXPECT_EQ(shape.text(), "environment 'Mine', step 2: the observation has 3 values, its spec says 2");
  const Error spec = fault([](Faulty& faulty) { faulty.spec_.actions = 3; });
  EXPECT_EQ(spec.kind(), "environment.spec");
  EXPECT_EQ(spec.text(), "environment 'Mine', step 2: its spec has changed: actions was 2 and is 3");
  const Error thrown = fault([](Faulty&) { throw std::runtime_error("no more fuel"); });
  EXPECT_EQ(thrown.kind(), "environment.threw");
  EXPECT_EQ(thrown.text(), "environment 'Mine', step 2: threw: no more fuel");
  const Error number = fault([](Faulty&) { throw 7; });
  EXPECT_EQ(number.text(), "environment 'Mine', step 2: threw something that is no std::exception");
  const Error own = fault([](Faulty&) { throw RpcException(user_error("fuel.none", "empty")); });
  EXPECT_EQ(own.kind(), "fuel.none");
  EXPECT_EQ(own.text(), "environment 'Mine', step 2: empty");
}

TEST(Checked, EN8_GoesOnAfterAReset) {
  CheckedEnvironment environment(std::make_unique<Faulty>([first = true](Faulty&) mutable {
    if (std::exchange(first, false)) throw std::runtime_error("once");
  }));
  ASSERT_TRUE(environment.reset(0));
  EXPECT_FALSE(environment.step(0));
  ASSERT_TRUE(environment.reset());
  EXPECT_TRUE(environment.step(0));
}

TEST(Checked, EN5_RefusesActionsBeforeTheEnvironmentSeesThem) {
  CheckedEnvironment environment(std::make_unique<Faulty>([](Faulty&) { throw std::runtime_error("reached"); }));
  ASSERT_TRUE(environment.reset(0));
  EXPECT_EQ(environment.step(2).error().text(), "Faulty: action 2 is not in 0 .. 1");
  EXPECT_EQ(environment.step_continuous(std::array{1.0F}).error().text(),
            "Faulty: actions are 0 .. 1, not floats: call step");
  const auto pendulum = make_environment("Pendulum-v1").value();
  ASSERT_TRUE(pendulum->reset(0));
  EXPECT_NE(pendulum->step(0).error().text().find("call step_continuous"), std::string::npos);
  const auto nan = pendulum->step_continuous(std::array{std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(nan.error().text(), "Pendulum-v1: part 0 of the action is not finite");
  EXPECT_EQ(pendulum->step_continuous({}).error().text(), "Pendulum-v1: an action has 1 floats, not 0");
}

std::string rule_broken(const std::function<void(Faulty&)>& prepare, const Faulty::Change& change) {
  const auto checked = check_environment([&]() -> Result<std::unique_ptr<Environment>> {
    auto made = std::make_unique<Faulty>(change);
    prepare(*made);
    return std::unique_ptr<Environment>(std::move(made));
  });
  return checked ? "" : checked.error().text().substr(0, 4);
}

TEST(CheckEnvironment, FindsTheRuleThatIsBroken) {
  const auto nothing = [](Faulty&) {};
  EXPECT_EQ(rule_broken(nothing, nothing), "");
  EXPECT_EQ(rule_broken([](Faulty& faulty) { faulty.checks = false; }, nothing), "EN-4");
  int made = 0;
  EXPECT_EQ(rule_broken([&](Faulty& faulty) { faulty.spec_.actions += made++; }, nothing), "EN-1");
  double reward = 0;
  EXPECT_EQ(rule_broken(nothing, [&](Faulty& faulty) { faulty.reward = ++reward; }), "EN-3");
  EXPECT_EQ(rule_broken([](Faulty& faulty) { faulty.spec_.max_steps = 2; }, nothing), "EN-6");
}

TEST(MakeChecked, EN1_RefusesASpecThatCannotBe) {
  const auto text = [](const std::function<void(EnvironmentSpec&)>& change) {
    const auto made = make_checked(
        [&]() -> Result<std::unique_ptr<Environment>> {
          auto environment = std::make_unique<Faulty>();
          change(environment->spec_);
          return std::unique_ptr<Environment>(std::move(environment));
        },
        "Mine");
    return made ? "" : made.error().text();
  };
  EXPECT_EQ(text([](EnvironmentSpec&) {}), "");
  EXPECT_EQ(text([](EnvironmentSpec& spec) { spec.observation_size = 0; }),
            "environment 'Mine', its spec: observation_size is 0");
  EXPECT_NE(text([](EnvironmentSpec& spec) { spec.actions = 0; }), "");
  EXPECT_NE(text([](EnvironmentSpec& spec) { spec.actions = -1; }), "");
  EXPECT_NE(text([](EnvironmentSpec& spec) { spec.max_steps = -1; }), "");
  EXPECT_NE(text([](EnvironmentSpec& spec) { spec.action_low = {1}; }), "");
  EXPECT_NE(text([](EnvironmentSpec& spec) { spec.action_low = spec.action_high = {1}; }), "");
  EXPECT_NE(text([](EnvironmentSpec& spec) { spec.actions = 0, spec.action_low = {1}, spec.action_high = {0}; }), "");
  const auto threw =
      make_checked([]() -> Result<std::unique_ptr<Environment>> { throw std::runtime_error("no"); }, "X");
  EXPECT_EQ(threw.error().text(), "environment 'X', when it was made: threw: no");
  const auto none = make_checked([] { return Result<std::unique_ptr<Environment>>(nullptr); }, "X");
  EXPECT_EQ(none.error().kind(), "environment.spec");
}

TEST(Environments, EN11_NamesTheNearestAndAll) {
  const Environments known;
  const Error error = known.make("CartPol-v1").error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_NE(error.text().find("did you mean 'CartPole-v1'?"), std::string::npos) << error.text();
  EXPECT_NE(error.text().find("MujocoReacher, Pendulum-v1"), std::string::npos) << error.text();
  EXPECT_EQ(known.make_vector("CartPole", 2).error().code(), Errc::bad_arguments);
  EXPECT_FALSE(known.check("gymnasium:"));
  EXPECT_TRUE(known.check("gymnasium:LunarLander-v3"));
  EXPECT_FALSE(known.make_vector("CartPole-v1", 0));
}

TEST(Environments, EN11_HasWhatAProgramAdds) {
  Environments known;
  ASSERT_TRUE(known.add<Faulty>("Mine-v0", {.max_steps = 2}));
  const auto environment = known.make("Mine-v0").value();
  EXPECT_EQ(environment->spec().id, "Mine-v0");
  EXPECT_EQ(environment->spec().max_steps, 2);
  ASSERT_TRUE(environment->reset(0));
  EXPECT_FALSE(environment->step(0)->truncated);
  EXPECT_TRUE(environment->step(0)->truncated);
  EXPECT_EQ(known.make_vector("Mine-v0", 2).value()->size(), 2U);
  EXPECT_EQ(known.add<Faulty>("Mine-v0").error().text(), "there is an environment 'Mine-v0' already");
  EXPECT_FALSE(known.add<Faulty>("CartPole-v1"));
  EXPECT_FALSE(known.add<Faulty>("gymnasium:Mine"));
  EXPECT_FALSE(known.add<Faulty>(""));
  EXPECT_FALSE(known.add<Faulty>("Other", {.max_steps = -1}));
  EXPECT_FALSE(Environments().check("Mine-v0")) << "one program's environments are no other's";
}

TEST(VectorEnvironment, EN10_RefusesActionsThatDoNotFitAndChangesNothing) {
  const Environments known;
  for (const char* id : {"CartPole-v1", "Acrobot-v1"}) {
    const auto vector = known.make_vector(id, 2).value();
    EXPECT_EQ(vector->step(std::array{0, 0}).error().code(), Errc::bad_arguments) << "before the first reset";
    const auto first = vector->reset(3).value();
    const std::vector<float> before(first.begin(), first.end());
    EXPECT_NE(vector->step(std::array{0}).error().text().find("takes 2 values as actions, not 1"), std::string::npos);
    EXPECT_NE(vector->step(std::array{0, 3}).error().text().find("environment 1: "), std::string::npos);
    EXPECT_NE(vector->step(std::array{-1, 0}).error().text().find("environment 0: "), std::string::npos);
    EXPECT_EQ(vector->step_continuous(std::array{0.0F, 0.0F}).error().code(), Errc::bad_arguments);
    EXPECT_EQ(before, std::vector<float>(first.begin(), first.end()));
    EXPECT_TRUE(vector->step(std::array{0, 1}));
  }
  const auto pendulums = known.make_vector("Pendulum-v1", 2).value();
  ASSERT_TRUE(pendulums->reset(3));
  EXPECT_FALSE(pendulums->step(std::array{0, 0}));
  EXPECT_FALSE(pendulums->step_continuous(std::array{0.0F}));
  EXPECT_TRUE(pendulums->step_continuous(std::array{0.0F, 9.0F}));
}

TEST(VectorEnvironment, EN8_NamesTheEnvironmentThatFailedAndAsksForAReset) {
  Environments known;
  int made = 0;
  ASSERT_TRUE(known.add("Second", [&]() -> Result<std::unique_ptr<Environment>> {
    const bool fails = made++ == 1;
    return std::unique_ptr<Environment>(std::make_unique<Faulty>([fails](Faulty&) {
      if (fails) throw std::runtime_error("no more fuel");
    }));
  }));
  const auto vector = known.make_vector("Second", 2).value();
  ASSERT_TRUE(vector->reset(0));
  const Error error = vector->step(std::array{0, 0}).error();
  EXPECT_EQ(error.text(), "environment 1: environment 'Second', step 1: threw: no more fuel");
  EXPECT_EQ(error.kind(), "environment.threw");
  EXPECT_EQ(vector->step(std::array{0, 0}).error().text(), "Second: a step after the episode's end; reset first");
  EXPECT_TRUE(vector->reset(0));
}

TEST(Trajectory, EN12_KeepsTerminatedAndTruncatedApartWithTheLastObservation) {
  Trajectory path;
  path.append(std::array{1.0F}, std::array{0.5F, -0.5F});
  path.append_outcome({.observation = std::array{2.0F}, .reward = 3, .truncated = true});
  EXPECT_EQ(path.steps(), 1U);
  EXPECT_EQ(path.continuous_actions, (std::vector<float>{0.5F, -0.5F}));
  EXPECT_TRUE(path.actions.empty());
  EXPECT_EQ(path.last_observation, (std::vector<float>{2}));
  EXPECT_TRUE(path.truncated);
  EXPECT_FALSE(path.terminated);
  EXPECT_TRUE(path.goes_on());
  path.append_outcome({.observation = std::array{4.0F}, .reward = 3, .terminated = true});
  EXPECT_FALSE(path.goes_on());
  EXPECT_FALSE(path.truncated);
  path.clear();
  EXPECT_TRUE(path.continuous_actions.empty());
  EXPECT_TRUE(path.last_observation.empty());
  EXPECT_FALSE(path.terminated);
}

}  // namespace
}  // namespace caftan::rl::conformance_test

// When contexts of a shared module read and step: random histories against a reference, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "caftan/nn/internal/shared_schedule.hpp"
#include "histories.hpp"
#include "shared_model.hpp"

namespace caftan::nn::shared_model_test {
namespace {

using namespace shared_action;

constexpr std::uint64_t kSeed = 20261130;
constexpr std::uint64_t kHistories = 12'000;

/// Returns the trace of the shortest history found that is still bad.
std::string report(const model::History& bad) {
  const model::History shortest = test::without_needless_steps<model::History>(
      bad, [](const model::History& history) { return !model::run_history(history).empty(); });
  std::vector<std::string> trace;
  static_cast<void>(model::run_history(shortest, &trace));
  std::string text = std::string(to_string(bad.options.mode)) + ", " + std::to_string(bad.trainers) + " trainers:\n";
  for (const std::string& line : trace) text += "  " + line + "\n";
  return text;
}

TEST(SharedModel, CM1_CM2_CM3_CM5_CM6_CM7_CM8_CM9_CM11_CM12_CM13_CM15_HoldInTwelveThousandHistories) {
  for (std::uint64_t index = 0; index < kHistories; ++index) {
    const model::History history = model::make_history(kSeed, index);
    const std::string why = model::run_history(history);
    ASSERT_EQ(why, "") << "history " << index << "\n" << report(history);
  }
}

TEST(SharedModel, HistoriesReachEveryEndOfAStep) {
  model::Reached all;
  for (std::uint64_t index = 0; index < 1200; ++index) {
    const model::Reached reached = model::reached_by(model::make_history(kSeed, index));
    all.applied += reached.applied;
    all.stale += reached.stale;
    all.closed += reached.closed;
    all.conflicts += reached.conflicts;
    all.late += reached.late;
    all.lost += reached.lost;
  }
  EXPECT_GT(all.applied, 1000U);
  for (const std::uint64_t count : {all.stale, all.closed, all.conflicts, all.late, all.lost}) EXPECT_GT(count, 5U);
}

// ---- what is refused

ContextId context(std::uint64_t number, std::uint32_t worker = 0) { return {WorkerId{worker}, Incarnation{1}, number}; }

SharedSchedule schedule(const ConsistencyOptions& options, std::uint32_t trainers = 2) {
  return SharedSchedule::make(options, trainers).value();
}

/// Returns the only action, which has to be of that type.
template <class Action>
Action only(const SharedActions& actions) {
  if (actions.size() != 1 || !std::holds_alternative<Action>(actions[0])) {
    ADD_FAILURE() << actions.size() << " actions";
    return Action{};
  }
  return std::get<Action>(actions[0]);
}

/// Returns the last action, which has to be of that type.
template <class Action>
Action last(const SharedActions& actions) {
  return only<Action>(actions.empty() ? actions : SharedActions{actions.back()});
}

TEST(SharedSchedule, RefusesTrainersThatItDoesNotHaveOrThatAreGone) {
  SharedSchedule shared = schedule({});
  EXPECT_EQ(only<RefuseCalls>(shared.on_call(context(1), {2})).why.code(), Errc::bad_arguments);
  EXPECT_TRUE(shared.on_gone({1}).empty());
  EXPECT_TRUE(shared.on_gone({1}).empty());
  EXPECT_EQ(only<RefuseCalls>(shared.on_call(context(1), {1})).why.code(), Errc::peer_down);
  EXPECT_EQ(shared.contexts(), 0U);
}

TEST(SharedSchedule, CM4_AContextMakesOneStepAfterItsCalls) {
  SharedSchedule shared = schedule({});
  EXPECT_EQ(only<RefuseStep>(shared.on_step(context(1), 0)).why.code(), Errc::bad_arguments) << "nothing was read";
  EXPECT_EQ(shared.on_call(context(1), {0}).size(), 2U);
  EXPECT_EQ(only<RefuseCalls>(shared.on_call(context(1), {1})).why.code(), Errc::bad_arguments) << "of another trainer";
  EXPECT_EQ(only<RefuseStep>(shared.on_step(context(1), 0)).why.code(), Errc::bad_arguments) << "a call still runs";
  EXPECT_TRUE(shared.on_return(context(1)).empty());
  EXPECT_EQ(last<Apply>(shared.on_step(context(1), 17)).step.contributions[0].batch, 17U);
  EXPECT_EQ(only<RefuseStep>(shared.on_step(context(1), 0)).why.code(), Errc::bad_arguments) << "it steps already";
  EXPECT_EQ(only<AnswerStep>(shared.on_applied({})).step, ModelVersion{1});
  EXPECT_EQ(only<RefuseCalls>(shared.on_call(context(1), {0})).why.code(), Errc::bad_arguments) << "it has stepped";
  EXPECT_TRUE(shared.on_end(context(1)).empty());
  EXPECT_EQ(shared.contexts(), 0U);
  EXPECT_EQ(shared.version(), ModelVersion{1});
}

TEST(SharedSchedule, CM1_AStepThatFailsChangesNoVersion) {
  SharedSchedule shared = schedule({});
  static_cast<void>(shared.on_call(context(1), {0}));
  static_cast<void>(shared.on_return(context(1)));
  static_cast<void>(shared.on_step(context(1), 0));
  const RefuseStep refusal = only<RefuseStep>(shared.on_applied(Error(Errc::limit_exceeded, "no memory")));
  EXPECT_EQ(refusal.why.code(), Errc::limit_exceeded);
  EXPECT_EQ(shared.version(), ModelVersion{0});
}

TEST(SharedSchedule, CM5_AGradientThatHasArrivedCountsWithoutItsTrainer) {
  SharedSchedule shared = schedule({.mode = ConsistencyMode::sync});
  for (const std::uint32_t trainer : {0U, 1U}) {
    static_cast<void>(shared.on_call(context(1, trainer), {trainer}));
    static_cast<void>(shared.on_return(context(1, trainer)));
  }
  EXPECT_EQ(only<Unpin>(shared.on_step(context(1, 1), 5)).version, ModelVersion{0}) << "trainer 0 is missing";
  EXPECT_TRUE(shared.on_gone({1}).empty());
  const Apply apply = last<Apply>(shared.on_step(context(1, 0), 4));
  ASSERT_EQ(apply.step.contributions.size(), 2U);
  EXPECT_EQ(apply.step.contributions[0].trainer, TrainerNumber{0});
  EXPECT_EQ(apply.step.contributions[1].trainer, TrainerNumber{1});
}

TEST(SharedSchedule, CM8_TheLeaseGoesRoundInTheOrderOfArrival) {
  SharedSchedule shared = schedule({.mode = ConsistencyMode::locked}, 3);
  EXPECT_EQ(only<shared_action::Run>(shared.on_call(context(1, 0), {0})).version, ModelVersion{0});
  EXPECT_TRUE(shared.on_call(context(1, 2), {2}).empty());
  EXPECT_TRUE(shared.on_call(context(1, 1), {1}).empty());
  EXPECT_TRUE(shared.on_call(context(1, 1), {1}).empty());
  EXPECT_TRUE(shared.on_gone({0}).empty()) << "its call still runs";
  EXPECT_EQ(only<shared_action::Run>(shared.on_return(context(1, 0))).context, context(1, 2));
  static_cast<void>(shared.on_return(context(1, 2)));
  const shared_action::Run run = only<shared_action::Run>(shared.on_end(context(1, 2)));
  EXPECT_EQ(run.context, context(1, 1));
  EXPECT_EQ(run.calls, 2U);
}

TEST(SharedSchedule, CM9_OnlyTheOldestWaitsWhereSeveralModulesAreLocked) {
  SharedSchedule shared = schedule({.mode = ConsistencyMode::locked, .lease = LeaseOrder::oldest_waits}, 3);
  static_cast<void>(shared.on_call(context(5, 1), {1}));
  EXPECT_EQ(only<RefuseCalls>(shared.on_call(context(6, 0), {0})).why.code(), Errc::lease_conflict);
  EXPECT_TRUE(shared.on_call(context(3, 0), {0}).empty());
  EXPECT_EQ(only<RefuseCalls>(shared.on_call(context(4, 2), {2})).why.code(), Errc::lease_conflict)
      << "older than the holder, younger than one that waits";
}

TEST(SharedSchedule, CM13_AQuorumWaitsForTheOthersOnce) {
  SharedSchedule shared =
      schedule({.mode = ConsistencyMode::sync, .quorum = 2, .straggler_timeout = std::chrono::seconds(1)}, 3);
  for (const std::uint32_t trainer : {0U, 1U, 2U}) {
    static_cast<void>(shared.on_call(context(1, trainer), {trainer}));
    static_cast<void>(shared.on_return(context(1, trainer)));
  }
  static_cast<void>(only<Unpin>(shared.on_step(context(1, 2), 0)));
  const StartTimer start = last<StartTimer>(shared.on_step(context(1, 0), 0));
  EXPECT_TRUE(shared.on_straggler_timeout(start.timer + 1).empty());
  EXPECT_EQ(only<Apply>(shared.on_straggler_timeout(start.timer)).step.contributions.size(), 2U);
  const SharedActions late = shared.on_step(context(1, 1), 0);
  ASSERT_FALSE(late.empty());
  EXPECT_EQ(std::get<RefuseStep>(late[0]).why.code(), Errc::round_closed) << "CM-14";
}

TEST(SharedSchedule, CM6_AnEvaluationWaitsForTheStepThatIsBeingApplied) {
  SharedSchedule shared = schedule({.mode = ConsistencyMode::locked});
  static_cast<void>(shared.on_call(context(1), {0}));
  EXPECT_EQ(shared.on_evaluate().size(), 2U) << "needs no lease";
  static_cast<void>(shared.on_return(context(1)));
  static_cast<void>(shared.on_step(context(1), 0));
  EXPECT_TRUE(shared.on_evaluate().empty());
  const SharedActions actions = shared.on_applied({});
  EXPECT_EQ(std::get<RunEvaluations>(actions.back()).version, ModelVersion{1});
  EXPECT_EQ(only<Unpin>(shared.on_evaluated({1})).version, ModelVersion{1});
}

}  // namespace
}  // namespace caftan::nn::shared_model_test

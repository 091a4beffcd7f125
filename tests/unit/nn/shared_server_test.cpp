// What the actor of a shared module decides, with scripted jobs: who gets a copy, whose gradient is delivered, and what
// is left when contexts and trainers end in between.
#include "caftan/nn/internal/shared_server.hpp"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace caftan::nn::shared_server_test {
namespace {

using ::testing::HasSubstr;

/// Keeps the jobs; the test ends each of them.
class Jobs final : public SharedModuleJobs {
 public:
  struct Copy {
    Reader reader;
    std::shared_ptr<SharedCopy> copy;
  };
  void copy(const Reader& reader, std::shared_ptr<SharedCopy> copy) override {
    copies.push_back({reader, std::move(copy)});
  }
  void check(const ContextId& context, std::vector<at::Tensor> /*gradients*/,
             const std::optional<StepRates>& rates) override {
    checks.push_back(context);
    checked_rates.push_back(rates);
  }
  void apply(const StepRecord& step, std::vector<Delivered> delivered) override {
    steps.push_back(step);
    gradients.push_back(std::move(delivered));
  }
  void close(const Reader& reader, const SharedCopy& copy) override {
    copy.door->close([this, reader] { emptied.push_back(reader); });
  }
  void start_timer(std::uint64_t timer) override { timers.push_back(timer); }
  void wake_at(base::TimePoint at) override { wakes.push_back(at); }

  std::vector<Copy> copies;
  std::vector<ContextId> checks;
  std::vector<std::optional<StepRates>> checked_rates;
  std::vector<StepRecord> steps;
  std::vector<std::vector<Delivered>> gradients;
  std::vector<Reader> emptied;
  std::vector<std::uint64_t> timers;
  std::vector<base::TimePoint> wakes;
};

/// A call whose caller the test loses.
class Call final : public rpc::BeginGate {
 public:
  bool may_hold_back() const noexcept override { return false; }
  bool hold_back(const void*, const std::function<base::Task()>&) override { return false; }
  void begins(std::string_view, base::TimePoint) noexcept override {}
  bool is_caller_gone() const noexcept override { return is_lost; }
  base::TimePoint arrived() const noexcept override { return {}; }

  bool is_lost = false;
};

class SharedServerTest : public ::testing::Test {
 protected:
  void share(const ConsistencyOptions& consistency, std::uint32_t trainers = 2) {
    server_.emplace(
        SharedServer::make({.consistency = consistency, .trainers = trainers}, module_, readers_, jobs_).value());
  }
  std::shared_ptr<SharedCopy> new_copy() {
    auto copy = std::make_shared<SharedCopy>();
    copy->door = std::make_shared<ReadingDoor>(readers_);
    copy->tensors.trained = {at::ones({2}).requires_grad_()};
    return copy;
  }
  static ContextId context(std::uint32_t trainer, std::uint64_t number = 1) {
    return {WorkerId{trainer}, Incarnation{1}, number};
  }
  template <class Event>
  void happens(Event event) {
    SharedEvent any = std::move(event);
    server_->handle(any);
  }
  Future<Reading> open(const ContextId& context) {
    Promise<Reading> promise;
    Future<Reading> reading = promise.future();
    happens(shared_event::Open{context, {context.worker.value}, std::move(promise)});
    return reading;
  }
  /// Ends the oldest job that copies.
  std::shared_ptr<SharedCopy> copied() {
    Jobs::Copy job = std::move(jobs_.copies.front());
    jobs_.copies.erase(jobs_.copies.begin());
    const std::shared_ptr<SharedCopy> copy = job.copy ? job.copy : new_copy();
    happens(shared_event::Copied{job.reader, copy});
    return copy;
  }
  Future<StepResult> step(const ContextId& context, const std::shared_ptr<SharedCopy>& copy,
                          const std::optional<StepRates>& rates = std::nullopt,
                          const std::weak_ptr<rpc::BeginGate>& call = {}) {
    autograd::GradientBook book;
    if (copy) {
      const at::NoGradGuard no_grad;
      book.add(copy->tensors.trained[0], at::ones({2}));
    }
    Promise<StepResult> promise;
    Future<StepResult> result = promise.future();
    happens(shared_event::Step{context, {context.worker.value}, 5, std::move(book), std::move(promise), rates, call});
    return result;
  }
  void checked(Result<void> outcome = {}) {
    const ContextId context = jobs_.checks.front();
    jobs_.checks.erase(jobs_.checks.begin());
    happens(shared_event::Checked{context, std::move(outcome)});
  }
  void all_emptied() {
    for (const Reader& reader : std::exchange(jobs_.emptied, {})) happens(shared_event::Emptied{reader});
  }

  const std::shared_ptr<ReadersCount> readers_ = std::make_shared<ReadersCount>(0);
  Jobs jobs_;
  const std::shared_ptr<SharedCopy> module_ = new_copy();
  std::optional<SharedServer> server_;
};

TEST_F(SharedServerTest, CM19_AStepBeginsWhenNoCopyIsBeingMade) {
  share({.mode = ConsistencyMode::versioned});
  Future<Reading> first = open(context(0));
  const auto copy = copied();
  EXPECT_TRUE(first.ready());
  Future<Reading> second = open(context(1));
  Future<StepResult> result = step(context(0), copy);
  checked();
  EXPECT_TRUE(jobs_.steps.empty()) << "a copy would be torn";
  copied();
  ASSERT_EQ(jobs_.steps.size(), 1U);
  EXPECT_EQ(second.get().version.value, 0U);
  happens(shared_event::Applied{});
  EXPECT_EQ(result.get().version.value, 1U);
}

TEST_F(SharedServerTest, CM6_CopiesAreUsedAgain) {
  share({.mode = ConsistencyMode::versioned});
  for (std::uint64_t number = 1; number < 4; ++number) {
    open(context(0, number)).forget();
    EXPECT_EQ(jobs_.copies.front().copy == nullptr, number == 1);
    const auto copy = copied();
    step(context(0, number), copy).forget();
    checked();
    happens(shared_event::Applied{});
    happens(shared_event::Over{context(0, number)});
  }
  EXPECT_EQ(server_->free_copies(), 1U);
  EXPECT_EQ(server_->readings(), 0U);
  EXPECT_EQ(readers_->load(), 0U);
}

TEST_F(SharedServerTest, CM6_MoreCopiesThanTrainersAndOneAreDroppedWithTheirReaders) {
  share({.mode = ConsistencyMode::versioned}, 2);
  std::vector<Future<OpenedEvaluation>> evaluations;
  for (int i = 0; i < 10; ++i) {
    Promise<OpenedEvaluation> promise;
    evaluations.push_back(promise.future());
    happens(shared_event::Evaluate{std::move(promise)});
  }
  std::vector<std::weak_ptr<SharedCopy>> made;
  for (int i = 0; i < 10; ++i) made.push_back(copied());
  for (auto& one : evaluations) happens(shared_event::Evaluated{one.get().evaluation});
  EXPECT_EQ(server_->free_copies(), 0U);
  all_emptied();
  EXPECT_EQ(server_->free_copies(), 3U);
  EXPECT_EQ(std::count_if(made.begin(), made.end(), [](const auto& copy) { return copy.expired(); }), 7);
}

TEST_F(SharedServerTest, CM21_AGradientThatIsRefusedLeavesItsContextOpen) {
  share({.mode = ConsistencyMode::versioned});
  open(context(0)).forget();
  const auto copy = copied();
  EXPECT_THAT(step(context(0), nullptr).result().error().text(), HasSubstr("no parameter"));
  Future<StepResult> refused = step(context(0), copy);
  EXPECT_THAT(step(context(0), copy).result().error().text(), HasSubstr("has made its step"));
  EXPECT_THAT(open(context(0)).result().error().text(), HasSubstr("has made its step"));
  checked(Error(Errc::unsupported, "sparse"));
  EXPECT_EQ(refused.result().error().code(), Errc::unsupported);
  EXPECT_TRUE(open(context(0)).ready());
  Future<StepResult> second = step(context(0), copy);
  checked();
  happens(shared_event::Applied{});
  EXPECT_TRUE(second.result());
}

TEST_F(SharedServerTest, CM25_AStepHasTheRatesOfTheLowestTrainerThatBringsSome) {
  share({.mode = ConsistencyMode::sync}, 3);
  std::vector<std::shared_ptr<SharedCopy>> copies;
  for (std::uint32_t trainer = 0; trainer < 3; ++trainer) {
    open(context(trainer)).forget();
    copies.push_back(copied());
  }
  for (const std::uint32_t trainer : {2U, 1U, 0U}) {
    std::optional<StepRates> rates;
    if (trainer > 0) rates = StepRates{.lr = 0.25 * trainer, .momentum = 0.5};
    step(context(trainer), copies[trainer], rates).forget();
    EXPECT_EQ(jobs_.checked_rates.back(), rates);
    checked();
  }
  ASSERT_EQ(jobs_.steps.size(), 1U);
  EXPECT_EQ(jobs_.steps[0].rates, (StepRates{.lr = 0.25, .momentum = 0.5}));
}

TEST_F(SharedServerTest, CM5_AGradientThatWasDeliveredCountsWithoutItsTrainer) {
  share({.mode = ConsistencyMode::sync});
  open(context(0)).forget();
  const auto copy = copied();
  Future<StepResult> result = step(context(0), copy);
  checked();
  happens(shared_event::Join{{0}, "t0", Promise<void>()});
  happens(shared_event::Join{{1}, "t1", Promise<void>()});
  happens(shared_event::Over{context(0)});
  happens(shared_event::Gone{{0}});
  EXPECT_TRUE(jobs_.steps.empty()) << "the round waits for trainer 1";
  happens(shared_event::Gone{{1}});
  ASSERT_EQ(jobs_.steps.size(), 1U);
  happens(shared_event::Applied{});
  EXPECT_TRUE(result.result());
  EXPECT_EQ(readers_->load(), 0U);
}

TEST_F(SharedServerTest, CM15_AContextThatEndsWhileItsGradientIsCheckedIsAnswered) {
  share({.mode = ConsistencyMode::locked});
  open(context(0)).forget();
  Future<Reading> next = open(context(1));
  Future<StepResult> result = step(context(0), module_);
  happens(shared_event::Over{context(0)});
  EXPECT_FALSE(next.ready());
  checked();
  EXPECT_EQ(result.result().error().code(), Errc::context_released);
  EXPECT_TRUE(next.ready()) << "the lease goes on";
  EXPECT_TRUE(jobs_.steps.empty());
  EXPECT_EQ(readers_->load(), 1U);
}

TEST_F(SharedServerTest, CM7_TheLeaseGoesOnWhenTheCallsOfAGoneTrainerHaveReturned) {
  share({.mode = ConsistencyMode::locked});
  happens(shared_event::Join{{0}, "t0", Promise<void>()});
  open(context(0)).forget();
  Future<Reading> next = open(context(1));
  happens(shared_event::Gone{{0}});
  EXPECT_FALSE(next.ready());
  EXPECT_EQ(open(context(0)).result().error().code(), Errc::peer_down);
  all_emptied();
  EXPECT_TRUE(next.ready());
}

TEST_F(SharedServerTest, CM15_AContextWhoseCallerWaitsNoLongerKeepsItsPlaceUntilItIsOver) {
  share({.mode = ConsistencyMode::locked}, 3);
  open(context(0)).forget();
  open(context(1)).forget();
  Future<Reading> third = open(context(2));
  step(context(0), module_).forget();
  checked();
  happens(shared_event::Applied{});
  EXPECT_FALSE(third.ready()) << "it is the turn of the context before it";
  EXPECT_TRUE(open(context(1)).ready()) << "which may call again";
  happens(shared_event::Over{context(1)});
  all_emptied();
  EXPECT_TRUE(third.ready());
}

TEST_F(SharedServerTest, CM15_AContextThatIsOverWhileItWaitsTakesNoTurn) {
  share({.mode = ConsistencyMode::locked}, 3);
  open(context(0)).forget();
  Future<Reading> second = open(context(1));
  Future<Reading> third = open(context(2));
  happens(shared_event::Over{context(1)});
  EXPECT_EQ(second.result().error().code(), Errc::context_released);
  step(context(0), module_).forget();
  checked();
  happens(shared_event::Applied{});
  EXPECT_TRUE(third.ready());
}

TEST_F(SharedServerTest, ACopyThatCannotBeMadeIsTheErrorOfItsContext) {
  share({.mode = ConsistencyMode::versioned});
  Future<Reading> reading = open(context(0));
  happens(shared_event::Copied{context(0), Error(Errc::limit_exceeded, "no memory")});
  EXPECT_EQ(reading.result().error().code(), Errc::limit_exceeded);
  EXPECT_EQ(open(context(0)).result().error().code(), Errc::limit_exceeded);
  EXPECT_EQ(step(context(0), new_copy()).result().error().code(), Errc::limit_exceeded);
  happens(shared_event::Over{context(0)});
  EXPECT_EQ(server_->readings(), 0U);
  EXPECT_EQ(readers_->load(), 0U);
  open(context(0, 2)).forget();
  EXPECT_EQ(jobs_.copies.size(), 2U) << "another context may have more luck";
}

TEST_F(SharedServerTest, AContextThatEndsWhileItsCopyIsMadeGivesTheCopyBack) {
  share({.mode = ConsistencyMode::sync});
  Future<Reading> reading = open(context(0));
  EXPECT_THAT(step(context(0), new_copy()).result().error().text(), HasSubstr("waits to read"));
  happens(shared_event::Over{context(0)});
  copied();
  EXPECT_EQ(reading.result().error().code(), Errc::context_released);
  EXPECT_EQ(server_->free_copies(), 1U);
  EXPECT_EQ(server_->readings(), 0U);
}

TEST_F(SharedServerTest, AnEvaluationEndsWithItsHold) {
  share({.mode = ConsistencyMode::versioned});
  Promise<OpenedEvaluation> kept, given_up;
  Future<OpenedEvaluation> reading = kept.future();
  Future<OpenedEvaluation> unwanted = given_up.future();
  happens(shared_event::Evaluate{std::move(kept)});
  happens(shared_event::Evaluate{std::move(given_up)});
  unwanted.cancel();
  copied();
  copied();
  all_emptied();
  EXPECT_EQ(server_->readings(), 1U) << "the caller of the other one has given up";
  happens(shared_event::Evaluated{reading.get().evaluation});
  all_emptied();
  EXPECT_EQ(server_->readings(), 0U);
  EXPECT_EQ(server_->free_copies(), 2U);
}

TEST_F(SharedServerTest, CM28_AStepOfAnOpenRoundIsAnsweredBeforeItsCallersTimeIsOver) {
  share({.mode = ConsistencyMode::sync}, 3);
  const base::TimePoint now = base::ManualClock().now();
  const auto waits = [&](std::uint32_t trainer, base::Duration left) {
    open(context(trainer)).forget();
    const auto copy = copied();
    Future<StepResult> result = step(context(trainer), copy);
    happens(shared_event::Waits{context(trainer), now + left});
    checked();
    return result;
  };
  Future<StepResult> first = waits(0, std::chrono::seconds(4));
  Future<StepResult> second = waits(1, std::chrono::seconds(9));
  EXPECT_THAT(jobs_.wakes, ::testing::ElementsAre(now + std::chrono::seconds(4))) << "one timer for all";
  happens(shared_event::Woken{now + std::chrono::seconds(4)});
  ASSERT_TRUE(first.ready());
  EXPECT_EQ(first.result().error().code(), Errc::timeout);
  EXPECT_FALSE(second.ready());
  EXPECT_EQ(jobs_.wakes.back(), now + std::chrono::seconds(9));
  open(context(2)).forget();
  step(context(2), copied()).forget();
  checked();
  ASSERT_EQ(jobs_.gradients.size(), 1U);
  EXPECT_EQ(jobs_.gradients.front().size(), 3U) << "CM-5: the gradient counts";
  happens(shared_event::Applied{});
  EXPECT_TRUE(second.result());
  happens(shared_event::Woken{now + std::chrono::seconds(9)});
}

TEST_F(SharedServerTest, CM29_TheStepOfALostTrainerEndsWithItsContextAndItsGradientStays) {
  share({.mode = ConsistencyMode::sync}, 3);
  const auto call = std::make_shared<Call>();
  std::vector<Future<StepResult>> results;
  for (const std::uint32_t trainer : {0U, 1U}) {
    open(context(trainer)).forget();
    const auto copy = copied();
    results.push_back(step(context(trainer), copy, std::nullopt, call));
    checked();
  }
  happens(shared_event::Over{context(0)});
  EXPECT_FALSE(results[0].ready()) << "its caller lives, and waits for the round";
  call->is_lost = true;
  happens(shared_event::Over{context(1)});
  ASSERT_TRUE(results[1].ready());
  EXPECT_EQ(results[1].result().error().code(), Errc::peer_down);
  open(context(2)).forget();
  const auto copy = copied();
  step(context(2), copy).forget();
  checked();
  ASSERT_EQ(jobs_.gradients.size(), 1U);
  EXPECT_EQ(jobs_.gradients.front().size(), 3U) << "CM-5";
  happens(shared_event::Applied{});
  EXPECT_TRUE(results[0].result());
  EXPECT_EQ(server_->readings(), 0U);
}

TEST_F(SharedServerTest, CM13_TheTimerOfAQuorumClosesTheRound) {
  share({.mode = ConsistencyMode::sync, .quorum = 1, .straggler_timeout = std::chrono::seconds(1)});
  open(context(0)).forget();
  const auto copy = copied();
  Future<StepResult> result = step(context(0), copy);
  checked();
  ASSERT_EQ(jobs_.timers.size(), 1U);
  EXPECT_TRUE(jobs_.steps.empty());
  happens(shared_event::TimePassed{jobs_.timers.front()});
  ASSERT_EQ(jobs_.steps.size(), 1U);
  EXPECT_EQ(jobs_.gradients.front().size(), 1U);
  happens(shared_event::Applied{Error(Errc::limit_exceeded, "no memory")});
  EXPECT_EQ(result.result().error().code(), Errc::limit_exceeded) << "CM-1";
}

}  // namespace
}  // namespace caftan::nn::shared_server_test

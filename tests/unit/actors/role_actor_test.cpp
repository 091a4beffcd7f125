// The actor of a role: it constructs the object, makes it the value of the reference, runs it, and reports.
#include "role/role_actor.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <caf/send.hpp>

#include "caftan/run/internal/run_messages.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "exchange_side.hpp"

namespace caftan::actors::role_actor_test {
namespace {

using Kinds = std::vector<std::size_t>;

/// Returns the kinds of these reports: their places in run::EventBody.
template <class... Reports>
Kinds kinds() {
  return {run::EventBody(Reports()).index()...};
}

constexpr RRefId kRole{WorkerId{0}, Incarnation{1}, 5};

/// A worker that plays one role and has nothing else.
class ScriptedWorker final : public RolePorts {
 public:
  explicit ScriptedWorker(base::Executor& executor) : executor_(executor) {}
  base::Executor& executor() override { return executor_; }
  bool set_value(const Result<std::shared_ptr<rpc::HostedObject>>& object) override {
    if (before_value) before_value();
    if (has_ended) return false;
    values.push_back(object);
    return true;
  }
  void report_returned() override { ++returned; }
  void set_idle() override {
    ++idle;
    returned_when_idle = returned;
  }

  std::function<void()> before_value;
  bool has_ended = false;
  std::vector<Result<std::shared_ptr<rpc::HostedObject>>> values;
  int idle = 0;
  int returned = 0;
  int returned_when_idle = 0;

 private:
  base::Executor& executor_;
};

/// A role whose object is the number of its configuration; a negative one cannot be constructed.
class RoleActorTest : public ::testing::Test {
 protected:
  RoleActorTest() {
    definition_.name = "number";
    definition_.make = [](std::shared_ptr<RoleContext>, const std::any& config, RRefId id,
                          base::Executor& executor) -> std::shared_ptr<rpc::HostedObject> {
      const int number = std::any_cast<int>(config);
      if (number < 0) throw std::runtime_error("negative");
      return rpc::make_hosted<int>(id, executor, number);
    };
    role_->facts.worker = "a";
    role_->reporter = std::make_shared<RunReporter>([this](run::Event event) { events_.push_back(std::move(event)); },
                                                    std::uint32_t{0}, executor_);
  }
  ~RoleActorTest() override {
    if (actor_) caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    executor_.run();
  }

  /// Gives the role a run() function, which fails if the role's object is the number 0.
  void let_it_drive() {
    definition_.run = [](rpc::HostedObject& object, std::stop_token) -> Result<void> {
      if (*object.as<int>() == 0) return Error(Errc::invalid_config, "zero");
      return {};
    };
  }
  void spawn(int number) {
    actor_ = side_.host.spawn(role_actor, std::make_shared<const RoleParts>(
                                              RoleParts{worker_, &definition_, std::any(number), role_, kRole}));
  }
  void begin(int number) {
    spawn(number);
    caf::anon_send(actor_, RoleEvent{role_event::Begin{}});
    executor_.run();
  }
  Kinds reported() const {
    Kinds reported;
    for (const run::Event& event : events_) reported.push_back(event.body.index());
    return reported;
  }

  transport::SteppedExecutor executor_{1};
  remote::ActorsOfSide side_{executor_, remote::MessageRegistry(), WorkerId{0}};
  RoleDefinition definition_;
  std::vector<run::Event> events_;
  std::shared_ptr<RoleState> role_ = std::make_shared<RoleState>();
  std::shared_ptr<ScriptedWorker> worker_ = std::make_shared<ScriptedWorker>(executor_);
  caf::actor actor_;
};

TEST_F(RoleActorTest, DoesNothingBeforeBegin) {
  spawn(7);
  executor_.run();
  EXPECT_EQ(reported(), Kinds());
  EXPECT_TRUE(worker_->values.empty());
  EXPECT_EQ(worker_->idle, 0);
}

TEST_F(RoleActorTest, MakesItsObjectTheValueOfTheReference) {
  begin(7);
  ASSERT_EQ(worker_->values.size(), 1U);
  ASSERT_TRUE(worker_->values[0]);
  EXPECT_EQ((*worker_->values[0])->id(), kRole);
  EXPECT_EQ(*(*worker_->values[0])->as<int>(), 7);
  EXPECT_EQ(reported(), (kinds<run::Making, run::Made>()));
  EXPECT_EQ(worker_->idle, 1);
}

TEST_F(RoleActorTest, RN15_ReportsThatItsObjectIsConstructedBeforeACallCanReachIt) {
  Kinds before;
  worker_->before_value = [&] { before = reported(); };
  begin(7);
  EXPECT_EQ(before, (kinds<run::Making, run::Made>()));
}

TEST_F(RoleActorTest, RunsARoleThatDrivesAndReportsItsEnd) {
  let_it_drive();
  begin(7);
  ASSERT_EQ(reported(), (kinds<run::Making, run::Made, run::Returned>()));
  EXPECT_EQ(std::get<run::Returned>(events_.back().body).error.code(), Errc::ok);
  EXPECT_EQ(worker_->idle, 1);
}

TEST_F(RoleActorTest, RN21_ReportsToOtherLaunchersThatRunHasReturnedBeforeItIsIdle) {
  let_it_drive();
  begin(7);
  EXPECT_EQ(worker_->returned, 1);
  EXPECT_EQ(worker_->returned_when_idle, 1) << "once it is idle, its worker may say good-bye";
}

TEST_F(RoleActorTest, RN22_ARunThatWasAskedToStopIsNotReportedToOtherLaunchers) {
  let_it_drive();
  role_->stop.request_stop();
  begin(7);
  EXPECT_EQ(reported(), (kinds<run::Making, run::Made, run::Returned>()));
  EXPECT_EQ(worker_->returned, 0);
  EXPECT_EQ(worker_->idle, 1);
}

TEST_F(RoleActorTest, ReportsTheErrorOfRunWithTheWorker) {
  let_it_drive();
  begin(0);
  ASSERT_EQ(reported(), (kinds<run::Making, run::Made, run::Returned>()));
  const Error& error = std::get<run::Returned>(events_.back().body).error;
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_EQ(error.worker(), "a");
  EXPECT_EQ(worker_->returned, 0) << "RN22";
  EXPECT_EQ(worker_->idle, 1);
}

TEST_F(RoleActorTest, AFailedConstructorIsTheValueAndIsReported) {
  let_it_drive();
  begin(-1);
  ASSERT_EQ(worker_->values.size(), 1U);
  ASSERT_FALSE(worker_->values[0]);
  EXPECT_EQ(worker_->values[0].error().code(), Errc::remote_exception);
  EXPECT_EQ(reported(), (kinds<run::Making, run::Failed>()));
  EXPECT_EQ(worker_->idle, 1);
}

TEST_F(RoleActorTest, ARoleThatWasEndedMeanwhileDoesNotRun) {
  let_it_drive();
  worker_->has_ended = true;
  begin(7);
  EXPECT_EQ(reported(), (kinds<run::Making, run::Made>()));
  EXPECT_EQ(worker_->idle, 1);
}

TEST_F(RoleActorTest, AnExitDuringTheConstructorLetsGoOfTheWorker) {
  spawn(7);
  caf::anon_send(actor_, RoleEvent{role_event::Begin{}});
  caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  actor_ = nullptr;
  executor_.run();
  EXPECT_TRUE(worker_->values.empty());
  const std::weak_ptr<ScriptedWorker> worker = worker_;
  worker_ = nullptr;
  EXPECT_TRUE(worker.expired());
}

}  // namespace
}  // namespace caftan::actors::role_actor_test

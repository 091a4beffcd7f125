// The actor of a value: what counts the forks, who gets the value, and when it ends.
#include "rref/owner_rref_actor.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "caftan/transport/stepped_executor.hpp"
#include "exchange_side.hpp"

namespace caftan::actors::owner_rref_actor_test {
namespace {

using Value = Result<std::shared_ptr<rpc::HostedObject>>;

constexpr RRefId kRRef{WorkerId{0}, Incarnation{1}, 1};
constexpr ForkId kFork{WorkerId{1}, Incarnation{2}, 2};
constexpr rpc::PeerSession kSession{{WorkerId{1}, Incarnation{2}}, 1};

/// A worker that owns one value. It keeps what the value's actor asks for.
class ScriptedWorker final : public OwnerRRefPorts {
 public:
  explicit ScriptedWorker(base::Executor& executor) : executor_(executor) {}
  base::Executor& executor() override { return executor_; }
  caf::strong_actor_ptr fork_proxy(ForkId, const rpc::PeerSession&) override { return proxy; }
  void answer_fork(ForkId, const rpc::PeerSession&, Errc code) override { answers.push_back(code); }
  void fork_counted(RRefId, ForkInfo fork) override { counted.insert(fork.fork); }
  void fork_ended(RRefId, ForkId fork) override { counted.erase(fork); }
  void value_known(RRefId, const Value& value) override { known.push_back(value ? Errc::ok : value.error().code()); }
  void owner_ending(RRefId id) override {
    EXPECT_EQ(id, kRRef);
    is_ending = true;
  }
  std::optional<WorkerLife> guarded_by() const override { return guard; }
  std::optional<Error> leaving() const override { return why_it_leaves; }

  caf::strong_actor_ptr proxy;
  std::vector<Errc> answers;
  std::set<ForkId> counted;
  std::vector<Errc> known;
  bool is_ending = false;
  std::optional<Error> why_it_leaves;
  std::optional<WorkerLife> guard;

 private:
  base::Executor& executor_;
};

/// Stands for the actor of a fork at another worker, or for an actor that is itself a value.
class Other final : public caf::event_based_actor {
 public:
  Other(caf::actor_config& config, bool& has_ended) : caf::event_based_actor(config), has_ended_(has_ended) {}
  void on_exit() override { has_ended_ = true; }
  caf::behavior make_behavior() override {
    return {[](int) {}};
  }

 private:
  bool& has_ended_;
};

/// A job on the value. It keeps what the actor passes to `run`: the error code, and the function that gives the value
/// back.
class Job final : public ValueJob {
 public:
  explicit Job(rpc::Use use) : use_(use) {}
  rpc::Use use() const noexcept override { return use_; }
  WorkerLife caller() const noexcept override { return kSession.peer; }
  void run(Value value, base::Task done) override {
    runs.push_back(value ? Errc::ok : value.error().code());
    give_back = std::move(done);
  }

  std::vector<Errc> runs;
  base::Task give_back;

 private:
  const rpc::Use use_;
};

class OwnerRRefActorTest : public ::testing::Test {
 protected:
  OwnerRRefActorTest() {
    worker_.proxy = caf::actor_cast<caf::strong_actor_ptr>(other_);
    actor_ = side_.host.spawn(owner_rref_actor, &worker_, kRRef);
  }
  ~OwnerRRefActorTest() override {
    worker_.proxy = nullptr;
    for (caf::actor* one : {&actor_, &other_}) {
      if (*one) caf::anon_send_exit(*one, caf::exit_reason::kill);
      *one = nullptr;
    }
    executor_.run();
  }

  template <class Event>
  void send_event(Event event) {
    caf::anon_send(actor_, OwnerEvent{std::move(event)});
    executor_.run();
  }
  void set_value(Value value) { send_event(owner_event::ValueSet{std::make_shared<Value>(std::move(value))}); }
  Value seven() { return rpc::make_hosted<int>(kRRef, executor_, 7); }
  std::shared_ptr<Job> ask(rpc::Use use) {
    auto job = std::make_shared<Job>(use);
    send_event(owner_event::Job{job});
    return job;
  }
  void end(caf::actor& actor) {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    executor_.run();
  }

  transport::SteppedExecutor executor_{1};
  remote::ActorsOfSide side_{executor_, remote::MessageRegistry(), WorkerId{0}};
  ScriptedWorker worker_{executor_};
  bool other_has_ended_ = false;
  caf::actor other_ = side_.host.spawn<Other>(other_has_ended_);
  caf::actor actor_;
};

using Codes = std::vector<Errc>;
using Forks = std::set<ForkId>;

TEST_F(OwnerRRefActorTest, EndsWithTheLastHoldOfItsWorker) {
  send_event(owner_event::CreatedHere{});
  set_value(seven());
  EXPECT_EQ(worker_.known, Codes{Errc::ok});
  EXPECT_FALSE(worker_.is_ending);
  send_event(owner_event::Released{rpc::Use::hold});
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, RR7_TheEndOfAForksActorIsTheEndOfTheFork) {
  send_event(owner_event::CreatedBy{kFork, kSession, worker_.proxy});
  set_value(seven());
  EXPECT_EQ(worker_.counted, Forks{kFork});
  EXPECT_FALSE(worker_.is_ending);
  end(other_);
  EXPECT_EQ(worker_.counted, Forks());
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, RR5_CountsAForkBeforeItAnswersItsRequest) {
  send_event(owner_event::CreatedHere{});
  send_event(owner_event::Requested{{kRRef, {}, kFork, {}, kSession}, worker_.proxy});
  EXPECT_EQ(worker_.counted, Forks{kFork});
  EXPECT_EQ(worker_.answers, Codes{Errc::ok});
}

TEST_F(OwnerRRefActorTest, TakesTheProxyFromTheSessionIfTheRequestHasNone) {
  send_event(owner_event::CreatedHere{});
  set_value(seven());
  send_event(owner_event::Requested{{kRRef, {}, kFork, {}, kSession}, nullptr});
  send_event(owner_event::Released{rpc::Use::hold});
  EXPECT_FALSE(worker_.is_ending);
  end(other_);
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, RR4_AForkThatNeverLeftDoesNotCount) {
  send_event(owner_event::CreatedHere{});
  set_value(seven());
  send_event(owner_event::HandedOver{kFork, kSession, worker_.proxy});
  EXPECT_EQ(worker_.counted, Forks{kFork});
  send_event(owner_event::NotHandedOver{kFork, kSession});
  end(other_);
  EXPECT_FALSE(worker_.is_ending) << "the hold is left";
  send_event(owner_event::Released{rpc::Use::hold});
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, RR4_AReferenceThatComesBackIsAHold) {
  send_event(owner_event::CreatedHere{});
  set_value(seven());
  Result<void> held = Error(Errc::timeout, "not answered");
  send_event(
      owner_event::PassedBack{kFork, ForkId{}, kSession, [&held](Result<void> outcome) { held = std::move(outcome); }});
  EXPECT_TRUE(held);
  send_event(owner_event::Released{rpc::Use::hold});
  EXPECT_FALSE(worker_.is_ending);
  send_event(owner_event::Released{rpc::Use::hold});
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, PM5_WithAGuardAJobIsRefusedUnlessItsCallerHoldsAReference) {
  end(actor_);
  worker_.guard = WorkerLife{WorkerId{0}, Incarnation{1}};
  actor_ = side_.host.spawn(owner_rref_actor, &worker_, kRRef);
  send_event(owner_event::CreatedHere{});
  EXPECT_EQ(ask(rpc::Use::method)->runs, Codes{Errc::not_permitted}) << "before there is a value";
  set_value(seven());
  send_event(owner_event::HandedOver{kFork, kSession, worker_.proxy});
  const auto job = ask(rpc::Use::method);
  EXPECT_EQ(job->runs, Codes{Errc::ok});
  job->give_back();
}

TEST_F(OwnerRRefActorTest, AJobWaitsForTheValueAndKeepsIt) {
  send_event(owner_event::CreatedHere{});
  const auto job = ask(rpc::Use::fetch);
  EXPECT_EQ(job->runs, Codes());
  set_value(seven());
  EXPECT_EQ(job->runs, Codes{Errc::ok});
  send_event(owner_event::Released{rpc::Use::hold});
  EXPECT_FALSE(worker_.is_ending);
  job->give_back();
  executor_.run();
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, AFailedCreationIsWhatJobsGet) {
  send_event(owner_event::CreatedHere{});
  set_value(Error(Errc::remote_exception, "no"));
  set_value(seven());
  EXPECT_EQ(worker_.known, Codes{Errc::remote_exception}) << "the first outcome counts";
  EXPECT_EQ(ask(rpc::Use::method)->runs, Codes{Errc::remote_exception});
}

TEST_F(OwnerRRefActorTest, L2_TheEndOfTheActorThatIsTheValueEndsIt) {
  send_event(owner_event::CreatedHere{});
  send_event(owner_event::ValueActor{other_});
  end(other_);
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, L2_FinishEndsTheActorThatIsTheValueAndRefusesJobs) {
  send_event(owner_event::CreatedHere{});
  send_event(owner_event::ValueActor{other_});
  const auto job = ask(rpc::Use::method);
  send_event(owner_event::Finish{Error(Errc::shut_down, "the worker leaves")});
  EXPECT_EQ(job->runs, Codes{Errc::shut_down});
  EXPECT_TRUE(worker_.is_ending);
  EXPECT_TRUE(other_has_ended_);
}

TEST_F(OwnerRRefActorTest, AKillRefusesJobsThatWait) {
  send_event(owner_event::CreatedHere{});
  const auto job = ask(rpc::Use::fetch);
  end(actor_);
  EXPECT_EQ(job->runs, Codes{Errc::rref_deleted});
  EXPECT_TRUE(worker_.is_ending);
}

TEST_F(OwnerRRefActorTest, K11_JobsOfAnActorThatEndsWithItsWorkerSayWhyTheWorkerLeaves) {
  send_event(owner_event::CreatedHere{});
  const auto job = ask(rpc::Use::fetch);
  worker_.why_it_leaves = Error(Errc::shut_down, "the worker leaves");
  end(actor_);
  EXPECT_EQ(job->runs, Codes{Errc::shut_down});
}

TEST_F(OwnerRRefActorTest, TheValueGoesWithTheActorNotWithItsHandles) {
  send_event(owner_event::CreatedHere{});
  auto value = rpc::make_hosted<int>(kRRef, executor_, 7);
  const std::weak_ptr<rpc::HostedObject> kept = value;
  set_value(std::move(value));
  EXPECT_FALSE(kept.expired());
  end(actor_);
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace caftan::actors::owner_rref_actor_test

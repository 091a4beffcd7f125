// The actor of a module: one request at a time, in order, each on the module's strand, and what its end leaves.
#include "modules/module_actor.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "caftan/transport/stepped_executor.hpp"
#include "exchange_side.hpp"

namespace caftan::actors::module_actor_test {
namespace {

struct Net {};

/// Writes down what happens to it.
class Noted final : public nn::ModuleRequest {
 public:
  Noted(std::string name, std::vector<std::string>& notes, const rpc::HostedObject& object,
        std::optional<base::Duration> wait)
      : name_(std::move(name)), notes_(notes), object_(object), wait_(wait) {}
  std::optional<base::Duration> wait() const override { return wait_; }
  void run(nn::OwnedModule&) override {
    const bool in_turn = rpc::Strand::held_here() == object_.shared_strand();
    notes_.push_back(name_ + (in_turn ? " runs" : " runs outside its turn"));
  }
  void fail(Error) override { notes_.push_back(name_ + " fails"); }
  void answer() override { notes_.push_back(name_ + " is answered"); }

 private:
  const std::string name_;
  std::vector<std::string>& notes_;
  const rpc::HostedObject& object_;
  const std::optional<base::Duration> wait_;
};

/// Lets the test say whether a context is open.
class Gate final : public nn::detail::ModuleGate {
 public:
  Result<void> enter(const CallInfo&) override { return {}; }
  void leave() noexcept override {}
  bool is_in_use() const noexcept override { return in_use; }
  bool in_use = false;
};

class ModuleActorTest : public ::testing::Test {
 protected:
  ModuleActorTest() {
    auto owned = nn::OwnedModule::make(object_, CallSite(std::weak_ptr<rpc::Caller>())).value();
    weak_ = owned;
    actor_ = side_.host.spawn(module_actor, &executor_, std::move(owned));
  }
  ~ModuleActorTest() override {
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    executor_.run();
  }
  void send(const std::string& name, std::optional<base::Duration> wait = base::Duration::zero()) {
    auto request = std::make_shared<Noted>(name, notes_, *object_, wait);
    caf::anon_send(actor_, ModuleEvent{module_event::Requested{std::move(request)}});
  }

  transport::SteppedExecutor executor_{1};
  remote::ActorsOfSide side_{executor_, remote::MessageRegistry(), WorkerId{0}};
  const std::shared_ptr<rpc::HostedObject> object_ =
      rpc::make_hosted<nn::ServedModule>(RRefId{WorkerId{0}, Incarnation{1}, 1}, executor_, std::make_shared<Net>());
  std::weak_ptr<nn::OwnedModule> weak_;
  std::vector<std::string> notes_;
  caf::actor actor_;
};

TEST_F(ModuleActorTest, MD1_RequestsRunInOrderOneAtATimeOnTheStrand) {
  for (const char* name : {"a", "b", "c"}) send(name);
  executor_.run();
  EXPECT_EQ(notes_, (std::vector<std::string>{"a runs", "a is answered", "b runs", "b is answered", "c runs",
                                              "c is answered"}));
}

TEST_F(ModuleActorTest, MD1_AModuleHasOneActor) {
  const auto second = nn::OwnedModule::make(object_, CallSite(std::weak_ptr<rpc::Caller>()));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::bad_arguments);
}

TEST_F(ModuleActorTest, MD12_AValueThatIsNoModuleHasNoActor) {
  const auto number = rpc::make_hosted<int>(RRefId{WorkerId{0}, Incarnation{1}, 2}, executor_, 5);
  EXPECT_EQ(nn::OwnedModule::make(number, CallSite(std::weak_ptr<rpc::Caller>())).error().code(), Errc::wrong_type);
}

TEST_F(ModuleActorTest, MD10_ARequestThatWaitsForAContextLetsTheOthersPass) {
  const auto gate = std::make_shared<Gate>();
  object_->as<nn::ServedModule>()->set_gate(gate);
  gate->in_use = true;
  send("load", std::chrono::minutes(1));
  executor_.run();
  send("list", std::nullopt);  // asked for in the context that is open
  executor_.run();
  EXPECT_EQ(notes_, (std::vector<std::string>{"list runs", "list is answered"}));
  gate->in_use = false;
  executor_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(notes_, (std::vector<std::string>{"list runs", "list is answered", "load runs", "load is answered"}));
}

TEST_F(ModuleActorTest, MD10_ARequestThatHasWaitedAsLongAsItsCallerSaidFails) {
  const auto gate = std::make_shared<Gate>();
  object_->as<nn::ServedModule>()->set_gate(gate);
  gate->in_use = true;
  send("load", std::chrono::milliseconds(5));
  caf::anon_send(actor_, ModuleEvent{module_event::Finish{}});
  executor_.run();
  for (int i = 0; i < 4; ++i) executor_.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(notes_.empty());
  EXPECT_FALSE(weak_.expired()) << "MD-13: the actor has begun this";
  executor_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(notes_, (std::vector<std::string>{"load fails", "load is answered"}));
  EXPECT_TRUE(weak_.expired());
}

TEST_F(ModuleActorTest, MD13_TheActorEndsAfterWhatItHasBegunAndGivesTheModuleUp) {
  send("a");
  caf::anon_send(actor_, ModuleEvent{module_event::Finish{}});
  executor_.run();
  EXPECT_EQ(notes_, (std::vector<std::string>{"a runs", "a is answered"}));
  EXPECT_TRUE(weak_.expired());
}

}  // namespace
}  // namespace caftan::actors::module_actor_test

#include "caftan/rpc/group.hpp"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "caftan/tensor/operators.hpp"
#include "fake_caller.hpp"

namespace caftan::group_test {
namespace {

using namespace std::chrono_literals;
using test::FakeCaller;
using test::FakeJob;

/// Counts how often it is encoded.
struct Counted {
  static inline int encoded = 0;
  int value = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    if constexpr (std::is_same_v<Archive, wire::OutArchive>) ++encoded;
    archive& value;
  }
};

std::string greet(Worker& worker, const std::string& greeting) { return greeting + " from " + worker.name(); }
int take(const Counted& counted) { return counted.value; }
void take_nothing(int) {}
int fail_at(Worker& worker, const std::string& name) {
  if (worker.name() == name) throw std::runtime_error("no luck");
  return 1;
}
Result<int> poor_at(Worker& worker, const std::string& name) {
  if (worker.name() == name) return user_error("bank.no_funds", "3 are missing");
  return 1;
}
Future<int> never(Worker& worker, const std::string& at) {
  if (worker.name() != at) return make_ready_future<int>(1);
  static std::vector<Promise<int>> kept;
  kept.emplace_back();
  return kept.back().future();
}
/// Makes a call to a worker that is not there.
int ask_stranger(Worker& worker) { return worker.rpc_sync<&take>("stranger", Counted{1}); }
int unregistered(int a) { return a; }

class Adder {
 public:
  explicit Adder(int start) : value_(start) {}
  int add(int by) { return value_ += by; }
  int value() const { return value_; }
  void set(int value) { value_ = value; }
  void refuse(int total) {
    if (total % 2 == 0) throw std::runtime_error("even");
  }
  at::Tensor scaled(const at::Tensor& tensor) const { return tensor * value_; }

 private:
  int value_;
};

Registry make_registry() {
  Registry registry;
  registry.add<&greet>("greet");
  registry.add<&take>("take");
  registry.add<&take_nothing>("take_nothing");
  registry.add<&fail_at>("fail_at");
  registry.add<&poor_at>("poor_at");
  registry.add<&never>("never");
  registry.add<&ask_stranger>("ask_stranger");
  registry.add<Adder>("adder")
      .constructor<int>()
      .method<&Adder::add>("add")
      .method<&Adder::value>("value")
      .method<&Adder::set>("set")
      .method<&Adder::refuse>("refuse")
      .method<&Adder::scaled>("scaled");
  return registry;
}

class Groups : public ::testing::Test {
 protected:
  Groups() {
    for (int i = 0; i < 4; ++i) job_.add(make_registry());
  }
  Worker& worker() { return job_.at(0).worker(); }
  WorkerGroup three() { return worker().group({"worker1", "worker2", "worker3"}); }
  /// An Adder at each of the workers 1 to 3, which begin with 1, 2 and 3.
  std::vector<RRef<Adder>> make_adders() {
    std::vector<RRef<Adder>> adders;
    for (int i = 1; i <= 3; ++i) adders.push_back(worker().remote<Adder>("worker" + std::to_string(i), i));
    return adders;
  }
  void run() { job_.executor.run_until_idle(); }

  FakeJob job_;
};

TEST_F(Groups, RpcAllGivesTheResultsInTheOrderOfTheMembers) {
  const WorkerGroup group = worker().group({"worker3", "worker0", "worker1"});
  EXPECT_EQ(group.size(), 3U);
  EXPECT_EQ(group.rpc_all<&greet>("hello").get(),
            (std::vector<std::string>{"hello from worker3", "hello from worker0", "hello from worker1"}));
}

TEST_F(Groups, ArgumentsAreEncodedOnceForAllMembers) {
  Counted::encoded = 0;
  EXPECT_EQ(three().rpc_all<&take>(Counted{7}).get(), (std::vector<int>{7, 7, 7}));
  EXPECT_EQ(Counted::encoded, 1);
}

TEST_F(Groups, MethodsAreCalledOnTheValuesOfReferences) {
  const Group<Adder> group(make_adders());
  EXPECT_EQ(group.rpc_all<&Adder::add>(10).get(), (std::vector<int>{11, 12, 13}));
  group.rpc_all<&Adder::set>(5).get();
  EXPECT_EQ(group.rpc_all<&Adder::value>().get(), (std::vector<int>{5, 5, 5}));
  const std::vector<at::Tensor> scaled = group.rpc_all<&Adder::scaled>(at::ones({2})).get();
  ASSERT_EQ(scaled.size(), 3U);
  EXPECT_TRUE(scaled[2].equal(at::full({2}, 5.0)));
}

TEST_F(Groups, BroadcastDropsResults) {
  const Group<Adder> group(make_adders());
  group.broadcast<&Adder::add>(10).get();
  three().broadcast<&take_nothing>(1).get();
  EXPECT_EQ(group.rpc_all<&Adder::value>().get(), (std::vector<int>{11, 12, 13}));
}

TEST_F(Groups, ScatterGivesEachMemberItsElement) {
  const Group<Adder> group(make_adders());
  EXPECT_EQ(group.scatter<&Adder::add>(std::vector<int>{100, 200, 300}).get(), (std::vector<int>{101, 202, 303}));
  EXPECT_EQ(three().scatter<&greet>(std::vector<std::string>{"a", "b", "c"}).get(),
            (std::vector<std::string>{"a from worker1", "b from worker2", "c from worker3"}));
}

TEST_F(Groups, ScatterRefusesAnotherNumberOfElementsBeforeAnythingIsSent) {
  const Group<Adder> group(make_adders());
  const auto refused = group.scatter<&Adder::add>(std::vector<int>{1, 2}).result();
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_EQ(refused.error().text(), "scatter: 2 elements for the 3 members of the group; each member takes one");
  EXPECT_EQ(group.rpc_all<&Adder::value>().get(), (std::vector<int>{1, 2, 3}));
}

TEST_F(Groups, GatherFetchesTheValuesThemselves) {
  std::vector<RRef<std::string>> values;
  for (int i = 1; i <= 3; ++i) values.push_back(worker().remote<&greet>("worker" + std::to_string(i), "hi"));
  EXPECT_EQ(Group<std::string>(values).gather().get(),
            (std::vector<std::string>{"hi from worker1", "hi from worker2", "hi from worker3"}));
}

TEST_F(Groups, ReduceFoldsInTheOrderOfTheMembers) {
  const Group<Adder> group(make_adders());
  EXPECT_EQ(group.reduce<&Adder::value>(std::plus<>()).get(), 6);
  EXPECT_EQ(group.reduce<&Adder::value>([](int a, int b) { return 10 * a + b; }).get(), 123);
  EXPECT_EQ(three().reduce<&greet>([](std::string a, const std::string& b) { return a + "; " + b; }, "hi").get(),
            "hi from worker1; hi from worker2; hi from worker3");
  const at::Tensor total = group.reduce<&Adder::scaled>(std::plus<>(), at::ones({2})).get();
  EXPECT_TRUE(total.equal(at::full({2}, 6.0)));
  EXPECT_EQ(worker().group({"worker2"}).reduce<&take>(std::plus<>(), Counted{4}).get(), 4) << "nothing to fold";
}

TEST_F(Groups, AnOperationThatThrowsIsAUserError) {
  const Group<Adder> group(make_adders());
  const auto failed = group.reduce<&Adder::value>([](int, int) -> int { throw std::runtime_error("no sum"); }).result();
  EXPECT_EQ(failed.error().code(), Errc::user_error);
  EXPECT_EQ(failed.error().text(), "reduce: std::runtime_error: no sum");
}

TEST_F(Groups, AllReduceHandsTheTotalToAllMembers) {
  const Group<Adder> group(make_adders());
  EXPECT_EQ((group.all_reduce<&Adder::add, &Adder::set>(std::plus<>(), 1).get()), 9);
  EXPECT_EQ(group.rpc_all<&Adder::value>().get(), (std::vector<int>{9, 9, 9}));
}

TEST_F(Groups, AllReduceFailsWithTheMemberThatDoesNotTakeTheTotal) {
  const Group<Adder> group(make_adders());
  const auto failed = group.all_reduce<&Adder::value, &Adder::refuse>(std::plus<>()).result();
  EXPECT_EQ(failed.error().code(), Errc::remote_exception);
  EXPECT_EQ(failed.error().worker(), "worker1");
}

TEST_F(Groups, AllReduceHasOneTimeoutForBothSteps) {
  job_.at(0).set_default_timeout(0s);
  const Group<Adder> group(make_adders());
  auto total = group.with({.timeout = 2s}).all_reduce<&Adder::value, &Adder::set>([this](int a, int b) {
    job_.executor.advance(1s);
    return a + b;
  });
  EXPECT_EQ(total.result().error().code(), Errc::timeout);
  EXPECT_EQ(group.rpc_all<&Adder::value>().get(), (std::vector<int>{1, 2, 3})) << "no member has got the total";
}

TEST_F(Groups, TheFirstErrorNamesTheMemberAndFailsTheCall) {
  const auto failed = three().rpc_all<&fail_at>("worker2").result();
  EXPECT_EQ(failed.error().code(), Errc::remote_exception);
  EXPECT_EQ(failed.error().worker(), "worker2");
  EXPECT_EQ(failed.error().text(),
            "group call of fail_at, member 2 of 3, worker2: fail_at: std::runtime_error: no luck");
  const auto poor = three().rpc_all<&poor_at>("worker3").result();
  EXPECT_EQ(poor.error().code(), Errc::user_error);
  EXPECT_EQ(poor.error().kind(), "bank.no_funds");
}

TEST_F(Groups, AnErrorThatAMemberGotElsewhereIsTheCause) {
  const auto failed = three().rpc_all<&ask_stranger>().result();
  EXPECT_EQ(failed.error().worker(), "worker1");
  ASSERT_TRUE(failed.error().cause());
  EXPECT_EQ(failed.error().cause()->code(), Errc::unknown_worker);
}

TEST_F(Groups, AMemberThatIsDownIsNamed) {
  const Group<Adder> group(make_adders());
  run();
  job_.at(2).go_down();
  const auto failed = group.rpc_all<&Adder::add>(1).result();
  EXPECT_EQ(failed.error().code(), Errc::peer_down);
  EXPECT_EQ(failed.error().worker(), "worker2");
  run();
  EXPECT_EQ(worker().group({"worker3"}).rpc_all<&greet>("hi").get().size(), 1U) << "the others go on";
}

TEST_F(Groups, EachOutcomeIsThereWhenAllHaveEnded) {
  job_.at(2).go_down();
  const auto results = three().rpc_all_results<&greet>("hi").get();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(*results[0], "hi from worker1");
  EXPECT_EQ(results[1].error().code(), Errc::peer_down);
  EXPECT_EQ(results[1].error().worker(), "worker2");
  EXPECT_EQ(*results[2], "hi from worker3");
}

TEST_F(Groups, EachOutcomeOfAFunctionWithoutAResult) {
  const auto results = three().rpc_all_results<&take_nothing>(1).get();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0] && results[1] && results[2]);
}

TEST_F(Groups, TheTimeoutBoundsTheCallAndNamesTheLateMember) {
  auto call = three().with({.timeout = 2s}).rpc_all<&never>("worker2");
  job_.executor.advance(1s);
  EXPECT_FALSE(call.ready());
  job_.executor.advance(1s);
  ASSERT_TRUE(call.ready());
  EXPECT_EQ(call.result().error().code(), Errc::timeout);
  EXPECT_EQ(call.result().error().worker(), "worker2");
}

TEST_F(Groups, CancellingCancelsTheCallsOfAllMembers) {
  auto call = three().rpc_all<&never>("worker2");
  run();
  EXPECT_EQ(job_.at(0).pending(), 1U) << "two have their replies";
  EXPECT_TRUE(call.cancel());
  EXPECT_EQ(job_.at(0).pending(), 0U);
  EXPECT_EQ(call.result().error().code(), Errc::cancelled);
  EXPECT_FALSE(call.cancel());
}

TEST_F(Groups, CancellingAReductionCancelsTheCallsUnderWay) {
  auto call = three().reduce<&never>(std::plus<>(), "worker2");
  run();
  EXPECT_TRUE(call.cancel());
  EXPECT_EQ(job_.at(0).pending(), 0U);
  EXPECT_EQ(call.result().error().code(), Errc::cancelled);
}

TEST_F(Groups, WithoutMembersNothingCanBeCalled) {
  EXPECT_EQ(worker().try_group({}).error().code(), Errc::bad_arguments);
  const Group<Adder> none{std::vector<RRef<Adder>>()};
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(none.rpc_all<&Adder::value>().result().error().text(), "a group without members: nothing can be called");
  EXPECT_EQ(none.rpc_all_results<&Adder::value>().result().error().code(), Errc::bad_arguments);
  EXPECT_EQ(none.broadcast<&Adder::set>(1).result().error().code(), Errc::bad_arguments);
  EXPECT_EQ(none.scatter<&Adder::add>(std::vector<int>()).result().error().code(), Errc::bad_arguments);
  EXPECT_EQ(none.reduce<&Adder::value>(std::plus<>()).result().error().code(), Errc::bad_arguments);
  EXPECT_EQ((none.all_reduce<&Adder::value, &Adder::set>(std::plus<>()).result().error().code()), Errc::bad_arguments);
}

TEST_F(Groups, MembersThatCannotBeAreRefusedByName) {
  EXPECT_EQ(worker().try_group({"worker1", "nowhere"}).error().code(), Errc::unknown_worker);
  EXPECT_EQ(worker().try_group({"worker1", "worker2", "worker1"}).error().text(),
            "a group has the worker worker1 twice");
  std::vector<RRef<Adder>> adders = make_adders();
  adders.push_back(adders[1]);
  EXPECT_EQ(Group<Adder>(adders).rpc_all<&Adder::value>().result().error().text(),
            "a group has the same value of worker2 twice");
  EXPECT_EQ(Group<Adder>({adders[0], RRef<Adder>()}).rpc_all<&Adder::value>().result().error().text(),
            "reference 2 of a group is empty");
}

TEST_F(Groups, AFunctionWithoutANameIsRefused) {
  EXPECT_EQ(three().rpc_all<&unregistered>(1).result().error().code(), Errc::unknown_function);
}

TEST_F(Groups, OptionsOfTheCallSiteAreThoseOfItsGroups) {
  const WorkerGroup group = worker().with({.timeout = 2s}).group({"worker1", "worker2"});
  auto call = group.rpc_all<&never>("worker2");
  job_.executor.advance(2s);
  ASSERT_TRUE(call.ready());
  EXPECT_EQ(call.result().error().code(), Errc::timeout);
}

TEST_F(Groups, AfterTheEndOfTheWorkerCallsAnswerShutDown) {
  const WorkerGroup group = three();
  const Group<Adder> adders(make_adders());
  run();
  job_.end(0);
  EXPECT_EQ(group.rpc_all<&greet>("hi").result().error().code(), Errc::shut_down);
  EXPECT_EQ(adders.rpc_all<&Adder::value>().result().error().code(), Errc::shut_down);
}

}  // namespace
}  // namespace caftan::group_test

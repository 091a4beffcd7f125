// Workers with permissions: who may call what and refer to whose objects (docs/protocols/permissions.md).
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/permissions.hpp"
#include "caftan/testing/cluster.hpp"
#include "rref_roles.hpp"

namespace caftan::test::permission_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Keeps the reply of a request.
class Reply final : public rpc::ReplySink {
 public:
  void on_reply(Result<rpc::InPayload> reply) override {
    code = reply ? Errc::ok : reply.error().code();
    text = reply ? "" : reply.error().message();
  }
  std::optional<Errc> code;
  std::string text;
};

/// Three workers. `owner` has rules: `user` may do everything, of `guest` each test says it.
class Permitted : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void start(PeerPermissions of_guest) {
    if (of_guest.uses.name.empty()) of_guest.uses.name = "guest uses nothing";
    // The registries are made in the order of the workers.
    cluster_.emplace(GetParam(), std::vector<std::string>{"owner", "user", "guest"}, [&of_guest, made = 0]() mutable {
      Registry registry = make_rref_registry();
      registry.open("fetch*");
      if (made++ == 0) registry.permit({.peers = {{"user", {.uses = {.allowed = true}}}, {"guest", of_guest}}});
      return registry;
    });
  }
  Worker& owner() { return (*cluster_)["owner"]; }
  Worker& user() { return (*cluster_)["user"]; }
  Worker& guest() { return (*cluster_)["guest"]; }
  /// Sends a fetch of that value, as no handle of Caftan would, and returns its reply.
  Reply fetch_forged(Worker& by, RRefId id) {
    rpc::OutRequest request;
    request.kind = wire::FrameKind::fetch;
    request.target = id;
    request.what = "forged";
    const auto reply = std::make_shared<Reply>();
    (void)by.caller()->submit(by.peer("owner"), std::move(request), {}, reply);
    cluster_->run_until_idle();
    return *reply;
  }
  /// Returns how many lines of the log have that text.
  std::size_t logged(const std::string& text) {
    std::size_t lines = 0;
    for (const std::string& line : cluster_->log()) lines += line.find(text) != std::string::npos ? 1 : 0;
    return lines;
  }

  std::optional<testing::Cluster> cluster_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Permitted, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Permitted, PM2_WhatIsNotAllowedIsRefusedByNameAndLoggedOnce) {
  start({});
  EXPECT_EQ(user().rpc_sync<&add>("owner", 1, 2), 3);
  for (int i = 0; i < 3; ++i) {
    const auto refused = guest().try_rpc_sync<&add>("owner", 1, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::not_permitted);
    EXPECT_EQ(refused.error().worker(), "owner");
    EXPECT_EQ(refused.error().text(), "guest may not call add here: guest uses nothing");
  }
  EXPECT_EQ(logged("not permitted: guest may not call add here: guest uses nothing"), 1U);
  EXPECT_EQ(guest().rpc_sync<&add>("user", 1, 2), 3) << "user has no rules (PM-1)";
  EXPECT_EQ(owner().rpc_sync<&add>("owner", 1, 2), 3) << "a worker may do everything at itself (PM-7)";
  EXPECT_EQ(guest().try_rpc_op("owner", "aten::neg", at::ones({2})).error().code(), Errc::not_permitted);
  EXPECT_TRUE(user().try_rpc_op("owner", "aten::neg", at::ones({2})));
}

TEST_P(Permitted, PM4_AnOpenFunctionIsForAll) {
  start({});
  const RRef<int> mine = guest().make_rref(5);
  EXPECT_EQ(guest().rpc_sync<&fetch>("owner", mine), 5);
  EXPECT_EQ(guest().rpc_sync<&fetch_both>("owner", mine, mine), 10);
}

TEST_P(Permitted, PM5_AnObjectIsForWorkersThatWereHandedAReference) {
  start({});
  {
    const RRef<Counter> counter = user().remote<Counter>("owner", 1);
    const RRef<int> number = user().remote<&add>("owner", 20, 22);
    EXPECT_TRUE(number.created().result());
    EXPECT_EQ(fetch_forged(guest(), number.handle()->rref()).code, Errc::not_permitted);
    EXPECT_EQ(fetch_forged(user(), number.handle()->rref()).code, Errc::ok) << "it holds a reference";
    EXPECT_EQ(logged("guest may not use an object here: the caller holds no reference to this value"), 1U);
    EXPECT_EQ(user().rpc_sync<&bump>("guest", counter, 2), 3) << "the guest calls the object that it was handed";
    EXPECT_EQ(user().rpc_sync<&fetch>("guest", number), 42);
    const std::vector<std::string> way{"guest", "user", "owner"};
    EXPECT_EQ(user().rpc_sync<&pass_on>("owner", number, way), 42) << "round and home, from hand to hand";
    cluster_->run_until_idle();
    EXPECT_EQ(fetch_forged(guest(), number.handle()->rref()).code, Errc::not_permitted) << "it has let go of its own";
  }
  cluster_->run_until_idle();
  EXPECT_EQ(live(*cluster_, 3), "0/0 0/0 0/0");
}

TEST_P(Permitted, PM3_WithoutReferencesAWorkerGetsNone) {
  start({.uses = {.allowed = true}, .references = {{false, "guest has no references"}}});
  {
    EXPECT_EQ(guest().rpc_sync<&add>("owner", 1, 2), 3);
    const auto made = guest().try_remote<&add>("owner", 1, 2);
    ASSERT_TRUE(made) << "the reference fails later";
    EXPECT_EQ(made->try_to_here().error().code(), Errc::not_permitted);
    const RRef<int> number = user().remote<&add>("owner", 20, 22);
    EXPECT_EQ(user().try_rpc_sync<&fetch>("guest", number).error().code(), Errc::not_permitted)
        << "from hand to hand, the owner counts no child";
    EXPECT_EQ(guest().try_rpc_sync<&make_here>("owner", 7).error().code(), Errc::not_permitted)
        << "a reply with a reference is refused";
    EXPECT_EQ(owner().try_rpc_sync<&fetch>("guest", owner().make_rref(7)).error().code(), Errc::not_permitted);
    EXPECT_EQ(owner().rpc_sync<&fetch>("user", owner().make_rref(7)), 7);
    EXPECT_THAT(cluster_->log(), Contains(HasSubstr("guest may not refer to objects here: guest has no references")));
  }
  cluster_->run_until_idle();
  EXPECT_EQ(live(*cluster_, 3), "0/0 0/0 0/0");
}

TEST_P(Permitted, PM3_FunctionsOfARuleAreThoseThatItNames) {
  start({.functions = {{{"counter*"}, "guest has counters"}}});
  const RRef<Counter> counter = guest().remote<Counter>("owner", 1);
  EXPECT_EQ(counter.rpc_sync<&Counter::add>(2), 3);
  EXPECT_EQ(guest().try_rpc_sync<&add>("owner", 1, 2).error().text(),
            "guest may not call add here: guest has counters");
  EXPECT_EQ(guest().try_rpc_sync<&fetch>("owner", guest().make_rref(5)).error().code(), Errc::not_permitted)
      << "an open function is taken back";
}

TEST_P(Permitted, AOneWayCallThatIsRefusedStandsInTheLog) {
  start({});
  EXPECT_TRUE(guest().try_tell<&add>("owner", 1, 2));
  cluster_->run_until_idle();
  EXPECT_THAT(cluster_->log(), Contains(HasSubstr("a one-way call of guest failed: not_permitted")));
}

TEST_P(Permitted, PM8_ACallThatWasGivenUpIsNoRefusal) {
  start({});
  const RRef<Shelf> shelf = user().remote<Shelf>("owner");
  std::optional<RRef<int>> number = user().remote<&add>("owner", 20, 22);
  shelf.rpc_sync<&Shelf::put>(*number);  // the value stays when the user lets go of it
  auto fetched = number->fetch();
  fetched.cancel();
  number.reset();
  cluster_->run_until_idle();
  EXPECT_EQ(logged("not permitted"), 0U);
}

TEST(PermissionRules, AMemberThatIsNoneIsRefusedAtTheStart) {
  const auto registry = [] {
    Registry made = make_rref_registry();
    made.permit({.peers = {{"uesr", {.uses = {.allowed = true}}}}});
    return made;
  };
  try {
    testing::Cluster cluster(1, {"owner", "user"}, registry);
    FAIL() << "it has started";
  } catch (const RpcException& e) {
    EXPECT_EQ(e.error().code(), Errc::invalid_config);
    EXPECT_THAT(e.error().text(), HasSubstr("no worker 'uesr' in this job; did you mean 'user'?"));
  }
}

}  // namespace
}  // namespace caftan::test::permission_test

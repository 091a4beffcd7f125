#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <stdexcept>

#include "caftan/rpc/wait.hpp"
#include "caftan/tensor/operators.hpp"
#include "counting_hook.hpp"
#include "fake_caller.hpp"

namespace caftan::call_test {
namespace {

using namespace std::chrono_literals;
using test::CountingHook;
using test::FakeCaller;
using test::FakeJob;

// What the workers of these tests offer.
int add(int a, int b) { return a + b; }
std::string greet(const std::string& name, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += "hello " + name + ";";
  return text;
}
void nothing() {}
int fail_with(std::string text) { throw std::runtime_error(text); }
int fail_in_torch(at::Tensor t) { return static_cast<int>(t.reshape({7, 7}).numel()); }
int fail_oddly() { throw 5; }
Result<int> refuse() { return Error(Errc::device_unavailable, "no such device"); }
at::Tensor twice(at::Tensor t) { return t * 2; }
std::string who(Worker& worker) { return worker.name(); }
std::string asked_by(const CallInfo& info, int) { return info.caller.name() + "/" + std::string(info.function); }
int ask_on(Worker& worker, const std::string& next, int a) { return worker.rpc_sync<&add>(next, a, 1); }
int nested(Worker& worker, int depth) {
  if (depth == 0) return 0;
  return 1 + worker.rpc_sync<&nested>(worker.name() == "worker0" ? "worker1" : "worker0", depth - 1);
}
Future<int> add_later(Worker& worker, int a, int b) {
  return worker.rpc_async<&add>("worker0", a, b).then([](Result<int> r) { return *r + 100; });
}
Future<int> never(Worker& worker) {
  static_cast<void>(worker);
  return Promise<int>().future();
}
int sleep_ms(Worker& worker, int ms) {
  Promise<int> promise(worker.alive().value());
  Future<int> future = promise.future();
  future.wait_for(std::chrono::milliseconds(ms));
  return ms;
}
std::int64_t remaining_ms() {
  return Ambient::current()->deadline == base::kNever ? -1 : Ambient::current()->deadline.time_since_epoch().count();
}
int unregistered(int a) { return a; }
int starts_counted = 0;
int count_start() { return ++starts_counted; }
struct Point {
  int x = 0;
  int y = 0;
  template <class A>
  void serialize(A& archive, unsigned) {
    archive& x& y;
  }
};
Point mirror(Point p) { return {p.y, p.x}; }
class Secret {  // as in Boost's own examples
 public:
  Secret() = default;
  explicit Secret(int x) : x_(x) {}
  int x() const { return x_; }

 private:
  friend class boost::serialization::access;
  template <class A>
  void serialize(A& archive, unsigned) {
    archive& x_;
  }
  int x_ = 0;
};
Secret keep_secret(const Secret& secret) { return Secret(secret.x() + 1); }
struct Unsendable {
  int x = 0;
};
Unsendable make_unsendable() { return {}; }
int overloaded(int a) { return a; }
[[maybe_unused]] int overloaded(double) { return 0; }

inline constexpr RemoteFunction<int(int, int)> kAdd{"math.add"};
inline constexpr RemoteFunction<int(int)> kOverloaded{"math.overloaded"};
inline constexpr RemoteFunction<int(int, double)> kWrongAdd{"math.add"};
inline constexpr RemoteFunction<int(int)> kMissing{"math.missing"};

Registry make_registry() {
  Registry registry;
  registry.add<&add>("math.add", brief);
  registry.add(kOverloaded, &overloaded);
  registry.add<&greet>("greet");
  registry.add<&nothing>("nothing");
  registry.add<&fail_with>("fail_with");
  registry.add<&fail_in_torch>("fail_in_torch");
  registry.add<&fail_oddly>("fail_oddly");
  registry.add<&refuse>("refuse");
  registry.add<&twice>("twice");
  registry.add<&who>("who");
  registry.add<&asked_by>("asked_by");
  registry.add<&ask_on>("ask_on");
  registry.add<&nested>("nested");
  registry.add<&add_later>("add_later");
  registry.add<&never>("never");
  registry.add<&sleep_ms>("sleep_ms");
  registry.add<&remaining_ms>("remaining_ms");
  registry.add<&mirror>("mirror");
  registry.add<&make_unsendable>("make_unsendable");
  registry.add<&keep_secret>("keep_secret");
  registry.add<&count_start>("count_start");
  return registry;
}

struct Calls : ::testing::Test {
  Calls() {
    for (int i = 0; i < 3; ++i) job.add(make_registry());
  }
  Worker& worker(int i = 0) { return job.at(i).worker(); }
  FakeJob job;
};

TEST_F(Calls, AreTypedAndReturnValues) {
  EXPECT_EQ(worker().rpc_sync<&add>("worker1", 1, 2), 3);
  EXPECT_EQ(worker().rpc_sync<&greet>("worker1", "ann", 2), "hello ann;hello ann;");
  worker().rpc_sync<&nothing>("worker1");
  const Point p = worker().rpc_sync<&mirror>("worker2", Point{1, 2});
  EXPECT_EQ(p.x, 2);
  EXPECT_EQ(worker().rpc_async<&add>("worker1", 4, 5).get(), 9);
  EXPECT_EQ(*worker().try_rpc_sync<&add>("worker1", 4, 5), 9);
}

TEST_F(Calls, CarryClassesWithAPrivateSerialize) {
  EXPECT_EQ(worker().rpc_sync<&keep_secret>("worker1", Secret(4)).x(), 5);
  EXPECT_EQ(worker().remote<&keep_secret>("worker1", Secret(4)).to_here().x(), 5);
}

TEST_F(Calls, GoToOneselfByTheSameWay) { EXPECT_EQ(worker().rpc_sync<&add>("worker0", 1, 2), 3); }

TEST_F(Calls, TakeANameANumberOrAPeer) {
  const Peer peer = worker().peer("worker1");
  EXPECT_EQ(worker().rpc_sync<&who>(peer), "worker1");
  EXPECT_EQ(worker().rpc_sync<&who>(WorkerId{2}), "worker2");
  EXPECT_EQ(worker().try_rpc_sync<&who>("nobody").error().code(), Errc::unknown_worker);
  EXPECT_EQ(worker().try_rpc_sync<&who>(Peer()).error().code(), Errc::bad_arguments);
}

TEST_F(Calls, GoByHandleWithoutTheCalleesCode) {
  EXPECT_EQ(worker().rpc_sync(kAdd, "worker1", 1, 2), 3);
  EXPECT_EQ(worker().rpc_sync(kOverloaded, "worker1", 8), 8);
}

TEST_F(Calls, CarryTensors) {
  const at::Tensor t = worker().rpc_sync<&twice>("worker1", at::ones({2, 3}));
  EXPECT_TRUE(t.equal(at::full({2, 3}, 2)));
}

TEST_F(Calls, TellTheCalleeWhoCalls) { EXPECT_EQ(worker(2).rpc_sync<&asked_by>("worker1", 0), "worker2/asked_by"); }

TEST_F(Calls, AnAsynchronousFunctionAnswersWhenItsFutureIsThere) {
  EXPECT_EQ(worker().rpc_sync<&add_later>("worker1", 1, 2), 103);
}

TEST_F(Calls, APromiseThatAnAsynchronousFunctionDropsNamesTheFunction) {
  const Error called = worker().try_rpc_sync<&never>("worker1").error();
  EXPECT_EQ(called.message(), "broken_promise: worker1: never: the promise was dropped without a result");
}

TEST_F(Calls, NestedBlockingCallsFinish) { EXPECT_EQ(worker().rpc_sync<&nested>("worker1", 20), 20); }

TEST_F(Calls, CALL2_AnUnknownFunctionSaysHowToRegisterIt) {
  const Error remote = worker().try_rpc_sync(kMissing, "worker1", 1).error();
  EXPECT_EQ(remote.code(), Errc::unknown_function);
  EXPECT_EQ(remote.worker(), "worker1");
  EXPECT_NE(remote.text().find("registry.add<&f>(\"math.missing\")"), std::string::npos) << remote.text();
  const Error local = worker().try_rpc_sync<&unregistered>("worker1", 1).error();
  EXPECT_EQ(local.code(), Errc::unknown_function);
  EXPECT_NE(local.text().find("unregistered>(\"...\") gives it one"), std::string::npos) << local.text();
}

TEST_F(Calls, ACopyOfARegistryHasItsEntriesAndNoneThatIsRegisteredLater) {
  {
    Registry registry;
    registry.add<&add>("math.add");
    job.add(registry);
    registry.add<&unregistered>("late");
    job.add(registry);
  }
  EXPECT_EQ(worker(3).rpc_sync<&add>("worker4", 1, 2), 3);
  EXPECT_EQ(worker(4).rpc_sync<&add>("worker3", 1, 2), 3);
  EXPECT_EQ(worker(4).rpc_sync<&unregistered>("worker4", 5), 5);
  const Error late = worker(4).try_rpc_sync<&unregistered>("worker3", 5).error();
  EXPECT_EQ(late.code(), Errc::unknown_function);
  EXPECT_EQ(late.worker(), "worker3");
}

TEST_F(Calls, CALL2_AnotherSignatureNamesBoth) {
  const Error error = worker().try_rpc_sync(kWrongAdd, "worker1", 1, 2.0).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_EQ(error.text(), "math.add is int(int, int) here, the caller has int(int, double)");
}

TEST_F(Calls, CALL2_BytesThatDoNotDecodeAreBadArguments) {
  job.at(0).set_tamper([](rpc::OutRequest& request) { request.body.pop_back(); });
  const Error shorter = worker().try_rpc_sync<&add>("worker1", 1, 2).error();
  EXPECT_EQ(shorter.code(), Errc::bad_arguments);
  EXPECT_NE(shorter.text().find("argument 2 of math.add is no int"), std::string::npos) << shorter.text();
  job.at(0).set_tamper([](rpc::OutRequest& request) { request.body.push_back(std::byte{0}); });
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::bad_arguments);
  job.at(0).set_tamper([](rpc::OutRequest& request) { request.body.resize(5); });
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::malformed_payload);
  job.at(0).set_tamper(nullptr);
  EXPECT_EQ(worker().rpc_sync<&add>("worker1", 1, 2), 3) << "the worker goes on";
}

TEST_F(Calls, CALL4_ExceptionsArriveWithWorkerFunctionAndText) {
  const Error error = worker().try_rpc_sync<&fail_with>("worker1", "boom").error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_EQ(error.worker(), "worker1");
  EXPECT_EQ(error.text(), "fail_with: std::runtime_error: boom");
  EXPECT_EQ(worker().try_rpc_sync<&fail_oddly>("worker1").error().code(), Errc::remote_exception);
  EXPECT_EQ(worker().try_rpc_sync<&refuse>("worker1").error().code(), Errc::device_unavailable);
  EXPECT_EQ(worker().rpc_sync<&add>("worker1", 1, 2), 3) << "the worker goes on";
}

TEST_F(Calls, CALL4_ATorchErrorHasNoBacktrace) {
  const Error error = worker().try_rpc_sync<&fail_in_torch>("worker1", at::ones({3})).error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_NE(error.text().find("shape '[7, 7]'"), std::string::npos) << error.text();
  EXPECT_EQ(error.text().find("frame #"), std::string::npos) << error.text();
}

TEST_F(Calls, CALL4_AFailingCallInsideIsTheCause) {
  const Error error = worker().try_rpc_sync<&ask_on>("worker1", "nobody", 1).error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  ASSERT_NE(error.cause(), nullptr);
  EXPECT_EQ(error.cause()->code(), Errc::unknown_worker);
}

TEST_F(Calls, AResultThatCannotBeSentIsUnsupported) {
  const Error error = worker().try_rpc_sync(RemoteFunction<Point()>{"make_unsendable"}, "worker1").error();
  EXPECT_EQ(error.code(), Errc::bad_arguments) << "another signature";
  const RRef<Unsendable> made = worker().remote<&make_unsendable>("worker1");
  job.executor.run_until_idle();
  EXPECT_EQ(made.failed(), std::nullopt) << "it may stay where it is";
  const Error fetched = RRef<int>(made.handle()).try_to_here().error();
  EXPECT_EQ(fetched.code(), Errc::unsupported);
  EXPECT_NE(fetched.text().find("Unsendable cannot be sent"), std::string::npos) << fetched.text();
}

TEST_F(Calls, CALL13_AReplyOfAnotherTypeIsWrongType) {
  job.at(0).set_tamper_reply([](rpc::InPayload& reply) {
    auto body = std::make_shared<wire::Bytes>(reply.body.begin(), reply.body.end());
    (*body)[0] ^= std::byte{1};
    reply.body = *body;
    reply.owner = body;
  });
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::wrong_type);
  job.at(0).set_tamper_reply([](rpc::InPayload& reply) { reply.body = reply.body.first(9); });
  const Error error = worker().try_rpc_sync<&add>("worker1", 1, 2).error();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_EQ(error.worker(), "worker1");
}

TEST_F(Calls, CALL1_ATimeoutEndsTheCallAndLeavesNothing) {
  const Error error = worker().with({.timeout = 5ms}).try_rpc_sync<&sleep_ms>("worker1", 50).error();
  EXPECT_EQ(error.code(), Errc::timeout);
  EXPECT_EQ(job.at(0).pending(), 0U);
  EXPECT_EQ(worker().with({.timeout = 100ms}).rpc_sync<&sleep_ms>("worker1", 50), 50);
}

TEST_F(Calls, ANegativeTimeoutIsRefusedAndZeroMeansNone) {
  EXPECT_EQ(worker().with({.timeout = -1ms}).try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::bad_arguments);
  job.at(0).set_default_timeout(1ms);
  EXPECT_EQ(worker().with({.timeout = 0ms}).rpc_sync<&sleep_ms>("worker1", 20), 20);
  EXPECT_EQ(worker().try_rpc_sync<&sleep_ms>("worker1", 20).error().code(), Errc::timeout);
}

TEST_F(Calls, CALL5_NestedCallsInheritTheTimeThatIsLeft) {
  Ambient ambient;
  ambient.deadline = job.executor.clock().now() + 5ms;
  const auto expected = ambient.deadline.time_since_epoch().count();
  const AmbientSwap swap(&ambient);
  EXPECT_EQ(worker().with({.timeout = 1h}).rpc_sync<&remaining_ms>("worker1"), expected);
  EXPECT_EQ(worker().with({.timeout = 0ms}).rpc_sync<&remaining_ms>("worker1"), expected);
  job.executor.advance(6ms);
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::timeout);
  EXPECT_EQ(job.at(0).pending(), 0U);
}

/// The gate of a call that arrived at `when` and begins at once.
class ArrivedAt final : public rpc::BeginGate {
 public:
  explicit ArrivedAt(base::TimePoint when) : when_(when) {}
  bool may_hold_back() const noexcept override { return false; }
  bool hold_back(const void*, const std::function<base::Task()>&) override { return false; }
  void begins(std::string_view, base::TimePoint) noexcept override {}
  bool is_caller_gone() const noexcept override { return false; }
  base::TimePoint arrived() const noexcept override { return when_; }

 private:
  const base::TimePoint when_;
};

struct KeptReply final : rpc::ResponderSink {
  void answer(Result<rpc::OutReply>&& reply) noexcept override { error = reply ? Error() : reply.error(); }
  Error error;
};

TEST_F(Calls, U6_CALL5_ACallThatIsTooLateToRunNamesItsTimeAndWhatSetsIt) {
  EXPECT_EQ(worker().rpc_sync<&add>("worker1", 1, 2), 3);
  const wire::Bytes body = job.at(0).last_request().body;
  rpc::Dispatcher dispatcher(job.at(1));
  const base::TimePoint now = job.executor.clock().now();
  const auto refused = [&](std::shared_ptr<rpc::BeginGate> gate) {
    rpc::InPayload payload;
    payload.body = body;
    CallInfo info;
    info.caller = job.at(0).peer();
    info.deadline = now - 50ms;
    info.gate = std::move(gate);
    const auto kept = std::make_shared<KeptReply>();
    dispatcher.call(std::move(payload), std::move(info), rpc::Responder(kept));
    EXPECT_EQ(kept->error.code(), Errc::timeout);
    return kept->error.text();
  };
  const std::string key = "; its caller sets the time (CallOptions::timeout, else cluster.rpc_timeout)";
  EXPECT_EQ(refused(std::make_shared<ArrivedAt>(now - 300ms + 1us)),
            "math.add: its time was over before it ran: 250ms were left when it arrived, and it waited 300ms for a "
            "runner or its turn" +
                key);
  EXPECT_EQ(refused(nullptr), "math.add: its time was over before it ran" + key);
}

TEST_F(Calls, CALL5_ACancelledCallSendsNoFurtherOnes) {
  const auto cancel = std::make_shared<CancelFlag>();
  Ambient ambient;
  ambient.cancel = cancel;
  const AmbientSwap swap(&ambient);
  EXPECT_EQ(worker().rpc_sync<&add>("worker1", 1, 2), 3);
  cancel->set();
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::cancelled);
}

TEST_F(Calls, CALL1_CancelEndsTheCallAndTheCalleeDoesNotStartIt) {
  starts_counted = 0;
  Future<int> future = worker().rpc_async<&count_start>("worker1");
  EXPECT_TRUE(future.cancel());
  EXPECT_EQ(future.result().error().code(), Errc::cancelled);
  EXPECT_EQ(job.at(0).pending(), 0U);
  EXPECT_FALSE(future.cancel());
  job.executor.run_until_idle();
  EXPECT_EQ(starts_counted, 0) << "the callee started it";
  EXPECT_EQ(worker().rpc_sync<&count_start>("worker1"), 1);
}

TEST_F(Calls, CALL1_PeerDownEndsCallsInFlight) {
  Future<int> future = worker().rpc_async<&sleep_ms>("worker1", 50);
  job.executor.run_until_idle();
  job.at(1).go_down();
  EXPECT_EQ(future.result().error().code(), Errc::peer_down);
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::peer_down);
}

TEST_F(Calls, CALL11_AnEndedWorkerAnswersShutDown) {
  const CallSite site = worker();
  Future<int> open = site.rpc_async<&add>("worker1", 1, 2);
  job.executor.run_until_idle();
  job.end(0);
  EXPECT_EQ(open.get(), 3) << "what was there stays there";
  EXPECT_EQ(site.try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::shut_down);
  EXPECT_EQ(site.try_remote<&add>("worker1", 1, 2).error().code(), Errc::shut_down);
  EXPECT_EQ(site.try_peer("worker1").error().code(), Errc::shut_down);
}

TEST_F(Calls, AnErrorThatNoCodeReadIsReportedOnce) {
  { Future<int> dropped = worker().rpc_async<&fail_with>("worker1", "x"); }
  job.executor.run_until_idle();
  {
    Future<int> dropped = worker().rpc_async<&fail_with>("worker1", "y");
    job.executor.run_until_idle();
  }
  worker().rpc_async<&fail_with>("worker1", "seen").result().error();
  { Future<int> dropped = worker().rpc_async<&add>("worker1", 1, 2); }
  job.executor.run_until_idle();
  EXPECT_EQ(job.at(0).unobserved(),
            (std::vector<std::string>{"fail_with: remote_exception", "fail_with: remote_exception"}));
}

TEST_F(Calls, CALL3_EveryRequestMeetsOneEnd) {
  CountingHook caller_hook, callee_hook;
  job.at(0).set_hook(&caller_hook);
  job.at(1).set_hook(&callee_hook);
  worker().rpc_sync<&add>("worker1", 1, 2);
  worker().try_rpc_sync<&fail_with>("worker1", "x").error();
  worker().with({.timeout = 1ms}).try_rpc_sync<&sleep_ms>("worker1", 9).error();
  Future<int> cancelled = worker().rpc_async<&add>("worker1", 1, 2);
  cancelled.cancel();
  worker().rpc_op("worker1", "aten::neg", at::ones({1}));
  worker().remote<&add>("worker1", 1, 2).to_here();
  job.executor.run_until_idle();
  job.at(1).go_down();
  worker().try_rpc_sync<&add>("worker1", 1, 2).error();
  job.executor.advance(1s);
  EXPECT_EQ(caller_hook.counts().requests, 8);
  EXPECT_EQ(caller_hook.counts().unsent, 1);
  EXPECT_EQ(caller_hook.counts().replies_received, 4);
  EXPECT_EQ(caller_hook.counts().replies_dropped, 3);
  EXPECT_EQ(caller_hook.counts().peers_down, 1);
  EXPECT_TRUE(caller_hook.all_ended_once());
  EXPECT_EQ(callee_hook.counts().received, 6) << "the cancelled call was not run";
  EXPECT_EQ(callee_hook.counts().replies, 3 + 1) << "add, the late answer, neg, fetch";
}

TEST_F(Calls, AHookMayRefuseACall) {
  CountingHook hook;
  hook.refuse(Error(Errc::unknown_context, "no such context"));
  job.at(1).set_hook(&hook);
  EXPECT_EQ(worker().try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::unknown_context);
}

TEST_F(Calls, CALL9_TheThreadsAmbientIsAsBeforeACall) {
  Ambient ambient;
  ambient.trace = 9;
  const AmbientSwap swap(&ambient);
  EXPECT_EQ(worker().rpc_sync<&add>("worker0", 1, 2), 3);
  EXPECT_EQ(Ambient::current(), &ambient);
  EXPECT_EQ(ambient.trace, 9U);
}

TEST(Registry, RefusesWhatCannotBeNamed) {
  Registry registry;
  registry.add<&add>("math.add");
  registry.add<&nothing>("math.add");
  registry.add<&who>("no spaces");
  const Error error = registry.freeze().error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_NE(error.text().find("'math.add' is registered twice"), std::string::npos);
  EXPECT_NE(error.text().find("'no spaces' is no name"), std::string::npos);
  Registry frozen;
  ASSERT_TRUE(frozen.freeze());
  frozen.add<&add>("late");
  EXPECT_TRUE(frozen.names().empty());
}

TEST(Registry, ANameHasAtMost128Characters) {
  const std::string longest(128, 'x');
  Registry registry;
  registry.add<&add>(longest);
  EXPECT_TRUE(registry.freeze());
  Registry beyond;
  beyond.add<&add>(longest + "y");
  const Result<void> refused = beyond.freeze();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("xy' is no name"), std::string::npos) << refused.error().text();
}

TEST(Signature, IsMadeOfWhatTravels) {
  EXPECT_EQ(rpc::CallTypes<decltype(&greet)>::signature(), "std::string(std::string, int)");
  EXPECT_EQ(rpc::CallTypes<decltype(&add_later)>::signature(), "int(int, int)");
  EXPECT_EQ(rpc::CallTypes<decltype(&refuse)>::signature(), "int()");
  EXPECT_EQ(rpc::CallTypes<decltype(&twice)>::signature(), "Tensor(Tensor)");
}

}  // namespace
}  // namespace caftan::call_test

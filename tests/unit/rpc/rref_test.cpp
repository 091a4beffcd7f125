#include "caftan/rpc/rref.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/COW.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "caftan/tensor/operators.hpp"
#include "fake_caller.hpp"

namespace caftan::rref_test {
namespace {

using namespace std::chrono_literals;
using test::FakeJob;

/// A class with one method of each kind.
class Net {
 public:
  Net(int in, int out) : weight_(at::ones({in, out})) {
    if (in < 0) throw std::invalid_argument("in is negative");
  }
  at::Tensor forward(const at::Tensor& x) const { return x.matmul(weight_); }
  const at::Tensor& weight() const { return weight_; }
  void grow(double by) { weight_.add_(by); }
  int rows() const noexcept { return static_cast<int>(weight_.size(0)); }
  int fail() { throw std::runtime_error("no net"); }
  /// Passes `self` to the function `rows_of` at worker `name`, which calls `rows` of this object.
  int ask(Worker& worker, const RRef<Net>& self, const std::string& name);
  int ask_and_keep(Worker& worker, const RRef<Net>& self, const std::string& name) { return ask(worker, self, name); }
  RRef<at::Tensor> share_weight(Worker& worker) { return worker.make_rref(weight_); }
  /// While this method runs, worker `name` fetches the weight.
  at::Tensor lend(Worker& worker, const std::string& name);

 private:
  at::Tensor weight_;
};

class Counter {
 public:
  explicit Counter(Worker& worker) : name_(worker.name()) {}
  int add(int by) { return value_ += by; }
  std::string name() const { return name_; }

 private:
  std::string name_;
  int value_ = 0;
};

/// Stays where it was made.
class Pinned {
 public:
  Pinned(int number, std::string text) : text_(text + " " + std::to_string(number)), strand_(rpc::Strand::held_here()) {
    if (number < 0) throw std::invalid_argument("number is negative");
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  const std::string& text() const noexcept { return text_; }
  const std::shared_ptr<rpc::Strand>& strand() const noexcept { return strand_; }

 private:
  const std::string text_;
  const std::shared_ptr<rpc::Strand> strand_;
};

int add(int a, int b) { return a + b; }
int fail_to_make() { throw std::runtime_error("not made"); }
void nothing() {}
std::string to_text(int value) { return std::to_string(value); }
int rows_of(const RRef<Net>& net) { return net.rpc_sync<&Net::rows>(); }
RRef<Net> pass_on(RRef<Net> net) { return net; }
at::Tensor fetch_tensor(const RRef<at::Tensor>& tensor) { return tensor.to_here(); }
int sum_here(RRef<int> a, RRef<int> b) { return a.to_here() + b.to_here(); }
int wait_long(Worker& worker) {
  Promise<int> promise(worker.alive().value());
  promise.future().wait_for(1h);
  return 1;
}

/// A class whose constructor takes 6 ms, and whose exclusive method `hold` keeps the object's turn for an hour.
class Slow {
 public:
  Slow() = default;
  explicit Slow(Worker& worker) : worker_(&worker) { wait(6ms); }
  int hold() {
    wait(1h);
    return 1;
  }
  template <class Archive>
  void serialize(Archive&, unsigned) {}

 private:
  void wait(base::Duration time) {
    Promise<int> promise(worker_->alive().value());
    promise.future().wait_for(time);
  }
  Worker* worker_ = nullptr;
};

/// A class whose constructor takes 6 ms, and which counts how many objects were made.
class Board {
 public:
  Board(Worker& worker, int size) : size_(size) {
    Promise<int> promise(worker.alive().value());
    promise.future().wait_for(6ms);
    ++made;
    if (size < 0) throw std::invalid_argument("size is negative");
  }
  int size() const { return size_; }
  int grow(int by) { return size_ += by; }

  static inline int made = 0;  // one thread runs at a time

 private:
  int size_;
};

int Net::ask(Worker& worker, const RRef<Net>& self, const std::string& name) {
  return worker.rpc_sync<&rows_of>(name, self);
}

at::Tensor Net::lend(Worker& worker, const std::string& name) {
  return worker.rpc_sync<&fetch_tensor>(name, share_weight(worker));
}

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&fail_to_make>("fail_to_make");
  registry.add<&nothing>("nothing");
  registry.add<&to_text>("to_text");
  registry.add<&rows_of>("rows_of");
  registry.add<&pass_on>("pass_on");
  registry.add<&fetch_tensor>("fetch_tensor");
  registry.add<&sum_here>("sum_here");
  registry.add<&wait_long>("wait_long");
  registry.add<Net>("net")
      .constructor<int, int>()
      .method<&Net::forward>("forward")
      .method<&Net::weight>("weight")
      .method<&Net::grow>("grow")
      .concurrent<&Net::rows>("rows", brief)
      .method<&Net::fail>("fail")
      .method<&Net::ask>("ask")
      .exclusive<&Net::ask_and_keep>("ask_and_keep")
      .method<&Net::share_weight>("share_weight")
      .exclusive<&Net::lend>("lend");
  registry.add<Slow>("slow").constructor<Worker&>().exclusive<&Slow::hold>("hold");
  registry.add<Board>("board")
      .constructor<Worker&, int>()
      .method<&Board::size>("size", brief)
      .method<&Board::grow>("grow");
  registry.add<Counter>("counter").constructor<Worker&>().method<&Counter::add>("add").method<&Counter::name>("name");
  return registry;
}

struct RRefs : ::testing::Test {
  RRefs() {
    for (int i = 0; i < 3; ++i) job.add(make_registry());
  }
  Worker& worker(int i = 0) { return job.at(i).worker(); }
  FakeJob job;
};

TEST_F(RRefs, HoldWhatAFunctionReturned) {
  const RRef<int> sum = worker().remote<&add>("worker1", 1, 2);
  EXPECT_EQ(sum.owner_name(), "worker1");
  EXPECT_FALSE(sum.is_owner());
  EXPECT_EQ(sum.to_here(), 3);
  EXPECT_EQ(sum.to_here(), 3) << "each call fetches anew";
  EXPECT_EQ(*sum.try_to_here(), 3);
  const RRef<void> done = worker().remote<&nothing>("worker1");
  done.to_here();
}

TEST_F(RRefs, HoldObjectsMadeByConstructors) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  EXPECT_EQ(net.rpc_sync<&Net::rows>(), 4);
  const at::Tensor y = net.rpc_sync<&Net::forward>(at::ones({3, 4}));
  EXPECT_EQ(y.sizes(), (at::IntArrayRef{3, 2}));
  EXPECT_EQ(net.rpc_async<&Net::rows>().get(), 4);
  const RRef<Counter> counter = worker().remote<Counter>("worker2");
  EXPECT_EQ(counter.rpc_sync<&Counter::name>(), "worker2") << "Worker& is supplied to constructors too";
  EXPECT_EQ(counter.rpc_sync<&Counter::add>(2), 2);
  EXPECT_EQ(counter.rpc_sync<&Counter::add>(3), 5);
}

TEST_F(RRefs, AnUnknownConstructorNamesThoseThereAre) {
  const Error error = worker().try_remote<Net>("worker1", "four").error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_EQ(error.text(), "there is no constructor net(std::string); registered: net(int, int)");
}

using Asked = std::optional<Result<RRef<Board>>>;

TEST_F(RRefs, U16_CALL20_ConcurrentCallersGetTheOneObject) {
  Board::made = 0;
  Asked first, second;
  job.executor.post([&] { first = worker(0).try_get_or_create<Board>("worker1", "shared", 4); });
  job.executor.post([&] { second = worker(2).try_get_or_create<Board>("worker1", "shared", 9); });
  job.executor.advance(1s);
  ASSERT_TRUE(first && *first && second && *second);
  EXPECT_EQ(Board::made, 1);
  EXPECT_EQ((*first)->id(), (*second)->id());
  EXPECT_EQ((*second)->rpc_sync<&Board::size>(), 4) << "made with the first caller's arguments";
  const RRef<Board> own = worker(1).get_or_create<Board>("worker1", "shared", 5);
  EXPECT_TRUE(own.is_owner());
  EXPECT_EQ(own.id(), (*first)->id());
  EXPECT_NE(worker().get_or_create<Board>("worker1", "other", 4).id(), own.id());
  EXPECT_NE(worker().get_or_create<Board>("worker2", "shared", 4).id(), own.id()) << "each worker has its own names";
}

TEST_F(RRefs, U16_CALL21_AThrowingConstructorFailsAllThatWaitAndTheNextCallTriesAgain) {
  Board::made = 0;
  Asked first, second;
  job.executor.post([&] { first = worker(0).try_get_or_create<Board>("worker1", "shared", -1); });
  job.executor.post([&] { second = worker(2).try_get_or_create<Board>("worker1", "shared", 9); });
  job.executor.advance(1s);
  EXPECT_EQ(Board::made, 1);
  for (const Asked& asked : {first, second}) {
    ASSERT_TRUE(asked && !*asked);
    EXPECT_EQ(asked->error().code(), Errc::remote_exception);
    EXPECT_EQ(asked->error().worker(), "worker1");
    EXPECT_NE(asked->error().text().find("size is negative"), std::string::npos) << asked->error().message();
  }
  EXPECT_EQ(worker(2).get_or_create<Board>("worker1", "shared", 9).rpc_sync<&Board::size>(), 9);
}

TEST_F(RRefs, U16_CALL20_AnotherClassUnderThatNameIsRefusedWithBothNames) {
  const RRef<Board> board = worker().get_or_create<Board>("worker1", "shared", 4);
  const Error error = worker(2).try_get_or_create<Counter>("worker1", "shared").error();
  EXPECT_EQ(error.code(), Errc::wrong_type);
  EXPECT_NE(error.text().find("Board"), std::string::npos) << error.text();
  EXPECT_NE(error.text().find("Counter"), std::string::npos) << error.text();
  EXPECT_EQ(worker().try_get_or_create<Board>("worker1", "", 4).error().code(), Errc::bad_arguments);
  EXPECT_EQ(worker().try_get_or_create<Board>("worker1", "other", "four").error().code(), Errc::bad_arguments)
      << "no such constructor";
}

TEST_F(RRefs, U16_CALL22_TheNameKeepsTheObject) {
  worker().get_or_create<Board>("worker1", "shared", 4).rpc_sync<&Board::grow>(3);
  job.executor.run_until_idle();
  EXPECT_EQ(worker(2).get_or_create<Board>("worker1", "shared", 1).rpc_sync<&Board::size>(), 7);
}

TEST_F(RRefs, ChainWithoutWaiting) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  const RRef<int> rows = net.remote<&Net::rows>();
  EXPECT_EQ(job.at(0).pending(), 0U) << "nothing waited for an answer";
  EXPECT_EQ(rows.to_here(), 4);
}

TEST_F(RRefs, TravelInArgumentsAndResults) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  EXPECT_EQ(worker().rpc_sync<&rows_of>("worker2", net), 4);
  EXPECT_EQ(worker().rpc_sync<&rows_of>("worker1", net), 4) << "at the owner itself";
  const RRef<Net> back = worker().rpc_sync<&pass_on>("worker2", net);
  EXPECT_EQ(back.id(), net.id());
  EXPECT_EQ(back.rpc_sync<&Net::rows>(), 4);
  const RRef<int> a = worker().remote<&add>("worker1", 1, 2);
  EXPECT_EQ(worker().rpc_sync<&sum_here>("worker2", a, a), 6);
  const RRef<Net> empty = worker().rpc_sync<&pass_on>("worker2", RRef<Net>());
  EXPECT_FALSE(empty);
}

TEST_F(RRefs, ToAnotherTypeAreRefused) {
  const RRef<int> number = worker().remote<&add>("worker1", 1, 2);
  const RRef<Net> wrong(number.handle());
  const Error argument = worker().try_rpc_sync<&rows_of>("worker2", wrong).error();
  EXPECT_EQ(argument.code(), Errc::bad_arguments);
  EXPECT_EQ(wrong.with({}).try_rpc_sync<&Net::rows>().error().code(), Errc::wrong_type);
  EXPECT_EQ(RRef<std::string>(number.handle()).try_to_here().error().code(), Errc::wrong_type);
}

TEST_F(RRefs, AFailedCreationIsSeenByEveryUse) {
  const RRef<int> failed = worker().remote<&fail_to_make>("worker1");
  const Error error = failed.try_to_here().error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_EQ(error.text(), "fail_to_make: std::runtime_error: not made");
  EXPECT_EQ(failed.failed()->code(), Errc::remote_exception);
  const RRef<Net> net = worker().remote<Net>("worker1", -1, 2);
  EXPECT_EQ(net.with({}).try_rpc_sync<&Net::rows>().error().code(), Errc::remote_exception);
}

TEST_F(RRefs, CALL4_AThrowingMethodIsAnErrorAndTheObjectGoesOn) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  EXPECT_EQ(net.try_rpc_sync<&Net::fail>().error().text(), "net.fail: std::runtime_error: no net");
  EXPECT_EQ(net.rpc_sync<&Net::rows>(), 4);
}

TEST_F(RRefs, AnEmptyOneIsABadArgumentToItsCalls) {
  const RRef<Net> empty;
  EXPECT_EQ(empty.try_rpc_sync<&Net::rows>().error().code(), Errc::bad_arguments);
  EXPECT_EQ(RRef<int>().try_to_here().error().code(), Errc::bad_arguments);
  EXPECT_EQ(RRef<int>().try_local_value().error().code(), Errc::bad_arguments);
}

TEST_F(RRefs, LocalValueIsForTheOwnerOnly) {
  const RRef<int> remote = worker().remote<&add>("worker1", 1, 2);
  const Error error = remote.try_local_value().error();
  EXPECT_EQ(error.code(), Errc::not_owner);
  EXPECT_NE(error.text().find("worker0"), std::string::npos);
  EXPECT_NE(error.text().find("worker1"), std::string::npos);
  const RRef<int> own = worker().remote<&add>("worker0", 1, 2);
  EXPECT_TRUE(own.is_owner());
  *own.local_value() = 9;
  EXPECT_EQ(own.to_here(), 9);
  const RRef<at::Tensor> tensor = worker().make_rref(at::zeros({2}));
  EXPECT_TRUE(tensor.to_here().is_same(*tensor.local_value())) << "on the owner tensors are shared";
}

TEST_F(RRefs, TheTimeoutOfToHereHoldsOnTheOwnerToo) {
  const RRef<int> remote = worker().remote<&wait_long>("worker1");
  EXPECT_EQ(remote.with({.timeout = 5ms}).try_to_here().error().code(), Errc::timeout);
  const RRef<int> own = worker().remote<&wait_long>("worker0");
  EXPECT_EQ(own.with({.timeout = 5ms}).try_to_here().error().code(), Errc::timeout);
}

TEST_F(RRefs, B8_ToHereAtTheOwnerTakesNoLongerThanItsTimeoutAltogether) {
  const RRef<Slow> own = worker().remote<Slow>("worker0");  // there after 6 ms
  // `hold` begins after the constructor and keeps the object's turn for an hour.
  Future<int> held = own.rpc_async<&Slow::hold>();
  const base::TimePoint begun = job.executor.clock().now();
  EXPECT_EQ(own.with({.timeout = 10ms}).try_to_here().error().code(), Errc::timeout);
  EXPECT_EQ(job.executor.clock().now() - begun, 10ms);
  EXPECT_EQ(held.get(), 1);
}

TEST_F(RRefs, AFetchOfWhatCannotBeSentIsUnsupported) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  EXPECT_EQ(RRef<int>(net.handle()).try_to_here().error().code(), Errc::unsupported);
}

TEST_F(RRefs, CALL12_TensorsThatLeftAnObjectDoNotChangeWithIt) {
  const RRef<Net> net = worker().remote<Net>("worker0", 2, 2);
  const at::Tensor inside = net.local_value()->weight();
  const at::Tensor fetched = net.rpc_sync<&Net::weight>();
  EXPECT_FALSE(fetched.is_same(inside));
  // Neither tensor may share memory by libtorch's copy-on-write, because libtorch releases such memory safely on one
  // thread only.
  EXPECT_FALSE(c10::impl::cow::is_cow_data_ptr(inside.storage().data_ptr()));
  EXPECT_FALSE(c10::impl::cow::is_cow_data_ptr(fetched.storage().data_ptr()));
  net.rpc_sync<&Net::grow>(1.0);
  EXPECT_TRUE(fetched.equal(at::ones({2, 2})));
  EXPECT_TRUE(net.rpc_sync<&Net::weight>().equal(at::ones({2, 2}) + 1));
}

TEST_F(RRefs, ATensorThatAMethodRefersToTakesItsTurnsWithTheObject) {
  const RRef<Net> net = worker().remote<Net>("worker0", 2, 2);
  const auto object = net.handle()->local_value().get();
  const RRef<at::Tensor> weight = net.rpc_sync<&Net::share_weight>();
  const auto tensor = weight.handle()->local_value().get();
  EXPECT_EQ(tensor->shared_strand(), object->shared_strand());
  EXPECT_EQ(tensor->strand().object(), net.id());
  const RRef<at::Tensor> alone = worker().make_rref(at::ones({2}));
  EXPECT_EQ(alone.handle()->local_value().get()->strand().object(), alone.id());
}

TEST_F(RRefs, U16_MakeRRefConstructsInPlace) {
  const RRef<Pinned> pinned = worker().make_rref<Pinned>(4, "four");
  EXPECT_TRUE(pinned.is_owner());
  EXPECT_EQ(pinned.local_value()->text(), "four 4");
  EXPECT_EQ(pinned.local_value()->strand(), pinned.handle()->local_value().get()->shared_strand())
      << "its constructor has the first turn";
  EXPECT_THROW((void)worker().make_rref<Pinned>(-1, "less"), std::invalid_argument);
  EXPECT_EQ(worker().make_rref<std::string>(3, 'x').to_here(), "xxx");
  EXPECT_EQ(worker().make_rref<std::string>().to_here(), "");
  const std::string copied = "copied";
  EXPECT_EQ(worker().make_rref<std::string>(copied).to_here(), copied);
  EXPECT_EQ(worker().make_rref<std::string>(std::string("moved")).to_here(), "moved");
}

TEST_F(RRefs, CALL8_AFetchOfATensorWhoseObjectKeepsItsTurnWouldDeadlock) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  const Error error = net.try_rpc_sync<&Net::lend>("worker2").error();
  const Error* cause = &error;
  while (cause->cause()) cause = cause->cause();
  EXPECT_EQ(cause->code(), Errc::would_deadlock) << error.message();
}

TEST_F(RRefs, CALL7_AMethodThatWaitsCanBeCalledBack) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  EXPECT_EQ(net.rpc_sync<&Net::ask>(net, "worker2"), 4);
}

TEST_F(RRefs, CALL8_ACallBackToAnExclusiveMethodWouldDeadlockAndSaysTheChain) {
  const RRef<Net> net = worker().remote<Net>("worker1", 4, 2);
  const Error error = net.try_rpc_sync<&Net::ask_and_keep>(net, "worker2").error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  const Error* cause = &error;
  while (cause->cause()) cause = cause->cause();
  EXPECT_EQ(cause->code(), Errc::would_deadlock);
  EXPECT_NE(cause->text().find(" -> "), std::string::npos) << cause->text();
  EXPECT_EQ(net.rpc_sync<&Net::rows>(), 4) << "the turn is free again";
}

TEST_F(RRefs, CALL11_OfAnEndedWorkerAnswerShutDown) {
  const RRef<int> sum = worker().remote<&add>("worker1", 1, 2);
  EXPECT_EQ(sum.to_here(), 3);
  job.executor.run_until_idle();
  job.end(0);
  EXPECT_EQ(sum.try_to_here().error().code(), Errc::shut_down);
}

}  // namespace
}  // namespace caftan::rref_test

// SE-35 to SE-37: which calls begin while answers pile up, and in which order.
#include "caftan/net/internal/serve_gate.hpp"

#include <gtest/gtest.h>

#include <string>

namespace caftan::net::serve_gate_test {
namespace {

/// A call that asks the gate, and notes its name once it has begun.
class Calls {
 public:
  explicit Calls(std::uint64_t limit) : gate(limit) {}

  struct Call {
    std::string name;
    const void* order = nullptr;
    ServeGate::Place place;
  };
  void ask(const std::shared_ptr<Call>& call) {
    ServeGate::Tasks ready;
    if (gate.pass(
            call->place, call->order, [&] { return base::Task([this, call] { ask(call); }); }, ready)) {
      begun += call->name;
    }
    run(std::move(ready));
  }
  void ask(std::string name, const void* order = nullptr) {
    ask(std::make_shared<Call>(Call{std::move(name), order, {}}));
  }
  void backlog(std::uint64_t bytes) { run(gate.on_backlog(bytes)); }
  void run(ServeGate::Tasks ready) {
    for (base::Task& task : ready) task();
  }

  ServeGate gate;
  std::string begun;
};

TEST(ServeGate, T10_SE35_NothingBeginsAboveTheLimitUntilHalfOfItIsLeft) {
  Calls calls(100);
  calls.backlog(100);
  EXPECT_FALSE(calls.gate.is_busy());
  calls.ask("a");
  calls.backlog(101);
  EXPECT_TRUE(calls.gate.is_busy());
  calls.ask("b");
  calls.ask("c");
  calls.backlog(51);
  EXPECT_EQ(calls.begun, "a");
  calls.backlog(50);
  EXPECT_EQ(calls.begun, "abc");
  EXPECT_FALSE(calls.gate.is_busy());
}

TEST(ServeGate, SE35_WhatWasLetGoAsksAgain) {
  Calls calls(100);
  calls.backlog(1000);
  for (const char* name : {"a", "b", "c"}) calls.ask(name);
  auto ready = calls.gate.on_backlog(0);
  ASSERT_EQ(ready.size(), 3U);
  ready[0]();
  calls.backlog(1000);  // the reply of "a" closes the gate again
  ready[1]();
  ready[2]();
  EXPECT_EQ(calls.begun, "a");
  calls.backlog(0);
  EXPECT_EQ(calls.begun, "abc");
}

TEST(ServeGate, SE36_CallsOfOneObjectBeginInOrderHoweverTheyAreRun) {
  const int object = 0;
  Calls calls(100);
  calls.backlog(1000);
  for (const char* name : {"a", "b", "c"}) calls.ask(name, &object);
  auto ready = calls.gate.on_backlog(0);
  ASSERT_EQ(ready.size(), 3U);
  calls.ask("d", &object);  // "d" came later than the held calls, and asks while they are on their way
  calls.ask("X");           // a call of no object does not wait for the calls of `object`
  ready[2]();
  ready[1]();
  EXPECT_EQ(calls.begun, "X");
  ready[0]();
  EXPECT_EQ(calls.begun, "Xabcd");
  EXPECT_FALSE(calls.gate.is_busy());
}

TEST(ServeGate, SE36_ObjectsDoNotWaitForEachOther) {
  const int one = 0;
  const int other = 0;
  Calls calls(100);
  calls.backlog(1000);
  calls.ask("a", &one);
  calls.ask("b", &other);
  auto ready = calls.gate.on_backlog(0);
  ASSERT_EQ(ready.size(), 2U);
  ready[1]();  // the turn of the first object is taken: its call has its task and has not asked yet
  EXPECT_EQ(calls.begun, "b");
  ready[0]();
  EXPECT_EQ(calls.begun, "ba");
}

TEST(ServeGate, SE37_TheEndOfThePeerDropsWhatWasHeldBack) {
  const int object = 0;
  Calls calls(100);
  calls.backlog(1000);
  calls.ask("a", &object);
  calls.ask("b");
  EXPECT_EQ(calls.gate.close().size(), 2U);
  EXPECT_FALSE(calls.gate.is_busy());
  calls.ask("c", &object);
  EXPECT_EQ(calls.begun, "c");
}

}  // namespace
}  // namespace caftan::net::serve_gate_test

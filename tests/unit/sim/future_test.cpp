// Futures as events (SM-12): the key from the start, when a run waits for them, and what becomes of one that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caftan/sim/internal/kernel.hpp"
#include "caftan/sim/sequential.hpp"

namespace caftan::sim::future_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Note {
  std::string text{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& text;
  }
};

/// A future in the shape of caftan::Future. It says in a log when its value is waited for.
class Later {
 public:
  using value_type = Note;
  Later(std::vector<std::string>& log, Result<Note> outcome)
      : log_(&log), outcome_(std::make_unique<Result<Note>>(std::move(outcome))) {}
  Later(Later&&) = default;
  Later& operator=(Later&&) = default;
  template <class F>
  void then(F&& continuation) && {
    continuation(std::move(*outcome_));
  }
  Result<Note> result() && {
    log_->push_back("wait for " + (*outcome_ ? (*outcome_)->text : "an error"));
    return std::move(*outcome_);
  }

 private:
  std::vector<std::string>* log_;
  std::unique_ptr<Result<Note>> outcome_;
};

/// What the processes of a test do; process 0 does something at its start, each logs the notes that it gets.
struct Script {
  std::function<void(LpContext&)> at_start{};
  std::function<void(const Note&, LpContext&)> at_note{};
  std::vector<std::string> log{};
  Later later(std::string text) { return {log, Note{std::move(text)}}; }
  Later failing() { return {log, Error(Errc::timeout, "agent", "agent.act: no reply within 30 s")}; }
};
struct Scripted {
  using Events = sim::Events<Note>;
  Script* script;
  void start(LpContext& lp) const {
    if (lp.id() == LpId(0)) script->at_start(lp);
  }
  void on(const Note& note, LpContext& lp) const {
    script->log.push_back(note.text);
    if (script->at_note) script->at_note(note, lp);
  }
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

std::function<void(Builder&)> model(Script& script) {
  return [&script](Builder& builder) {
    builder.lookahead(1);
    builder.add<Scripted>(2, [&](LpId) { return Scripted{&script}; });
  };
}
std::unique_ptr<Kernel> started(Script& script, KernelOptions options = {}) {
  auto kernel = make_kernel(model(script), options).value();
  const auto begun = kernel->start();
  EXPECT_TRUE(begun) << begun;
  return kernel;
}
Time units(double value) { return time_of(value).value(); }

TEST(SimFuture, SM12_TheEventHasItsKeyFromTheStartAndTheRunWaitsWhenItIsNext) {
  Script script;
  script.at_start = [&](LpContext& lp) {
    lp.schedule(2, script.later("future"));
    lp.schedule(2, Note{"behind it"});
    lp.schedule(2, Note{"before it"}, {.priority = -1});
    lp.schedule(1, Note{"early"});
  };
  const auto kernel = started(script);
  EXPECT_THAT(script.log, IsEmpty()) << "nothing waits before the event is next";
  EXPECT_EQ(kernel->counters().sent, 4);
  EXPECT_EQ(kernel->pending(), 4);
  EXPECT_EQ(kernel->next(), units(1));
  ASSERT_TRUE(kernel->run_until(units(2)));
  EXPECT_THAT(script.log, ElementsAre("early"));
  EXPECT_EQ(kernel->next(), units(2));
  ASSERT_TRUE(kernel->run_until(units(3)));
  EXPECT_THAT(script.log, ElementsAre("early", "before it", "wait for future", "future", "behind it"));
  EXPECT_EQ(kernel->counters().handled, 4);
}

TEST(SimFuture, SM12_TheRunHasTheBitsOfOneWithTheValues) {
  const auto fingerprint = [](bool as_future) {
    Script script;
    script.at_start = [&](LpContext& lp) {
      const std::string text(200, 'x');
      if (as_future) {
        lp.schedule(1, script.later(text), LpId(1), {.priority = 3});
      } else {
        lp.schedule(1, Note{text}, LpId(1), {.priority = 3});
      }
    };
    return run_sequential(model(script), {.end_time = 5}).value().fingerprint;
  };
  EXPECT_EQ(fingerprint(true), fingerprint(false));
}

TEST(SimFuture, SM12_OneThatFailsEndsTheRunAndNamesProcessEventAndCall) {
  Script script;
  script.at_start = [&](LpContext& lp) { lp.schedule(2, Note{"half"}), lp.schedule(1.5, script.failing(), LpId(1)); };
  const auto run = run_sequential(model(script), {.end_time = 5});
  EXPECT_EQ(run.error().code(), Errc::timeout);
  EXPECT_THAT(run.error().text(),
              AllOf(HasSubstr("LP 0"), HasSubstr("Scripted"), HasSubstr("Note"), HasSubstr("LP 1"),
                    HasSubstr("the future of this event has failed: timeout: agent: agent.act: no reply within 30 s")));
}

TEST(SimFuture, SM12_OneThatIsNotReachedEndsNothing) {
  Script script;
  script.at_start = [&](LpContext& lp) { lp.schedule(5, script.failing()); };
  const auto run = run_sequential(model(script), {.end_time = 5});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->pending, 1);
  EXPECT_THAT(script.log, IsEmpty());
}

TEST(SimFuture, SM12_ACancelledOneIsNeverWaitedFor) {
  Script script;
  script.at_start = [&](LpContext& lp) { EXPECT_TRUE(lp.cancel(lp.schedule(2, script.failing()))); };
  const auto kernel = started(script);
  EXPECT_EQ(kernel->pending(), 0);
  ASSERT_TRUE(kernel->save()) << "nor by a checkpoint";
  ASSERT_TRUE(kernel->run_until(units(9)));
  EXPECT_THAT(script.log, IsEmpty());
}

TEST(SimFuture, SM12_ACheckpointWaitsOnceAndHasTheValues) {
  Script script;
  script.at_start = [&](LpContext& lp) {
    lp.schedule(3, script.later("second"));
    lp.schedule(2, script.later("first"));
  };
  const auto kernel = started(script);
  const auto file = kernel->save();
  ASSERT_TRUE(file);
  EXPECT_THAT(script.log, ElementsAre("wait for first", "wait for second"));
  ASSERT_TRUE(kernel->save());
  ASSERT_TRUE(kernel->run_until(units(4)));
  EXPECT_THAT(script.log, ElementsAre("wait for first", "wait for second", "first", "second"));

  Script other;
  const auto loaded = make_kernel(model(other), {}).value();
  ASSERT_TRUE(loaded->load(*file));
  ASSERT_TRUE(loaded->run_until(units(4)));
  EXPECT_THAT(other.log, ElementsAre("first", "second"));
}

TEST(SimFuture, SM12_ACheckpointOfOneThatFailsFails) {
  Script script;
  script.at_start = [&](LpContext& lp) { lp.schedule(3, script.failing()); };
  const auto kernel = started(script);
  EXPECT_EQ(kernel->save().error().code(), Errc::timeout);
  EXPECT_EQ(kernel->run_until(units(1)).error().code(), Errc::timeout) << "the run is over";
}

/// Keeps what leaves the partition.
struct Left final : EventSink {
  explicit Left(std::vector<std::string>& into) : log(into) {}
  void on_event(std::uint32_t partition, const Event& event, wire::ByteView payload) override {
    log.push_back("to " + std::to_string(partition) + " at " + to_string(Time{event.time}) + ": " +
                  wire::decode<std::string>(payload).value());
    EXPECT_FALSE(event.is_awaited());
  }
  std::vector<std::string>& log;
};

TEST(SimFuture, SM12_OneForAnotherPartitionLeavesAtTheEndOfTheWindow) {
  Script script;
  script.at_start = [&](LpContext& lp) {
    lp.schedule(1, script.later("at start"), LpId(1)), lp.schedule(1, Note{"a"});
  };
  script.at_note = [&](const Note& note, LpContext& lp) {
    lp.schedule(1, Note{note.text + "b"});
    lp.schedule(1.5, script.later("of " + note.text), LpId(1));
  };
  Left left(script.log);
  const auto kernel = make_kernel(model(script), {}, 0, 2).value();
  kernel->send_to(left);
  ASSERT_TRUE(kernel->start());
  EXPECT_THAT(script.log, ElementsAre("wait for at start", "to 1 at 1: at start"));
  script.log.clear();
  ASSERT_TRUE(kernel->run_until(units(2.5)));
  EXPECT_THAT(script.log,
              ElementsAre("a", "ab", "wait for of a", "to 1 at 2.5: of a", "wait for of ab", "to 1 at 3.5: of ab"));
}

TEST(SimFuture, SM3_WhatIsWrongWithTheDelayIsKnownBeforeTheValue) {
  Script script;
  script.at_start = [&](LpContext& lp) { lp.schedule(0.5, script.failing(), LpId(1)); };
  EXPECT_EQ(run_sequential(model(script), {.end_time = 5}).error().code(), Errc::lookahead_violation);
}

TEST(SimFuture, AValueOverTheLimitOfMessagesIsNamed) {
  Script script;
  script.at_start = [&](LpContext& lp) { lp.schedule(1, script.later(std::string(1000, 'x'))); };
  const auto kernel = started(script, {.largest_event = 500});
  const Error error = kernel->run_until(units(2)).error();
  EXPECT_EQ(error.code(), Errc::limit_exceeded);
  EXPECT_THAT(error.text(), AllOf(HasSubstr("LP 0"), HasSubstr("Note"), HasSubstr("limits.message")));
}

}  // namespace
}  // namespace caftan::sim::future_test

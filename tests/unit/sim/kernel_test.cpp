// What processes can do in a sequential run: order, cancelling, finishing, statistics, records, streams, checkpoints.
#include "caftan/sim/internal/kernel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>

#include "caftan/sim/sequential.hpp"

namespace caftan::sim::kernel_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Note {
  std::string text{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& text;
  }
};
/// A process that does at its start and at each note what the test says.
struct Scripted {
  using Events = sim::Events<Note>;
  std::function<void(LpContext&)> at_start = [](LpContext&) {};
  std::function<void(const Note&, LpContext&)> at_note = [](const Note&, LpContext&) {};
  void start(LpContext& lp) { at_start(lp); }
  void on(const Note& note, LpContext& lp) { at_note(note, lp); }
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

Result<SequentialRun> run_one(Scripted process, SequentialOptions options) {
  return run_sequential([&](Builder& builder) { builder.add<Scripted>([&] { return process; }); }, options);
}

TEST(Kernel, SM1_OfEventsAtOneTimeThatOfSmallerPriorityComesFirst) {
  std::vector<std::string> seen;
  Scripted process;
  process.at_start = [](LpContext& lp) {
    lp.schedule(1, Note{"third"}, {.priority = 1});
    lp.schedule(1, Note{"second"});
    lp.schedule(1, Note{"first"}, {.priority = -128});
    lp.schedule(Time{1}, Note{"before"});
  };
  process.at_note = [&](const Note& note, LpContext&) { seen.push_back(note.text); };
  const SequentialRun run = run_one(process, {.end_time = 2}).value();
  EXPECT_THAT(seen, ElementsAre("before", "first", "second", "third"));
  EXPECT_EQ(run.handled, 4);
  EXPECT_EQ(run.pending, 0);
}

TEST(Kernel, SM4_EventsAtTheEndStayPending) {
  Scripted process;
  process.at_start = [](LpContext& lp) { lp.schedule(2, Note{}), lp.schedule(1.5, Note{}), lp.schedule(9, Note{}); };
  const SequentialRun run = run_one(process, {.end_time = 2}).value();
  EXPECT_EQ(run.sent, 3);
  EXPECT_EQ(run.handled, 1);
  EXPECT_EQ(run.pending, 2);
}

TEST(Kernel, SM11_LaterChangesOfWhatWasScheduledDoNotCount) {
  std::string seen;
  Scripted process;
  process.at_start = [](LpContext& lp) {
    Note note{std::string(100, 'a')};
    lp.schedule(1, note);
    note.text[0] = 'b';
  };
  process.at_note = [&](const Note& note, LpContext&) { seen = note.text; };
  ASSERT_TRUE(run_one(process, {.end_time = 2}));
  EXPECT_EQ(seen, std::string(100, 'a'));
}

TEST(Kernel, SM4_ACancelledEventIsNotHandled) {
  std::vector<bool> answers;
  EventHandle kept;
  int handled = 0;
  Scripted process;
  process.at_start = [&](LpContext& lp) {
    kept = lp.schedule(2, Note{"kept"});
    lp.schedule(1, Note{"cancels"});
    lp.schedule(3, Note{"too late"});
  };
  process.at_note = [&](const Note&, LpContext& lp) {
    ++handled;
    answers.push_back(lp.cancel(kept));
    answers.push_back(lp.cancel(kept));
  };
  const SequentialRun run = run_one(process, {.end_time = 9}).value();
  EXPECT_EQ(handled, 2);
  EXPECT_THAT(answers, ElementsAre(true, false, false, false));
  EXPECT_EQ(run.cancelled, 1);
  EXPECT_EQ(run.sent, run.handled + run.pending + run.cancelled);
}

TEST(Kernel, SM4_AnEventOfThePresentTimeIsCancelledOnlyIfItIsPending) {
  std::vector<bool> answers;
  EventHandle late, early;
  Scripted process;
  process.at_start = [&](LpContext& lp) {
    late = lp.schedule(1, Note{"late"}, {.priority = 5});
    early = lp.schedule(1, Note{"early"});
  };
  process.at_note = [&](const Note& note, LpContext& lp) {
    if (note.text == "late") lp.schedule(0, Note{"after late"}, {.priority = -5});
    if (note.text != "after late") return;
    answers.push_back(lp.cancel(late));  // its key is larger than the present one, but it was handled
    const EventHandle now = lp.schedule(0, Note{"never"}, {.priority = -9});
    answers.push_back(lp.cancel(now));  // its key is smaller than the present one, but it is pending
  };
  const SequentialRun run = run_one(process, {.end_time = 9}).value();
  EXPECT_THAT(answers, ElementsAre(false, true));
  EXPECT_EQ(run.handled, 3);
}

TEST(Kernel, SM8_FinishEndsTheRunOneLookaheadLater) {
  for (const bool has_lookahead : {false, true}) {
    int handled = 0;
    Scripted process;
    process.at_start = [&](LpContext& lp) {
      for (int i = 1; i < 10; ++i) lp.schedule(i, Note{});
    };
    process.at_note = [&](const Note&, LpContext& lp) {
      ++handled;
      if (lp.now() == Time{3 * kTicksPerUnit}) lp.finish();
    };
    const auto run = run_sequential(
        [&](Builder& builder) {
          if (has_lookahead) builder.lookahead(2);
          builder.add<Scripted>([&] { return process; });
        },
        {.end_time = 100});
    ASSERT_TRUE(run) << (run ? Error() : run.error());
    EXPECT_EQ(run->end.units(), has_lookahead ? 5 : 3);
    EXPECT_EQ(handled, has_lookahead ? 4 : 3);
  }
}

TEST(Kernel, SM10_RecordsBelongToHandledEvents) {
  Scripted process;
  process.at_start = [](LpContext& lp) { lp.schedule(1, Note{}), lp.schedule(5, Note{}); };
  process.at_note = [](const Note&, LpContext& lp) { lp.record("seen", lp.now().units()), lp.record("other", 0); };
  const SequentialRun run = run_one(process, {.end_time = 2, .record = {.series = {"seen", "sen"}}}).value();
  ASSERT_EQ(run.records.size(), 1);
  EXPECT_EQ(run.records[0].value, 1);
  EXPECT_THAT(run.missing_series, ElementsAre(HasSubstr("did you mean 'seen'?")));
}

/// A queue of the closed network of the design.
struct Job {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};
struct Done {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};
struct Queue {
  using Events = sim::Events<Job, Done>;
  LpId next{};
  int first_jobs = 0;
  std::deque<Job> line{};
  TimeAverage length{};
  void start(LpContext& lp) {
    for (int i = 0; i < first_jobs; ++i) on(Job{}, lp);
  }
  void on(const Job& job, LpContext& lp) {
    line.push_back(job);
    length.set(lp.now(), static_cast<double>(line.size()));
    if (line.size() == 1) lp.schedule(lp.random("service").exponential(10), Done{});
  }
  void on(const Done&, LpContext& lp) {
    lp.schedule(1, line.front(), next);
    line.pop_front();
    length.set(lp.now(), static_cast<double>(line.size()));
    if (!line.empty()) lp.schedule(lp.random("service").exponential(10), Done{});
  }
  static void statistics(auto& s, Queue& q) { s("jobs in queue", q.length, "jobs"); }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& line& length;
  }
};

void build_ring(Builder& builder, std::uint32_t queues) {
  builder.lookahead(1);
  builder.add<Queue>(queues, [&](LpId id) { return Queue{LpId((id.value + 1) % queues), 2, {}, {}}; });
}

TEST(Kernel, StatisticsForgetTheWarmUp) {
  const auto build = [](Builder& builder) { build_ring(builder, 8); };
  const SequentialRun run = run_sequential(build, {.end_time = 20'000, .seed = 3, .warmup = 1000}).value();
  ASSERT_EQ(run.statistics.size(), 1);
  EXPECT_EQ(run.statistics[0].name, "jobs in queue");
  EXPECT_EQ(run.statistics[0].processes, 8);
  const auto& length = std::get<TimeAverage>(run.statistics[0].value);
  EXPECT_DOUBLE_EQ(length.span(), 8 * 19'000);
  // 16 jobs, less those on the way: a queue serves once in about 16 units.
  EXPECT_NEAR(length.mean(), 2, 0.15);
}

TEST(Kernel, SM18_TheFingerprintIsThatOfTheSeed) {
  const auto build = [](Builder& builder) { build_ring(builder, 8); };
  const SequentialRun one = run_sequential(build, {.end_time = 500, .seed = 3}).value();
  const SequentialRun same = run_sequential(build, {.end_time = 500, .seed = 3}).value();
  const SequentialRun other = run_sequential(build, {.end_time = 500, .seed = 4}).value();
  EXPECT_EQ(one.fingerprint.size(), 64);
  EXPECT_EQ(one.fingerprint, same.fingerprint);
  EXPECT_NE(one.fingerprint, other.fingerprint);
}

TEST(Kernel, SM18_TheFingerprintIsSha256) {
  // Of no bytes, and of eight bytes of zero.
  EXPECT_EQ(fingerprint({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::uint64_t zero[] = {0};
  EXPECT_EQ(fingerprint(zero), "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
}

TEST(Kernel, SM15_ARunGoesOnFromItsCheckpointWithTheSameBits) {
  const auto build = [](Builder& builder) { build_ring(builder, 8); };
  const KernelOptions options{.seed = 5, .records = {.all = true}};
  auto whole = make_kernel(build, options).value();
  ASSERT_TRUE(whole->start());
  ASSERT_TRUE(whole->run_until(Time{200 * kTicksPerUnit}));
  const wire::CheckpointFile file = whole->save().value();
  ASSERT_TRUE(whole->run_until(Time{400 * kTicksPerUnit}));
  auto resumed = make_kernel(build, options).value();
  ASSERT_TRUE(resumed->load(file));
  ASSERT_TRUE(resumed->loaded());
  ASSERT_TRUE(resumed->run_until(Time{400 * kTicksPerUnit}));
  EXPECT_EQ(resumed->hashes().value(), whole->hashes().value());
  EXPECT_EQ(resumed->counters().handled, whole->counters().handled);
}

}  // namespace
}  // namespace caftan::sim::kernel_test

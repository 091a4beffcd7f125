#include "caftan/rpc/strand.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "baton_executor.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/wait.hpp"

namespace caftan::rpc::strand_test {
namespace {

using test::BatonExecutor;

/// A strand whose jobs write their names down.
struct Fixture {
  BatonExecutor executor;
  Strand strand{executor};
  std::string log;

  void add(std::string name, TurnMode mode = TurnMode::serial) {
    strand.run([this, name] { log += name; }, mode);
  }
  /// A job that waits for `future` in the middle.
  void add_waiting(std::string name, Future<void>& future, TurnMode mode = TurnMode::serial) {
    executor.post([this, name, &future, mode] {
      strand.run(
          [this, name, &future] {
            log += name + "(";
            future.get();
            EXPECT_TRUE(strand.is_held_here());
            log += ")" + name;
          },
          mode);
    });
  }
};

TEST(Strand, RunsInPlaceWhenFree) {
  Fixture f;
  f.add("a");
  EXPECT_EQ(f.log, "a");
  EXPECT_FALSE(f.strand.is_held_here());
}

TEST(Strand, CALL7_AJobAddedByAJobRunsAfterIt) {
  Fixture f;
  f.strand.run([&] {
    f.add("b");
    f.add("c");
    f.log += "a";
  });
  EXPECT_EQ(f.log, "a");
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "abc");
}

TEST(Strand, CALL7_AWaitGivesTheTurnBackAndTakesItAgainFirst) {
  Fixture f;
  Promise<void> promise;
  Future<void> future = promise.future();
  f.add_waiting("a", future);
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a(");
  f.strand.run([&] {
    f.log += "b";
    f.add("c");  // queued behind b
    promise.set({});
    f.executor.run_until_idle();  // a's wait is over, but a may go on only when b has ended
    f.log += "b";
  });
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a(bb)ac");
}

TEST(Strand, CALL7_M_WaitingForSeveralGivesTheTurnBackToo) {
  using Waiting = void (*)(std::vector<Future<int>>&);
  const Waiting for_all = [](std::vector<Future<int>>& futures) { EXPECT_EQ(wait_all(futures), std::vector<int>{7}); };
  const Waiting for_any = [](std::vector<Future<int>>& futures) { EXPECT_EQ(wait_any(futures), 0U); };
  for (const Waiting wait : {for_all, for_any}) {
    Fixture f;
    Promise<int> promise;
    std::vector<Future<int>> futures;
    futures.push_back(promise.future());
    f.executor.post([&] {
      f.strand.run([&] {
        f.log += "a(";
        wait(futures);
        EXPECT_TRUE(f.strand.is_held_here());
        f.log += ")a";
      });
    });
    f.executor.run_until_idle();
    f.add("b");
    EXPECT_EQ(f.log, "a(b") << "the turn was kept";
    promise.set(7);
    f.executor.run_until_idle();
    EXPECT_EQ(f.log, "a(b)a");
  }
}

TEST(Strand, CALL7_AnExclusiveJobKeepsItsTurnWhileItWaits) {
  Fixture f;
  Promise<void> promise;
  Future<void> future = promise.future();
  f.add_waiting("a", future, TurnMode::exclusive);
  f.executor.run_until_idle();
  f.add("b");
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a(");
  promise.set({});
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a()ab");
}

TEST(Strand, CALL7_ConcurrentJobsOverlapWithEachOtherOnly) {
  Fixture f;
  Promise<void> promise;
  Future<void> future = promise.future();
  f.executor.post([&] {
    f.strand.run(
        [&] {
          f.log += "a(";
          f.add("b", TurnMode::concurrent);
          f.add("c", TurnMode::serial);
          f.add("d", TurnMode::concurrent);  // not ahead of c
          f.log += ")";
        },
        TurnMode::concurrent);
  });
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a(b)cd");
}

TEST(Strand, CALL7_TwoWaitingJobsComeBackInTheOrderOfTheirWishes) {
  Fixture f;
  Promise<void> first, second;
  Future<void> first_future = first.future(), second_future = second.future();
  f.add_waiting("a", first_future);
  f.add_waiting("b", second_future);
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a(b(");
  f.strand.run([&] {
    second.set({});
    first.set({});
    f.executor.run_until_idle();
    f.log += "-";
  });
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "a(b(-)b)a");
}

TEST(Strand, A5_AJobThatThrowsGivesItsTurnBack) {
  Fixture f;
  EXPECT_THROW(f.strand.run([] { throw std::runtime_error("no job does that"); }), std::runtime_error);
  f.add("a");
  EXPECT_EQ(f.log, "a");
}

TEST(Strand, A6_AQueuedJobGoesAheadOfJobsThatKeepComingBackFromWaits) {
  Fixture f;
  int rounds = 0;
  bool ended = false;
  const auto let_others_run = [&] {
    f.executor.with_wait([&](base::Executor::Wait& wait) {
      f.executor.post([&wait] { wait.point().notify(); });
      wait.wait(base::kNever, nullptr);
    });
  };
  const auto loop = [&] {
    for (int i = 0; i < 100 && !ended; ++i) {
      ++rounds;
      let_others_run();  // the wait of the other loop is over now, so that loop wants its turn back
      Promise<void> promise;
      Future<void> future = promise.future();
      f.executor.post([p = std::move(promise)]() mutable { p.set({}); });
      future.get();
    }
  };
  for (int i = 0; i < 2; ++i) f.executor.post([&] { f.strand.run(loop); });
  int when_run = 0;
  f.strand.run([&] {
    f.executor.run_until_idle();
    f.strand.run([&] {
      when_run = rounds;
      ended = true;
    });
  });
  f.executor.run_until_idle();
  EXPECT_TRUE(ended);
  EXPECT_LE(when_run, 8);
}

TEST(Strand, A6_CALL7_WaitsThatAreOverBeforeTheyBeginCountToo) {
  Fixture f;
  int rounds = 0;
  int when_run = 0;
  f.strand.run([&] {
    f.strand.run([&] { when_run = rounds; });
    for (; rounds < 100; ++rounds) make_ready_future<int>(rounds).get();
    EXPECT_TRUE(f.strand.is_held_here());
  });
  EXPECT_EQ(rounds, 100);
  EXPECT_EQ(when_run, 4);
}

TEST(Strand, A6_CALL7_SoDoPolledAndSeveralOnes) {
  for (const bool several : {false, true}) {
    Fixture f;
    int rounds = 0;
    int when_run = 0;
    f.strand.run([&] {
      f.strand.run([&] { when_run = rounds; });
      std::vector<Future<int>> futures;
      futures.push_back(make_ready_future<int>(1));
      for (; rounds < 100; ++rounds) {
        if (several) {
          wait_all(futures);
        } else {
          EXPECT_TRUE(futures.front().wait_for(base::Duration::zero()));
        }
      }
    });
    EXPECT_EQ(when_run, 4) << several;
  }
}

TEST(Strand, A6_AWaitForManyCountsOnce) {
  Fixture f;
  bool ran = false;
  f.strand.run([&] {
    f.strand.run([&] { ran = true; });
    std::vector<Future<int>> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(make_ready_future<int>(i));
    for (int round = 0; round < 4; ++round) EXPECT_EQ(wait_all(futures).size(), 100U);
    EXPECT_FALSE(ran);
    EXPECT_EQ(wait_all_results(futures).size(), 100U);
    EXPECT_TRUE(ran);
  });
}

TEST(Strand, A6_AnExclusiveTurnIsKeptThroughThem) {
  Fixture f;
  bool ran = false;
  f.strand.run(
      [&] {
        f.strand.run([&] { ran = true; });
        for (int i = 0; i < 100; ++i) make_ready_future<int>(i).get();
        EXPECT_FALSE(ran);
      },
      TurnMode::exclusive);
  f.executor.run_until_idle();
  EXPECT_TRUE(ran);
}

TEST(Strand, A6_TheQueueStaysInOrder) {
  Fixture f;
  Promise<void> promises[6];
  std::vector<Future<void>> futures;
  for (Promise<void>& promise : promises) futures.push_back(promise.future());
  for (int i = 0; i < 6; ++i)
    f.add_waiting(std::string(1, static_cast<char>('a' + i)), futures[static_cast<std::size_t>(i)]);
  f.executor.run_until_idle();
  f.log.clear();
  f.strand.run([&] {
    f.add("x");
    f.add("y");
    for (Promise<void>& promise : promises) promise.set({});
    f.executor.run_until_idle();  // the waits of all six are over, and all six want their turn back
  });
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, ")a)b)c)dx)e)fy");
}

TEST(Strand, ATurnIsNotCopiedToContinuations) {
  Fixture f;
  f.strand.run([&] {
    EXPECT_TRUE(f.strand.is_held_here());
    EXPECT_EQ(Ambient::capture().turn, nullptr);
  });
}

TEST(Held, ChainsSurviveTheWire) {
  HeldObjects held = with_held(nullptr, {RRefId{{1}, {2}, 3}, "agent"});
  held = with_held(held, {RRefId{{4}, {5}, 6}, "net"});
  wire::Bytes bytes;
  encode_held(held, bytes);
  const Result<HeldObjects> read = decode_held(bytes);
  ASSERT_TRUE(read);
  ASSERT_EQ((*read)->size(), 2U);
  EXPECT_EQ((**read)[1].id, (RRefId{{4}, {5}, 6}));
  EXPECT_EQ((**read)[0].name, "agent");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_held(wire::ByteView(bytes).first(size))) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_held(bytes).error().code(), Errc::malformed_payload);
}

TEST(Held, B2_WhatIsOverDoesNotTravel) {
  const auto over = std::make_shared<std::atomic<bool>>(false);
  HeldObjects held = with_held(nullptr, {RRefId{{1}, {2}, 3}, "agent", over});
  held = with_held(held, {RRefId{{4}, {5}, 6}, "net"});
  *over = true;
  wire::Bytes bytes;
  encode_held(held, bytes);
  const Result<HeldObjects> read = decode_held(bytes);
  ASSERT_TRUE(read);
  ASSERT_EQ((*read)->size(), 1U);
  EXPECT_EQ((**read)[0].name, "net");
}

TEST(Held, AChainOfSixtyFiveObjectsIsRefused) {
  HeldObjects held;
  for (std::uint64_t i = 1; i <= 65; ++i) held = with_held(held, {RRefId{{0}, {1}, i}, "o"});
  wire::Bytes bytes;
  encode_held(held, bytes);
  EXPECT_EQ(decode_held(bytes).error().code(), Errc::malformed_payload);
}

/// Two strands, and a job of the first that wants the second too.
struct TwoStrands {
  BatonExecutor executor;
  const std::vector<std::shared_ptr<Strand>> strands{std::make_shared<Strand>(executor),
                                                     std::make_shared<Strand>(executor)};
  Strand& first = *strands[0];
  Strand& second = *strands[1];
  std::string log;
  std::shared_ptr<Strand> kept;

  void add_to_both(std::string name) {
    executor.post([this, name] {
      first.run([this, name] {
        kept = Strand::run_with_all(std::span(strands).subspan(1), [this, name] {
          EXPECT_TRUE(second.is_held_here());
          log += name;
        });
      });
    });
  }
};

TEST(Strand, B3_DA23_OneWhoTakesSeveralTurnsKeepsThoseThatItHas) {
  TwoStrands f;
  f.second.run([&] {
    f.add_to_both("both");
    f.executor.run_until_idle();
    f.first.run([&] { f.log += "|first"; });
    EXPECT_EQ(f.log, "") << "the turn of the first was given back";
    f.log += "second|";
  });
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "second|both|first");
  EXPECT_EQ(f.kept, nullptr);
}

TEST(Strand, B3_DA23_ItGivesThemBackWhenAnExclusiveJobBeginsToWait) {
  TwoStrands f;
  Promise<void> promise;
  Future<void> asked = promise.future();
  f.second.run(
      [&] {
        f.add_to_both("both");
        f.executor.run_until_idle();
        f.first.run([&] {
          f.log += "first|";
          promise.set({});
        });
        EXPECT_EQ(f.log, "");
        asked.get();
        f.log += "second";
      },
      TurnMode::exclusive);
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "first|second");
  EXPECT_EQ(f.kept, f.strands[1]);
}

TEST(Strand, B3_DA23_ItDoesNotWaitForOneThatWaitsAlready) {
  TwoStrands f;
  Promise<void> promise;
  Future<void> asked = promise.future();
  f.executor.post([&] { f.second.run([&] { asked.get(); }, TurnMode::exclusive); });
  f.executor.run_until_idle();
  f.add_to_both("both");
  f.executor.run_until_idle();
  EXPECT_EQ(f.kept, f.strands[1]);
  promise.set({});
  f.executor.run_until_idle();
  f.add_to_both("both");
  f.executor.run_until_idle();
  EXPECT_EQ(f.log, "both") << "it waits no longer";
}

}  // namespace
}  // namespace caftan::rpc::strand_test

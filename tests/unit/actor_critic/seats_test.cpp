#include "actor_critic/seats.hpp"

#include <gtest/gtest.h>

namespace caftan::actor_critic::seats_test {
namespace {

Trajectories of(std::uint64_t actor, std::uint64_t version = 0) { return {.actor = actor, .version = version}; }

std::vector<std::uint64_t> actors_of(const std::vector<Trajectories>& batch) {
  std::vector<std::uint64_t> actors;
  for (const Trajectories& one : batch) actors.push_back(one.actor);
  return actors;
}

TEST(Seats, ABatchHasTheOldestOfEachActorInTheirOrder) {
  Seats seats(3, 0, 1);
  ASSERT_TRUE(seats.take(of(2, 5)));
  ASSERT_TRUE(seats.take(of(2, 6)));
  ASSERT_TRUE(seats.take(of(0)));
  EXPECT_FALSE(seats.is_ready());
  EXPECT_TRUE(seats.next_batch().empty());
  ASSERT_TRUE(seats.take(of(1)));
  ASSERT_TRUE(seats.is_ready());
  const auto batch = seats.next_batch();
  EXPECT_EQ(actors_of(batch), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(batch[2].version, 5U);
  EXPECT_EQ(seats.queued(), 1U);
}

TEST(Seats, ABatchOfANumberHasTheOldestOfWhicheverActors) {
  Seats seats(3, 2, 1);
  ASSERT_TRUE(seats.take(of(2)));
  ASSERT_TRUE(seats.take(of(2)));
  ASSERT_TRUE(seats.take(of(0)));
  EXPECT_EQ(actors_of(seats.next_batch()), (std::vector<std::uint64_t>{2, 2}));
  EXPECT_FALSE(seats.is_ready());
}

TEST(Seats, AnActorThatAsksIsAnsweredWhenItsTrajectoriesWereLearnedFrom) {
  Seats seats(1, 0, 1);
  int first = 0;
  int second = 0;
  ASSERT_TRUE(seats.ask(0, 0, [&] { ++first; }));
  EXPECT_EQ(first, 1) << "it has sent none";
  ASSERT_TRUE(seats.take(of(0)));
  ASSERT_TRUE(seats.take(of(0)));
  ASSERT_TRUE(seats.ask(0, 1, [&] { ++first; }));
  ASSERT_TRUE(seats.ask(0, 2, [&] { ++second; }));
  seats.answer();
  EXPECT_EQ(first, 1);
  (void)seats.next_batch();
  EXPECT_EQ(first, 1) << "the update is not over";
  seats.answer();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 0);
  seats.end();
  EXPECT_EQ(second, 1);
  ASSERT_TRUE(seats.ask(0, 9, [&] { ++second; }));
  EXPECT_EQ(second, 2) << "after the end at once";
}

// A learner waits for an evaluation in the middle of an update: an actor that asks then would play on with weights from
// before a checkpoint, at which all actors begin anew.
TEST(Seats, AnActorThatAsksDuringAnUpdateIsAnsweredWhenItIsOver) {
  Seats seats(1, 0, 0);
  int replies = 0;
  ASSERT_TRUE(seats.take(of(0)));
  (void)seats.next_batch();
  ASSERT_TRUE(seats.ask(0, 1, [&] { ++replies; }));
  EXPECT_EQ(replies, 0);
  seats.answer();
  EXPECT_EQ(replies, 1);
  ASSERT_TRUE(seats.ask(0, 1, [&] { ++replies; }));
  EXPECT_EQ(replies, 2) << "the update is over";
}

TEST(Seats, RefuseWhatAnActorCannotHaveSent) {
  Seats seats(2, 0, 0);
  EXPECT_EQ(seats.take(of(2)).error().code(), Errc::bad_arguments);
  EXPECT_FALSE(seats.ask(2, 0, [] {}));
  EXPECT_FALSE(seats.ask(0, 1, [] {}));
  ASSERT_TRUE(seats.take(of(0)));
  const auto second = seats.take(of(0));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().text().find("actor 0 is more than ahead = 0"), std::string::npos);
}

TEST(Seats, GoOnWithoutAnActorThatIsLost) {
  Seats seats(2, 0, 1);
  int answered = 0;
  ASSERT_TRUE(seats.take(of(1)));
  ASSERT_TRUE(seats.ask(0, 0, [] {}));
  EXPECT_FALSE(seats.is_ready());
  seats.lose(0);
  EXPECT_EQ(seats.left(), 1U);
  ASSERT_TRUE(seats.is_ready());
  EXPECT_EQ(actors_of(seats.next_batch()), (std::vector<std::uint64_t>{1}));
  ASSERT_TRUE(seats.ask(1, 1, [&] { ++answered; }));
  seats.answer();
  EXPECT_EQ(answered, 1);
  seats.lose(1);
  EXPECT_FALSE(seats.is_ready()) << "none is left";
}

TEST(Seats, ABatchIsNotLargerThanWhatIsLeftCanSend) {
  Seats seats(4, 8, 1);
  for (const std::size_t actor : {0U, 1U, 2U}) seats.lose(actor);
  ASSERT_TRUE(seats.take(of(3)));
  EXPECT_FALSE(seats.is_ready());
  ASSERT_TRUE(seats.take(of(3)));
  EXPECT_EQ(seats.next_batch().size(), 2U);
}

}  // namespace
}  // namespace caftan::actor_critic::seats_test

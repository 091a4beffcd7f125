// The rounds of a set of members, in directed and in random histories (GA-1 to GA-8).
#include "caftan/net/internal/gather_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace caftan::net::gather_rounds_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMembers = 3;
const std::array<std::string, kMembers> kNames = {"a", "b", "c"};

GatherRounds::Value value_of(int number) { return std::make_shared<const int>(number); }
int number_of(const GatherRounds::Value& value) { return *std::static_pointer_cast<const int>(value); }

/// Three members with a lane for each direction. Values and confirmations are delivered when the test says so.
class Job {
 public:
  Job() {
    for (std::uint32_t id = 0; id < kMembers; ++id) start(id);
    for (std::uint32_t id = 0; id < kMembers; ++id) meet(id);
  }

  GatherRounds& at(std::uint32_t id) { return members_.at(id); }
  WorkerLife life(std::uint32_t id) const { return {WorkerId{id}, Incarnation{lives_[id]}}; }

  /// Member `id` calls, with this value, which goes into the lanes to all others.
  Result<GatherRound> call(std::uint32_t id, int value) {
    const auto round = members_.at(id).begin_call(value_of(value));
    if (!round) return round;
    for (std::uint32_t to = 0; to < kMembers; ++to) {
      if (to != id) lanes[{id, to}].push_back({*round, members_.at(id).own_value()});
    }
    return round;
  }
  /// Delivers the oldest value of a lane, and its confirmation unless `confirms` is false.
  bool deliver(std::uint32_t from, std::uint32_t to, bool confirms = true) {
    auto& lane = lanes[{from, to}];
    if (lane.empty()) return false;
    const auto [round, value] = lane.front();
    lane.pop_front();
    const Result<void> taken = members_.at(to).on_value(life(from), round, value);
    EXPECT_TRUE(taken) << (taken ? "" : taken.error().message());
    if (confirms) members_.at(from).on_confirmed(WorkerId{to}, round);
    return true;
  }
  void deliver_all() {
    for (std::uint32_t from = 0; from < kMembers; ++from) {
      for (std::uint32_t to = 0; to < kMembers; ++to) {
        while (deliver(from, to)) {
        }
      }
    }
  }
  /// Returns the numbers that the call of a member has ended with, and ends it; none while it goes on.
  std::vector<int> take(std::uint32_t id) {
    const auto outcome = members_.at(id).outcome();
    if (!outcome || !*outcome) return {};
    std::vector<int> numbers;
    for (const GatherRounds::Value& value : **outcome) numbers.push_back(number_of(value));
    members_.at(id).end_call(true);
    return numbers;
  }
  Error error(std::uint32_t id) {
    const auto outcome = members_.at(id).outcome();
    return outcome && !*outcome ? outcome->error() : Error();
  }
  /// The life of member `id` ends; what is under way from it is lost.
  void lose(std::uint32_t id) {
    for (std::uint32_t other = 0; other < kMembers; ++other) {
      if (other == id) continue;
      lanes[{other, id}].clear();
      lanes[{id, other}].clear();
      members_.at(other).on_lost(life(id), Error(Errc::peer_down, kNames[id], "the connection broke"));
    }
  }
  /// A new life of member `id` begins, and meets all others.
  void start_anew(std::uint32_t id) {
    ++lives_[id];
    start(id);
    meet(id);
  }
  void meet(std::uint32_t id) {
    for (std::uint32_t other = 0; other < kMembers; ++other) {
      if (other == id) continue;
      members_.at(id).on_up(life(other));
      members_.at(other).on_up(life(id));
    }
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::pair<GatherRound, GatherRounds::Value>>> lanes;

 private:
  void start(std::uint32_t id) {
    std::vector<GatherRounds::Name> names;
    for (std::uint32_t each = 0; each < kMembers; ++each) names.push_back({WorkerId{each}, kNames[each]});
    members_.insert_or_assign(id, GatherRounds(names, life(id)));
  }

  std::array<std::uint64_t, kMembers> lives_{101, 201, 301};
  std::map<std::uint32_t, GatherRounds> members_;
};

TEST(GatherRounds, GA1_EndsWithTheValuesOfAllInTheirOrder) {
  Job job;
  ASSERT_TRUE(job.call(0, 10));
  ASSERT_TRUE(job.call(2, 30));
  job.deliver_all();
  EXPECT_FALSE(job.at(0).outcome()) << "b has not called";
  ASSERT_TRUE(job.call(1, 20));
  EXPECT_FALSE(job.at(1).outcome()) << "its value was not confirmed";
  job.deliver_all();
  for (std::uint32_t id = 0; id < kMembers; ++id) EXPECT_EQ(job.take(id), (std::vector<int>{10, 20, 30})) << id;
}

TEST(GatherRounds, GA2_AMemberThatIsThroughMayBeginTheNextRoundBeforeOthersHaveEndedThisOne) {
  Job job;
  for (const std::uint32_t id : {0U, 1U, 2U}) ASSERT_TRUE(job.call(id, static_cast<int>(id)));
  job.deliver_all();
  EXPECT_EQ(job.take(0).size(), 3U);
  ASSERT_TRUE(job.call(0, 100));
  job.deliver_all();
  EXPECT_FALSE(job.at(0).outcome());
  EXPECT_EQ(job.take(1), (std::vector<int>{0, 1, 2})) << "not the value of the next round";
  EXPECT_EQ(job.take(2), (std::vector<int>{0, 1, 2}));
  ASSERT_TRUE(job.call(1, 101));
  ASSERT_TRUE(job.call(2, 102));
  job.deliver_all();
  for (std::uint32_t id = 0; id < kMembers; ++id) EXPECT_EQ(job.take(id), (std::vector<int>{100, 101, 102})) << id;
}

TEST(GatherRounds, GA2_ACallEndsOnlyWhenAllOthersHaveItsValue) {
  Job job;
  for (const std::uint32_t id : {0U, 1U, 2U}) ASSERT_TRUE(job.call(id, static_cast<int>(id)));
  while (job.deliver(1, 0) || job.deliver(2, 0) || job.deliver(0, 1)) {
  }
  ASSERT_TRUE(job.deliver(0, 2, false));
  EXPECT_FALSE(job.at(0).outcome()) << "c may not have the value of a";
  EXPECT_EQ(job.at(0).why_late("barrier", 2s).text(), "barrier: c has not confirmed this worker's value within 2s");
}

TEST(GatherRounds, GA3_ARepeatedValueChangesNothing) {
  Job job;
  const auto round = job.call(0, 10);
  ASSERT_TRUE(round);
  job.deliver_all();
  EXPECT_TRUE(job.at(1).on_value(job.life(0), *round, value_of(11)));
  ASSERT_TRUE(job.call(1, 20));
  ASSERT_TRUE(job.call(2, 30));
  job.deliver_all();
  EXPECT_EQ(job.take(1), (std::vector<int>{10, 20, 30}));
  EXPECT_TRUE(job.at(1).on_value(job.life(0), *round, value_of(11))) << "of a round that is over here";
  EXPECT_EQ(job.take(2), (std::vector<int>{10, 20, 30}));
}

TEST(GatherRounds, GA4_ALostMemberWithoutAValueEndsTheCallByName) {
  Job job;
  ASSERT_TRUE(job.call(0, 10));
  ASSERT_TRUE(job.call(2, 30));
  job.deliver(2, 0);
  job.lose(1);
  EXPECT_EQ(job.error(0).code(), Errc::peer_down);
  EXPECT_EQ(job.error(0).worker(), "b");
  ASSERT_TRUE(job.error(0).cause());
  EXPECT_EQ(job.error(0).cause()->text(), "the connection broke");
}

TEST(GatherRounds, GA4_TheValueOfAMemberThatIsLostAfterwardsCounts) {
  Job job;
  for (const std::uint32_t id : {0U, 1U, 2U}) ASSERT_TRUE(job.call(id, static_cast<int>(id)));
  while (job.deliver(1, 0) || job.deliver(2, 0) || job.deliver(0, 2)) {
  }
  EXPECT_FALSE(job.at(0).outcome());
  job.lose(1);
  EXPECT_EQ(job.take(0), (std::vector<int>{0, 1, 2})) << "b needs the value of a no more";
}

TEST(GatherRounds, GA4_AMemberThatIsNotReachedIsNamed) {
  Job job;
  ASSERT_TRUE(job.call(0, 10));
  job.at(0).on_not_reached(WorkerId{2}, Error(Errc::peer_unreachable, "c", "c has not come"));
  EXPECT_EQ(job.error(0).worker(), "c");
  EXPECT_EQ(job.error(0).cause()->code(), Errc::peer_unreachable);
}

TEST(GatherRounds, GA5_AFailedCallLeavesItsRoundAndItsValue) {
  Job job;
  ASSERT_TRUE(job.call(0, 10));
  job.deliver_all();
  EXPECT_EQ(job.at(0).why_late("all_gather", 100ms).text(), "all_gather: b, c have not called it within 100ms");
  job.at(0).end_call(false);
  ASSERT_TRUE(job.call(1, 20));
  ASSERT_TRUE(job.call(2, 30));
  job.deliver_all();
  EXPECT_EQ(job.take(1), (std::vector<int>{10, 20, 30}));
  ASSERT_TRUE(job.call(1, 21)) << "the next round";
  ASSERT_TRUE(job.call(0, 11));
  job.deliver_all();
  EXPECT_EQ(job.take(0), (std::vector<int>{10, 20, 30})) << "the round of the failed call, with its value";
  EXPECT_EQ(job.take(2), (std::vector<int>{10, 20, 30}));
  ASSERT_TRUE(job.call(0, 12));
  ASSERT_TRUE(job.call(2, 32));
  job.deliver_all();
  for (std::uint32_t id = 0; id < kMembers; ++id) EXPECT_EQ(job.take(id), (std::vector<int>{12, 21, 32})) << id;
}

TEST(GatherRounds, GA6_ANewLifeBeginsTheRoundsAnewAtAll) {
  Job job;
  for (int round = 0; round < 2; ++round) {
    for (const std::uint32_t id : {0U, 1U, 2U}) ASSERT_TRUE(job.call(id, round));
    job.deliver_all();
    for (const std::uint32_t id : {0U, 1U, 2U}) ASSERT_EQ(job.take(id).size(), 3U);
  }
  job.lose(1);
  job.start_anew(1);
  for (const std::uint32_t id : {1U, 2U, 0U}) {
    const auto round = job.call(id, static_cast<int>(id) + 40);
    ASSERT_TRUE(round);
    EXPECT_EQ(round->number, 0U) << id;
    job.deliver_all();
  }
  for (const std::uint32_t id : {0U, 1U, 2U}) EXPECT_EQ(job.take(id), (std::vector<int>{40, 41, 42})) << id;
}

TEST(GatherRounds, GA6_ANewLifeEndsACallThatIsUnderWay) {
  Job job;
  ASSERT_TRUE(job.call(0, 10));
  job.start_anew(1);
  EXPECT_EQ(job.error(0).code(), Errc::peer_down);
  EXPECT_EQ(job.error(0).text(), "b began a new life before the call had ended");
}

TEST(GatherRounds, GA6_AValueForLivesThatAreNotKnownYetIsKept) {
  Job job;
  const WorkerLife anew{WorkerId{1}, Incarnation{777}};
  job.lose(1);
  std::vector<GatherRounds::Name> names;
  for (std::uint32_t each = 0; each < kMembers; ++each) names.push_back({WorkerId{each}, kNames[each]});
  GatherRounds b(names, anew);
  b.on_up(job.life(0));
  b.on_up(job.life(2));
  const auto round = b.begin_call(value_of(20));
  ASSERT_TRUE(round);
  EXPECT_TRUE(job.at(0).on_value(anew, *round, value_of(20))) << "before the session with the new life is reported";
  job.at(2).on_up(anew);
  ASSERT_TRUE(job.call(2, 30));
  job.deliver(2, 0);
  job.at(0).on_up(anew);
  const auto own = job.at(0).begin_call(value_of(10));
  ASSERT_TRUE(own);
  EXPECT_EQ(*own, *round);
  job.at(0).on_confirmed(WorkerId{1}, *own);
  job.at(0).on_confirmed(WorkerId{2}, *own);
  EXPECT_EQ(job.take(0), (std::vector<int>{10, 20, 30}));
}

TEST(GatherRounds, GA7_WhatNoHonestMemberSendsIsRefusedAndChangesNothing) {
  Job job;
  const auto round = job.call(0, 10);
  ASSERT_TRUE(round);
  GatherRound far = *round;
  far.number = 2;
  EXPECT_EQ(job.at(0).on_value(job.life(1), far, value_of(1)).error().code(), Errc::bad_arguments);
  far.number = 1;
  EXPECT_EQ(job.at(0).on_value(job.life(1), far, value_of(1)).error().code(), Errc::bad_arguments)
      << "the next round before the present one";
  EXPECT_TRUE(job.at(0).on_value(job.life(1), {12345, 1}, value_of(1))) << "of lives that are over";
  EXPECT_EQ(job.at(0).on_value(job.life(0), *round, value_of(1)).error().code(), Errc::bad_arguments) << "its own";
  EXPECT_EQ(job.at(0).on_value({WorkerId{7}, Incarnation{1}}, *round, value_of(1)).error().code(), Errc::bad_arguments)
      << "no member";
  EXPECT_EQ(job.at(0).on_value({WorkerId{1}, Incarnation{1}}, *round, value_of(1)).error().code(), Errc::bad_arguments)
      << "a life that was replaced";
  ASSERT_TRUE(job.call(1, 20));
  ASSERT_TRUE(job.call(2, 30));
  job.deliver_all();
  EXPECT_EQ(job.take(0), (std::vector<int>{10, 20, 30}));
}

TEST(GatherRounds, GA8_OneCallAtATime) {
  Job job;
  ASSERT_TRUE(job.call(0, 10));
  EXPECT_EQ(job.call(0, 11).error().code(), Errc::overloaded);
}

/// Random histories: members call again and again, values and confirmations are late, calls give up, members are lost
/// and come again. Whenever two members end a round of the same lives, they end it with the same values.
class Histories : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Histories, ::testing::Range(1U, 41U));

TEST_P(Histories, GA1_GA5_MembersThatEndARoundEndItWithTheSameValues) {
  std::mt19937 random(GetParam());
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  Job job;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<int>> ended;  // by lives and round
  std::array<GatherRound, kMembers> rounds{};
  int calls = 0;
  int ends = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::uint32_t id = draw(kMembers);
    switch (draw(20)) {
      case 0:
        if (job.at(id).is_called()) job.at(id).end_call(false);
        break;
      case 1:
        if (draw(10) != 0) break;
        job.lose(id);
        job.start_anew(id);
        break;
      case 2:
      case 3:
      case 4:
        if (job.at(id).is_called()) break;
        if (const auto round = job.call(id, ++calls)) rounds[id] = *round;
        break;
      default:
        job.deliver(id, (id + 1 + draw(kMembers - 1)) % kMembers);
    }
    for (std::uint32_t one = 0; one < kMembers; ++one) {
      const auto outcome = job.at(one).outcome();
      if (!outcome) continue;
      if (!*outcome) {
        job.at(one).end_call(false);
        continue;
      }
      const std::vector<int> values = job.take(one);
      ++ends;
      const auto [at, is_first] = ended.try_emplace({rounds[one].lives, rounds[one].number}, values);
      EXPECT_EQ(at->second, values) << "step " << step;
    }
  }
  EXPECT_GT(ends, 10);
}

}  // namespace
}  // namespace caftan::net::gather_rounds_test

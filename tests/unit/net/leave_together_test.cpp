// When all members of a job may leave, in directed and in random histories (LV-1 to LV-8).
#include "caftan/net/internal/leave_together.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace caftan::net::leave_together_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMembers = 3;
const std::vector<std::string> kNames = {"a", "b", "c"};

/// Three members with a lane for each direction. Reports are delivered when the test says so.
class Job {
 public:
  Job() {
    for (std::uint32_t id = 0; id < kMembers; ++id) start(id);
  }

  LeaveTogether& at(std::size_t id) { return members_.at(id); }
  WorkerLife life(std::uint32_t id) const { return {WorkerId{id}, Incarnation{lives_[id]}}; }

  /// Reports to both members that they have a session with each other, in their present lives.
  void connect(std::uint32_t one, std::uint32_t other) {
    members_.at(one).on_up(life(other));
    members_.at(other).on_up(life(one));
  }
  void connect_all() {
    for (std::uint32_t one = 0; one < kMembers; ++one) {
      for (std::uint32_t other = one + 1; other < kMembers; ++other) connect(one, other);
    }
  }
  void call(std::size_t id) { EXPECT_TRUE(members_.at(id).begin_call()); }
  void call_all() {
    for (std::size_t id = 0; id < kMembers; ++id) call(id);
  }
  /// Puts the report that member `id` has to make into the lanes to all others. Returns whether one was due.
  bool report(std::uint32_t id, std::uint64_t work = 0) {
    if (!members_.at(id).due()) return false;
    const LeaveReport report = members_.at(id).report(work);
    ++reports[id];
    for (std::uint32_t to = 0; to < kMembers; ++to) {
      if (to != id) lanes[{id, to}].push_back(report);
    }
    return true;
  }
  bool report_all(std::uint64_t work = 0) {
    bool some = false;
    for (std::uint32_t id = 0; id < kMembers; ++id) some |= report(id, work);
    return some;
  }
  bool deliver(std::uint32_t from, std::uint32_t to) {
    auto& lane = lanes[{from, to}];
    if (lane.empty()) return false;
    members_.at(to).on_report(life(from), lane.front());
    lane.pop_front();
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
  /// The life of member `id` ends. Each other member reads the reports that are under way from it, then notices the
  /// loss.
  void lose(std::uint32_t id) {
    for (std::uint32_t to = 0; to < kMembers; ++to) {
      if (to == id) continue;
      while (deliver(id, to)) {
      }
      lanes[{to, id}].clear();
      members_.at(to).on_lost(life(id), Error(Errc::peer_down, kNames[id], "the connection broke"));
    }
  }
  /// A new life of member `id` begins.
  void start_anew(std::uint32_t id) {
    ++lives_[id];
    start(id);
  }
  bool is_over(std::size_t id) {
    const auto outcome = members_.at(id).outcome();
    return outcome && *outcome;
  }
  Error error(std::size_t id) {
    const auto outcome = members_.at(id).outcome();
    return outcome && !*outcome ? outcome->error() : Error();
  }

  std::array<int, kMembers> reports{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<LeaveReport>> lanes;

 private:
  void start(std::uint32_t id) { members_.insert_or_assign(id, LeaveTogether(kNames, life(id))); }

  std::array<std::uint64_t, kMembers> lives_{101, 201, 301};
  std::map<std::size_t, LeaveTogether> members_;
};

TEST(LeaveTogether, LV1_IsOverWhenTwoRoundsOfAllMembersAreTheSame) {
  Job job;
  job.connect_all();
  EXPECT_FALSE(job.report_all()) << "no member has called it";
  job.call(0);
  job.call(1);
  EXPECT_TRUE(job.report_all());
  job.deliver_all();
  EXPECT_FALSE(job.at(0).due()) << "c has not called it";
  job.call(2);
  EXPECT_EQ(job.at(2).due(), 0U);
  for (const std::uint64_t round : {0, 1, 2}) {
    EXPECT_FALSE(job.is_over(0)) << round;
    EXPECT_TRUE(job.report_all(7));
    job.deliver_all();
  }
  for (std::size_t id = 0; id < kMembers; ++id) EXPECT_TRUE(job.is_over(id)) << id;
  EXPECT_FALSE(job.report_all());
}

TEST(LeaveTogether, LV1_WorkBetweenTwoRoundsBeginsAnotherOne) {
  Job job;
  job.connect_all();
  job.call_all();
  for (const std::uint64_t work : {0, 1, 2, 3}) {
    EXPECT_TRUE(job.report_all(work));
    job.deliver_all();
    EXPECT_FALSE(job.is_over(0));
  }
  EXPECT_TRUE(job.report(0, 3) && job.report(1, 4) && job.report(2, 3));
  job.deliver_all();
  EXPECT_FALSE(job.is_over(0)) << "b has worked";
  EXPECT_TRUE(job.report(0, 3) && job.report(1, 4) && job.report(2, 3));
  job.deliver_all();
  EXPECT_TRUE(job.is_over(0));
}

TEST(LeaveTogether, LV2_AMemberThatHasSentItsLastReportMayStop) {
  Job job;
  job.connect_all();
  job.call_all();
  for (int round = 0; round < 2; ++round) {
    job.report_all(5);
    job.deliver_all();
  }
  job.report_all(5);
  job.deliver(1, 0);
  job.deliver(2, 0);
  EXPECT_TRUE(job.is_over(0));
  job.lose(0);
  for (const std::size_t id : {1, 2}) {
    EXPECT_FALSE(job.at(id).outcome()) << "it waits for the other one only: " << job.error(id);
  }
  job.deliver_all();
  EXPECT_TRUE(job.is_over(1) && job.is_over(2));
}

TEST(LeaveTogether, LV3_ARepeatedCallGoesOnWhereTheLastOneEnded) {
  Job job;
  job.connect_all();
  job.call_all();
  job.report_all();
  job.deliver_all();
  job.at(1).end_call();  // its time was over
  EXPECT_FALSE(job.at(1).due()) << "it reports nothing outside of a call";
  EXPECT_TRUE(job.report(0, 1) && job.report(2, 1));
  job.call(1);
  EXPECT_EQ(job.at(1).due(), 1U);
  job.deliver_all();
  for (int round = 0; round < 2; ++round) {
    job.report_all(1);
    job.deliver_all();
  }
  EXPECT_TRUE(job.is_over(0) && job.is_over(1) && job.is_over(2));
  job.at(1).end_call();
  job.call(1);
  EXPECT_TRUE(job.is_over(1)) << "after the end it returns at once";
}

TEST(LeaveTogether, LV8_TwoCallsAtATimeAreOneTooMany) {
  Job job;
  job.connect_all();
  job.call(0);
  EXPECT_EQ(job.at(0).begin_call().error().code(), Errc::overloaded);
  job.at(0).stop(Error(Errc::shut_down, "a", "this worker has left"));
  EXPECT_EQ(job.error(0).code(), Errc::shut_down);
}

TEST(LeaveTogether, LV4_ALostMemberWhoseReportIsNeededEndsTheCall) {
  Job job;
  job.connect_all();
  job.call(0);
  job.report(0);
  job.lose(2);
  const Error error = job.error(0);
  EXPECT_EQ(error.code(), Errc::peer_down);
  EXPECT_EQ(error.worker(), "c");
  EXPECT_EQ(error.text(), "c is lost and has not called leave_together");
  ASSERT_TRUE(error.cause());
  EXPECT_EQ(error.cause()->text(), "the connection broke");
  job.at(0).end_call();
  job.call(0);
  EXPECT_EQ(job.error(0).code(), Errc::peer_down) << "as long as it is lost";
}

TEST(LeaveTogether, LV4_AMemberThatIsLostBetweenRoundsEndsTheCallWhenItsNextReportIsDue) {
  Job job;
  job.connect_all();
  job.call_all();
  job.report_all();
  job.lose(2);
  EXPECT_FALSE(job.at(0).outcome()) << "it has called it, and b may be missing yet";
  job.deliver_all();
  EXPECT_EQ(job.error(0).text(), "c is lost before all members were at rest");
}

TEST(LeaveTogether, LV5_ANewLifeHasToCallItItself) {
  Job job;
  job.connect_all();
  job.call(0);
  job.call(1);
  job.report_all();
  job.deliver_all();
  job.lose(2);
  job.start_anew(2);
  job.connect(0, 2);
  job.call(2);
  EXPECT_FALSE(job.at(0).outcome()) << job.error(0);
  EXPECT_EQ(job.at(0).due(), 0U) << "it reports to the new life";
  EXPECT_TRUE(job.report(0));
  EXPECT_FALSE(job.at(2).due()) << "it does not know b yet";
  job.deliver_all();  // b learns nothing about c from a's report
  job.connect(1, 2);
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(job.is_over(0) || job.is_over(1) || job.is_over(2)) << round;
    job.report_all();
    job.deliver_all();
  }
  EXPECT_TRUE(job.is_over(0) && job.is_over(1) && job.is_over(2)) << job.at(0).why_late(1s);
}

TEST(LeaveTogether, LV6_ALateCallNamesTheMembersThatAreMissing) {
  Job job;
  job.connect(0, 1);
  job.call(0);
  EXPECT_FALSE(job.at(0).due()) << "c has not come";
  EXPECT_EQ(job.at(0).why_late(1s).text(), "leave_together: c has not come within 1s");
  EXPECT_EQ(job.at(0).why_late(1s).code(), Errc::timeout);
  EXPECT_EQ(job.at(0).why_late(1s).worker(), "a");
  job.connect(0, 2);
  job.connect(1, 2);
  job.report(0);
  EXPECT_EQ(job.at(0).why_late(1s).text(), "leave_together: b, c have not called it within 1s");
  job.call(1);
  job.report(1);
  job.deliver_all();
  EXPECT_EQ(job.at(0).why_late(1s).text(), "leave_together: c has not called it within 1s");
  job.call(2);
  job.report(2);
  job.deliver_all();
  job.report(1);
  job.deliver_all();
  EXPECT_EQ(job.at(0).why_late(30s).text(),
            "leave_together: all members have called it, and a, c are not at rest within 30s: calls or released "
            "references are under way there, or calls begin again and again");
}

TEST(LeaveTogether, LV7_ReportsOfRoundsThatCannotHaveBegunChangeNothing) {
  Job job;
  job.connect_all();
  job.call_all();
  job.report(1);
  const LeaveReport first = job.lanes[{1, 0}].front();
  const auto from_b = [&](LeaveReport report) { job.at(0).on_report(job.life(1), report); };
  from_b({first.lives, 1, 0});
  from_b({first.lives, 1'000'000, 0});
  from_b(first);
  from_b(first);
  for (std::uint64_t round = 1; round < 100; ++round) from_b({first.lives, round, 0});
  from_b({first.lives + 1, 1, 0});
  job.at(0).on_report({WorkerId{2}, Incarnation{999}}, first);  // no life of c
  job.at(0).on_report(job.life(0), first);
  EXPECT_EQ(job.at(0).due(), 0U);
  EXPECT_TRUE(job.report(0));
  EXPECT_EQ(job.at(0).why_late(1s).text(), "leave_together: c has not called it within 1s");
}

/// Members that make calls while they leave: code that is called may call others and not wait for them.
class Working {
 public:
  explicit Working(std::uint64_t seed) : random_(seed) { job_.connect_all(); }

  void run() {
    for (int steps = 0; !all_over(); ++steps) {
      ASSERT_LT(steps, 20'000) << "it does not end";
      step();
      for (std::uint32_t id = 0; id < kMembers; ++id) {
        if (!job_.is_over(id)) continue;
        ASSERT_TRUE(called_[0] && called_[1] && called_[2]);
        ASSERT_EQ(under_way(), 0) << "at the end of " << kNames[id];
      }
    }
    EXPECT_TRUE(job_.reports[0] == job_.reports[1] && job_.reports[1] == job_.reports[2])
        << "LV2: all see it in the same round";
  }

 private:
  struct Message {
    bool is_reply;
  };
  bool all_over() { return job_.is_over(0) && job_.is_over(1) && job_.is_over(2); }
  std::uint32_t draw(std::size_t below) { return static_cast<std::uint32_t>(random_() % below); }
  int under_way() const {
    int sum = 0;
    for (std::size_t id = 0; id < kMembers; ++id) sum += own_[id] + static_cast<int>(served_[id].size());
    return sum;
  }

  void step() {
    const std::uint32_t id = draw(kMembers);
    const std::uint32_t other = (id + 1 + draw(kMembers - 1)) % kMembers;
    switch (draw(6)) {
      case 0:
        if (!called_[id] && draw(8) == 0) job_.call(id), called_[id] = true;
        break;
      case 1:
        if (called_[id] ? !served_[id].empty() && draw(3) == 0 : draw(16) == 0) begin_call(id, other);
        break;
      case 2:
        if (!served_[id].empty()) reply(id);
        break;
      case 3:
        receive(id, other);
        break;
      case 4:
        job_.deliver(id, other);
        break;
      default:
        look(id);
    }
  }
  void begin_call(std::uint32_t from, std::uint32_t to) {
    if (calls_ == 200) return;
    ++calls_;
    ++own_[from];
    ++work_[from];
    lanes_[{from, to}].push_back({false});
  }
  void reply(std::uint32_t from) {
    const std::uint32_t to = served_[from].front();
    served_[from].pop_front();
    ++work_[from];
    lanes_[{from, to}].push_back({true});
  }
  void receive(std::uint32_t from, std::uint32_t to) {
    auto& lane = lanes_[{from, to}];
    if (lane.empty()) return;
    const Message message = lane.front();
    lane.pop_front();
    if (!message.is_reply) return served_[to].push_back(from);
    --own_[to];
    if (draw(3) == 0) begin_call(to, from);  // its continuation
  }
  void look(std::uint32_t id) {
    const auto round = job_.at(id).due();
    if (!round) return;
    if (*round == 0 || (own_[id] == 0 && served_[id].empty())) job_.report(id, work_[id]);
  }

  Job job_;
  std::mt19937_64 random_;
  int calls_ = 0;
  std::array<bool, kMembers> called_{};
  std::array<int, kMembers> own_{};
  std::array<std::uint64_t, kMembers> work_{};
  std::array<std::deque<std::uint32_t>, kMembers> served_{};  // the callers
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Message>> lanes_;
};

TEST(LeaveTogether, LV1_LV2_InRandomHistoriesNoCallIsUnderWayAtTheEnd) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Working(seed).run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace caftan::net::leave_together_test

// What each member costs that comes to a job, in jobs of 100 and of 1,000 members: counted, not timed. The sources that
// CMakeLists.txt lists are built once more for this test, with a call of the function below in each of their basic
// blocks.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/net/internal/leave_together.hpp"
#include "caftan/net/internal/meeting.hpp"

namespace {
std::uint64_t basic_blocks = 0;
}
extern "C" void __sanitizer_cov_trace_pc() { ++basic_blocks; }

namespace caftan::net::growth_test {
namespace {

constexpr std::uint32_t kFew = 100;
constexpr std::uint32_t kMany = 1000;
/// How much more a member may cost in the large job. Look-ups in a tree grow by a half; what looks at all members for
/// each of them costs ten times as much.
constexpr double kMayGrow = 2.0;

std::string name_of(std::uint32_t id) { return "worker" + std::to_string(id); }
constexpr Incarnation life_of(std::uint32_t id) { return {100 + id}; }

Meeting make_meeting(std::uint32_t self, std::uint32_t members) {
  std::vector<MemberEntry> entries;
  for (std::uint32_t id = 0; id < members; ++id) entries.push_back({name_of(id), {id}, ""});
  auto membership = Membership::make(entries, {name_of(self), {self}, life_of(self), ""});
  EXPECT_TRUE(membership);
  return Meeting(*std::move(membership), {.addresses = std::vector<std::string>(members)});
}

/// Calls `come` for each member but the first, and returns how many basic blocks one call has run.
template <class Come>
double blocks_of_one(std::uint32_t members, const Come& come) {
  const std::uint64_t before = basic_blocks;
  for (std::uint32_t id = 1; id < members; ++id) come(id);
  return static_cast<double>(basic_blocks - before) / (members - 1);
}

void expect_no_growth(double few, double many) {
  EXPECT_GT(few, 1) << "the sources of this test are not counted";
  EXPECT_LE(many, kMayGrow * few);
}

double of_the_coordinator(std::uint32_t members) {
  Meeting meeting = make_meeting(0, members);
  const double connected = blocks_of_one(members, [&](std::uint32_t id) {
    EXPECT_TRUE(meeting.on_session_start({{id}, life_of(id)}, "there"));
    meeting.on_connected({{id}, life_of(id)}, "unix:there");
    EXPECT_EQ(meeting.take_view().has_value(), id + 1 == members);
    EXPECT_FALSE(meeting.take_ready_report());
  });
  const double met = blocks_of_one(members, [&](std::uint32_t id) {
    meeting.on_met({{id}, life_of(id)});
    EXPECT_EQ(meeting.take_ready_report().has_value(), id + 1 == members);
  });
  return connected + met;
}

TEST(Growth, SE27_AtTheCoordinatorEachMemberCostsTheSameHoweverManyCome) {
  expect_no_growth(of_the_coordinator(kFew), of_the_coordinator(kMany));
}

double of_another_worker(std::uint32_t members) {
  Meeting meeting = make_meeting(members - 1, members);
  return blocks_of_one(members, [&](std::uint32_t id) {
    const std::uint32_t peer = id - 1;
    EXPECT_TRUE(meeting.on_session_start({{peer}, life_of(peer)}, "there"));
    meeting.on_connected({{peer}, life_of(peer)}, "");
    EXPECT_EQ(meeting.take_ready_report().has_value(), id + 1 == members);
  });
}

TEST(Growth, SE27_AtAnotherWorkerEachMemberCostsTheSameHoweverManyCome) {
  expect_no_growth(of_another_worker(kFew), of_another_worker(kMany));
}

double of_leaving(std::uint32_t members) {
  std::vector<std::string> names;
  for (std::uint32_t id = 0; id < members; ++id) names.push_back(name_of(id));
  LeaveTogether rules(names, {{0}, life_of(0)});
  return blocks_of_one(members, [&](std::uint32_t id) { rules.on_up({{id}, life_of(id)}); });
}

TEST(Growth, LV5_ALifeCostsTheSameHoweverManyCome) { expect_no_growth(of_leaving(kFew), of_leaving(kMany)); }

}  // namespace
}  // namespace caftan::net::growth_test

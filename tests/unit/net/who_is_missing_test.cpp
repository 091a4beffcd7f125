// Which members a start that timed out names as missing, seen from each side.
#include "caftan/net/internal/who_is_missing.hpp"

#include <gtest/gtest.h>

namespace caftan::net::who_is_missing_test {
namespace {

using namespace std::chrono_literals;

MemberAtStart here(const char* name) { return {.name = name, .is_here = true, .would_be_met = true}; }
MemberAtStart absent(const char* name) { return {.name = name, .would_be_met = true}; }
MemberAtStart left(const char* name) { return {.name = name, .has_left = true, .would_be_met = true}; }
MemberAtStart unknown(const char* name) { return {.name = name}; }

TEST(WhoIsMissing, SE26_AtTheCoordinatorAllMembersAreKnown) {
  EXPECT_EQ(who_is_missing({here("a"), absent("b"), here("c")}, false, 6s),
            "b has not come within 6s; 2 of 3 are here");
  EXPECT_EQ(who_is_missing({here("a"), absent("b"), absent("c")}, false, 6s),
            "b, c have not come within 6s; 1 of 3 are here");
}

TEST(WhoIsMissing, SE26_WithoutTheCoordinatorNoOtherMemberIsKnown) {
  EXPECT_EQ(who_is_missing({absent("a"), here("b"), unknown("c")}, false, 6s),
            "a, the coordinator, has not come within 6s");
}

TEST(WhoIsMissing, SE26_WithTheCoordinatorUnknownMembersAreNamed) {
  EXPECT_EQ(who_is_missing({here("a"), here("b"), unknown("c"), unknown("d")}, false, 6s),
            "not all have come within 6s; not heard of: c, d; 2 of 4 are here");
}

TEST(WhoIsMissing, SE26_TheOnlyUnknownIsMissing) {
  EXPECT_EQ(who_is_missing({here("a"), unknown("b"), here("c")}, false, 6s),
            "b has not come within 6s; 2 of 3 are here");
  EXPECT_EQ(who_is_missing({here("a"), unknown("b"), here("c")}, true, 6s),
            "not all have come within 6s; not heard of: b; 2 of 3 are here");
}

TEST(WhoIsMissing, SE26_WhoWasHereHasLeft) {
  EXPECT_EQ(who_is_missing({left("a"), unknown("b"), here("c")}, false, 6s),
            "b has not come within 6s; a has come and left; 1 of 3 are here");
  EXPECT_EQ(who_is_missing({here("a"), here("b")}, false, 6s), "not all have met within 6s; 2 of 2 are here");
  EXPECT_EQ(who_is_missing({left("a"), here("b")}, false, 6s), "a has come and left; 1 of 2 are here");
}

TEST(WhoIsMissing, SE26_TheCoordinatorKnowsWhoHasNotMetAll) {
  MemberAtStart meeting = here("b");
  meeting.is_meeting = true;
  EXPECT_EQ(who_is_missing({here("a"), meeting, here("c")}, false, 6s),
            "b has not met all others within 6s; 3 of 3 are here");
  EXPECT_EQ(who_is_missing({here("a"), meeting, absent("c")}, false, 6s), "c has not come within 6s; 2 of 3 are here");
}

}  // namespace
}  // namespace caftan::net::who_is_missing_test

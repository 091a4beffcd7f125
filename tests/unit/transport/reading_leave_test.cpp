// Which process may read this one's memory where Yama asks for leave (docs/protocols/bulk.md, "Set-up"), whether the
// kernel of this machine has Yama or not.
#include "channels/shm/reading_leave.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "channels/shm/lending.hpp"

namespace caftan::transport::reading_leave_test {
namespace {

std::vector<pid_t> was_set;
int answer = 0;
int set(pid_t process) {
  was_set.push_back(process);
  return answer;
}

class Leave : public ::testing::Test {
 protected:
  Leave() {
    was_set.clear();
    answer = 0;
  }
  ReadingLeave leave_{set};
};

TEST_F(Leave, OneProcessHasItUntilEachOfItsSessionsHasEnded) {
  ASSERT_TRUE(leave_.give(7));
  ASSERT_TRUE(leave_.give(7));
  const auto other = leave_.give(8);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Errc::unsupported);
  EXPECT_EQ(other.error().text(), "kernel.yama.ptrace_scope is 1, and another process has the leave to read");
  leave_.take_back();
  EXPECT_FALSE(leave_.give(8)) << "one session with the first process is left";
  leave_.take_back();
  EXPECT_TRUE(leave_.give(8));
  EXPECT_EQ(was_set, (std::vector<pid_t>{7, 0, 8}));
}

TEST_F(Leave, AKernelThatRefusesIsNamedAndAskedAgain) {
  answer = EINVAL;
  const auto refused = leave_.give(7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "kernel.yama.ptrace_scope is 1, and prctl: Invalid argument");
  answer = 0;
  EXPECT_TRUE(leave_.give(8));
}

TEST_F(Leave, ASideWithoutItShowsNoIdentityAndItsPeerReadsNothing) {
  alignas(8) std::array<std::byte, 8192> headers{};
  std::byte* const own = headers.data();
  std::byte* const peer = own + 4096;
  ASSERT_TRUE(leave_.give(::getpid() + 1));
  {
    Lending side(own, peer, ::getpid() + 2, &leave_);
    EXPECT_EQ(side.show().error().code(), Errc::unsupported);
    Lending reader(peer, own, ::getpid(), &leave_);
    EXPECT_EQ(reader.probe().error().text(), "the peer does not let its memory be read");
    EXPECT_TRUE(side.peer_refuses());
  }
  EXPECT_EQ(was_set, (std::vector<pid_t>{::getpid() + 1})) << "what was not given is not taken back";
}

TEST_F(Leave, ItIsGivenBeforeTheIdentityIsShownAndTakenBackAtTheEnd) {
  alignas(8) std::array<std::byte, 8192> headers{};
  {
    Lending side(headers.data(), headers.data() + 4096, ::getpid() + 1, &leave_);
    ASSERT_TRUE(side.show());
    EXPECT_EQ(was_set, (std::vector<pid_t>{::getpid() + 1}));
  }
  EXPECT_EQ(was_set.back(), 0);
}

TEST_F(Leave, AProcessNeedsNoneToReadItself) {
  alignas(8) std::array<std::byte, 8192> headers{};
  Lending side(headers.data(), headers.data() + 4096, ::getpid(), &leave_);
  EXPECT_TRUE(side.show());
  EXPECT_TRUE(was_set.empty());
}

TEST(YamaScope, RefusesAllFromScopeTwoOnButProcessesThatMayTrace) {
  EXPECT_FALSE(is_reading_refused(0, false) || is_reading_refused(1, false) || is_reading_refused(2, true));
  EXPECT_TRUE(is_reading_refused(2, false) && is_reading_refused(3, false) && is_reading_refused(3, true));
}

}  // namespace
}  // namespace caftan::transport::reading_leave_test

// Which thread reads a session, and what the channel is asked to report meanwhile.
#include "caftan/transport/internal/read_claim.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "caftan/transport/stepped_executor.hpp"

namespace caftan::transport::read_claim_test {
namespace {

/// A channel that keeps what it was armed for.
class ArmedChannel final : public Channel {
 public:
  bool read_armed = false;
  bool write_armed = false;
  int arms = 0;
  Look seen = Look::nothing;
  bool is_awake = false;

  void start(Ready) override {}
  void arm(bool read, bool write) override {
    read_armed = read;
    write_armed = write;
    ++arms;
    is_awake = false;
  }
  Look look() const override { return seen; }
  void stay_awake() override { is_awake = true; }
  Result<std::size_t> read(const iovec*, int) override { return std::size_t{0}; }
  Result<std::size_t> write(const iovec*, int) override { return std::size_t{0}; }
  bool has_unread() const override { return false; }
  void close_write() override {}
  void break_off() override {}
  void close() override {}
  int fd() const noexcept override { return -1; }
  const char* kind() const noexcept override { return "armed"; }
};

class ReadClaims : public ::testing::Test {
 protected:
  ReadClaims() {
    claim_->set_self(claim_);
    claim_->arm();
  }
  void claim_and_read_replies(int replies) {
    ASSERT_TRUE(claim_->claim());
    for (int i = 0; i < replies; ++i) claim_->on_reply();
  }

  SteppedExecutor executor_{1};
  ArmedChannel channel_;
  const std::shared_ptr<ReadClaim> claim_ = std::make_shared<ReadClaim>(executor_, channel_);
};

TEST_F(ReadClaims, OneThreadAtATimeReads) {
  {
    const ReadClaim::Turn turn(*claim_);
    EXPECT_TRUE(turn.held());
    EXPECT_FALSE(ReadClaim::Turn(*claim_).held());
    EXPECT_FALSE(claim_->claim());
  }
  EXPECT_TRUE(claim_->claim());
  EXPECT_FALSE(ReadClaim::Turn(*claim_).held());
  EXPECT_FALSE(claim_->release(false));
  EXPECT_TRUE(ReadClaim::Turn(*claim_).held());
}

TEST_F(ReadClaims, RunnersGetNoReportOfBytesWhileAThreadReadsItself) {
  EXPECT_TRUE(channel_.read_armed);
  claim_and_read_replies(1);
  EXPECT_FALSE(channel_.read_armed);
  claim_->set_wants_room(true);
  claim_->arm();
  EXPECT_FALSE(channel_.read_armed);
  EXPECT_TRUE(channel_.write_armed);
  EXPECT_FALSE(claim_->release(false));
  EXPECT_TRUE(channel_.read_armed);
  EXPECT_TRUE(channel_.write_armed);
}

TEST_F(ReadClaims, AThreadThatReadsAnswersOnlyIsExpectedBack) {
  claim_and_read_replies(7);
  EXPECT_FALSE(claim_->release(true)) << "too few";
  claim_and_read_replies(1);
  ASSERT_TRUE(claim_->release(true));
  EXPECT_FALSE(channel_.read_armed);
  const int arms = channel_.arms;
  ASSERT_TRUE(claim_->claim()) << "it is back";
  EXPECT_EQ(channel_.arms, arms);
  claim_->on_other(true);
  EXPECT_TRUE(claim_->work_queued());
  EXPECT_FALSE(claim_->release(true)) << "there was something else";
  EXPECT_TRUE(channel_.read_armed);
  claim_->begin_read();
  EXPECT_FALSE(claim_->work_queued());
}

TEST_F(ReadClaims, ADeferralEndsWhenTheThreadStaysAway) {
  claim_and_read_replies(8);
  ASSERT_TRUE(claim_->release(true));
  executor_.advance(std::chrono::microseconds(999));
  EXPECT_FALSE(channel_.read_armed);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(claim_->claim());
    ASSERT_TRUE(claim_->release(true)) << "within the time: the watch goes on";
  }
  executor_.advance(std::chrono::microseconds(2));
  EXPECT_FALSE(channel_.read_armed);
  executor_.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(channel_.read_armed);
}

/// A call every millisecond: a timer for each would cost the wake-up of a thread, twice.
TEST_F(ReadClaims, AThreadThatClaimsSeldomPostsNoTimer) {
  claim_and_read_replies(8);
  ASSERT_TRUE(claim_->release(true));
  executor_.advance(std::chrono::microseconds(500));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(claim_->claim());
    ASSERT_TRUE(claim_->release(true));
  }
  executor_.advance(std::chrono::microseconds(501));
  EXPECT_TRUE(channel_.read_armed) << "two claims within the time are too few";
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(claim_->claim());
    EXPECT_FALSE(claim_->release(true)) << i;
    EXPECT_TRUE(channel_.read_armed);
    executor_.advance(std::chrono::microseconds(250));
  }
  executor_.advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(executor_.advance_to_next_timer()) << "no timer is left";

  ASSERT_TRUE(claim_->claim());
  EXPECT_FALSE(claim_->release(true));
  executor_.advance(std::chrono::microseconds(249));
  ASSERT_TRUE(claim_->claim());
  EXPECT_TRUE(claim_->release(true)) << "it was back soon";
}

TEST_F(ReadClaims, ADeferralEndsBeforeTheThreadWaitsForAnythingElse) {
  claim_and_read_replies(8);
  ASSERT_TRUE(claim_->release(true));
  claim_->end_deferral();
  EXPECT_TRUE(channel_.read_armed);
  claim_and_read_replies(0);
  ASSERT_TRUE(claim_->release(true));
  claim_->rearm();
  EXPECT_TRUE(channel_.read_armed) << "a report was served meanwhile";
}

TEST_F(ReadClaims, NoReaderStaysAwayWhileBytesWaitForRoom) {
  claim_->set_wants_room(true);
  claim_and_read_replies(8);
  EXPECT_FALSE(claim_->release(true));
  EXPECT_TRUE(channel_.read_armed);
}

TEST_F(ReadClaims, SP3_AnIdleRunnerThatSpinsIsAwakeUntilItSleeps) {
  ASSERT_TRUE(claim_->begin_spin());
  EXPECT_TRUE(channel_.is_awake);
  EXPECT_EQ(claim_->look_as_runner(), Look::nothing);
  channel_.seen = Look::something;
  EXPECT_EQ(claim_->look_as_runner(), Look::something);
  claim_->end_spin();
  EXPECT_FALSE(channel_.is_awake);
  EXPECT_TRUE(channel_.read_armed);
  channel_.seen = Look::unable;
  EXPECT_FALSE(claim_->begin_spin()) << "a look would be a system call";
}

TEST_F(ReadClaims, SP7_AnIdleRunnerLeavesTheSessionToTheThreadThatReadsIt) {
  ASSERT_TRUE(claim_->begin_spin());
  claim_and_read_replies(8);
  EXPECT_EQ(claim_->look_as_runner(), Look::unable);
  EXPECT_FALSE(claim_->begin_spin());
  claim_->end_spin();
  EXPECT_FALSE(channel_.read_armed) << "the thread that has claimed it reads";
  ASSERT_TRUE(claim_->release(true));
  EXPECT_FALSE(claim_->begin_spin()) << "it is expected back";
  claim_->end_deferral();
  EXPECT_TRUE(claim_->begin_spin());
}

}  // namespace
}  // namespace caftan::transport::read_claim_test

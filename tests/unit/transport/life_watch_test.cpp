// When life is shown and when a peer is dead, bytes and other signs of life counted: docs/protocols/session.md, SE-6,
// SE-7, SE-9 and SE-38.
#include "caftan/transport/internal/life_watch.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/transport/stepped_executor.hpp"

namespace caftan::transport::life_watch_test {
namespace {

using namespace std::chrono_literals;

/// A channel whose peer sends no byte.
class SilentChannel final : public Channel {
 public:
  std::uint64_t peer_beats = 0;

  void start(Ready) override {}
  void arm(bool, bool) override {}
  Result<std::size_t> read(const iovec*, int) override { return std::size_t{0}; }
  Result<std::size_t> write(const iovec*, int) override { return std::size_t{0}; }
  bool has_unread() const override { return false; }
  void close_write() override {}
  void break_off() override {}
  void close() override {}
  int fd() const noexcept override { return -1; }
  const char* kind() const noexcept override { return "silent"; }
  std::uint64_t beats() const override { return peer_beats; }
};

TEST(LifeWatch, SE6_APeerWhoseBeatGoesOnLivesAndOneWhoseBeatStopsIsDead) {
  SteppedExecutor executor(1);
  SilentChannel channel;
  const std::string peer = "peer";
  const auto watch = std::make_shared<LifeWatch>(executor, channel, LivenessOptions{1s, 5s}, peer);
  std::optional<Error> dead;
  watch->start(watch, {[] {}, [&](const Error& error) { dead = error; }});
  for (int second = 0; second < 20; ++second) {
    ++channel.peer_beats;
    executor.advance(1s);
    ASSERT_FALSE(dead) << "after " << second << " s";
  }
  for (int second = 0; second < 4; ++second) executor.advance(1s);
  EXPECT_FALSE(dead);
  for (int second = 0; second < 3; ++second) executor.advance(1s);
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->code(), Errc::peer_down);
  watch->stop();
}

/// A watch whose events are kept, with the time of the executor when it began.
struct Watched {
  Watched() {
    watch->start(watch, {[this] { shown.push_back(now()); }, [this](const Error&) { dead = now(); }});
  }
  ~Watched() { watch->stop(); }
  base::Duration now() const { return executor.clock().now() - begun; }
  /// Moves the clock in small steps: a watch that looks too late takes that for time in which this process stood still.
  void advance(base::Duration by) {
    for (; by > 0s; by -= 10ms) executor.advance(10ms);
  }

  SteppedExecutor executor{1};
  SilentChannel channel;
  const std::string peer = "peer";
  const base::TimePoint begun = executor.clock().now();
  const std::shared_ptr<LifeWatch> watch =
      std::make_shared<LifeWatch>(executor, channel, LivenessOptions{1s, 5s}, peer);
  std::vector<base::Duration> shown;
  std::optional<base::Duration> dead;
};

TEST(LifeWatch, SE9_ShowsLifeWithinOneIntervalAfterTheLastBytesAndNotWhileBytesGoOut) {
  Watched watched;
  for (int i = 0; i < 58; ++i) {
    watched.watch->on_bytes_in(1);
    watched.watch->on_bytes_out(1000);
    watched.advance(100ms);
  }
  EXPECT_LE(watched.shown.size(), 1U) << "the first bytes are found when a sign of life is due";
  watched.shown.clear();
  const base::Duration last = watched.now() - 100ms;
  watched.advance(1s);
  ASSERT_GE(watched.shown.size(), 1U);
  EXPECT_GE(watched.shown.front(), last + 750ms);
  EXPECT_LE(watched.shown.front(), last + 1s);
}

TEST(LifeWatch, SE9_ASideThatHasNothingToSendShowsLifeOnceAnInterval) {
  Watched watched;
  for (int i = 0; i < 4; ++i) {
    watched.watch->on_bytes_in(48);
    if (!watched.shown.empty()) watched.watch->on_bytes_out(48);  // the ping
    watched.advance(1s);
  }
  EXPECT_EQ(watched.shown, (std::vector<base::Duration>{1s, 2s, 3s, 4s}));
}

TEST(LifeWatch, SE9_APongPostponesThePing) {
  Watched watched;
  watched.advance(600ms);
  watched.watch->on_pong_out();
  watched.watch->on_bytes_out(48);
  watched.advance(900ms);
  EXPECT_TRUE(watched.shown.empty());
  watched.advance(100ms);
  EXPECT_EQ(watched.shown, std::vector<base::Duration>{1600ms});
}

TEST(LifeWatch, SE38_APeerIsDeadTheTimeoutAfterItsLastBytesWereReadAtMostAnIntervalLater) {
  Watched watched;
  watched.advance(2100ms);
  watched.watch->on_bytes_in(1);
  watched.advance(20s);
  ASSERT_TRUE(watched.dead);
  EXPECT_GE(*watched.dead, 7100ms);
  EXPECT_LE(*watched.dead, 8100ms);
}

}  // namespace
}  // namespace caftan::transport::life_watch_test

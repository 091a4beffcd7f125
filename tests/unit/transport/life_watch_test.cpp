// Signs of life that come without bytes of the stream count as bytes do: docs/protocols/session.md, SE-6 and SE-7.
#include "caftan/transport/internal/life_watch.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

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

}  // namespace
}  // namespace caftan::transport::life_watch_test

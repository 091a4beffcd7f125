// What every kind of channel promises. A new kind is one more line in INSTANTIATE.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <stdexcept>

#include "caftan/base/ids.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/internal/channel_pair.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/shm_channel.hpp"
#include "channels/tls/tls_channel.hpp"
#include "channels/ucx/ucx_channel.hpp"

namespace caftan::transport::channel_conformance_test {
namespace {

using Ends = std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>>;

void check(bool done) {
  if (!done) throw std::runtime_error("the system refused a socket");
}

Ends loopback(PollingExecutor& executor) { return make_loopback_pair(executor, 64 * 1024); }
Ends unix_sockets(PollingExecutor& executor) { return make_channel_pair(executor, "unix").value(); }
Ends tcp_sockets(PollingExecutor& executor) { return make_channel_pair(executor, "tcp").value(); }

Ends tls_over(PollingExecutor& executor, Ends carriers) {
  const net::TlsKeys keys{"test", net::Secret("correct horse battery staple"), {}};
  auto client = net::TlsEngine::client(keys).value();
  auto server = net::TlsEngine::server(keys).value();
  while (!client.is_open() || !server.is_open()) {
    check(server.feed(client.take_outgoing()).has_value());
    check(client.feed(server.take_outgoing()).has_value());
  }
  return {make_tls_channel(executor, carriers.first, std::move(client)),
          make_tls_channel(executor, carriers.second, std::move(server))};
}

Ends tls_over_tcp(PollingExecutor& executor) { return tls_over(executor, tcp_sockets(executor)); }

/// Both ends switch to rings of 32 KiB after the first write, or after some of them: what is under way may be on the
/// socket, in the rings, or on both.
template <std::uint32_t kFrames>
Ends shm(PollingExecutor& executor) {
  int fds[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
  const auto make = [&](int fd, bool makes_memory) {
    return make_shm_channel(executor, fd, {.makes_memory = makes_memory, .ring = 32 * 1024, .frames = kFrames}, {});
  };
  return {make(fds[0], true), make(fds[1], false)};
}

Ends ucx(PollingExecutor& executor) {
  int fds[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
  return {make_ucx_channel(executor, fds[0], {.dials = true}).value(), make_ucx_channel(executor, fds[1], {}).value()};
}

Ends tls_over_ucx(PollingExecutor& executor) { return tls_over(executor, ucx(executor)); }

/// Writes the bytes that it was given and reads all that come, in pieces, whenever the channel reports that it is
/// ready.
class Pump : public std::enable_shared_from_this<Pump> {
 public:
  explicit Pump(std::shared_ptr<Channel> channel) : channel(std::move(channel)) {}

  void start(wire::Bytes bytes, std::size_t expected) {
    out_ = std::move(bytes);
    expected_ = expected;
    channel->start([weak = weak_from_this()](bool readable, bool writable) {
      if (const auto self = weak.lock()) self->on_ready(readable, writable);
    });
    const std::lock_guard lock(mutex_);
    arm();
  }
  /// Waits until the expected bytes have come and all bytes of this end are written.
  void finish() { finished_.get_future().get(); }
  /// Waits for the end of the stream.
  Error end() { return ended_.get_future().get(); }
  wire::Bytes received() {
    const std::lock_guard lock(mutex_);
    return in_;
  }
  std::size_t reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }

  const std::shared_ptr<Channel> channel;

 private:
  void arm() {
    if (!has_ended_) channel->arm(true, sent_ < out_.size());
  }
  void on_ready(bool readable, bool writable) {
    const std::lock_guard lock(mutex_);
    ++reports_;
    if (writable) write();
    if (readable) read();
    if (!has_finished_ && sent_ == out_.size() && in_.size() >= expected_) {
      has_finished_ = true;
      finished_.set_value();
    }
    arm();
  }
  void write() {
    while (sent_ < out_.size()) {
      // Writes two vectors of odd sizes, so that a piece may end at any byte.
      const std::size_t first = std::min<std::size_t>(1013, out_.size() - sent_);
      const std::size_t second = std::min<std::size_t>(40009, out_.size() - sent_ - first);
      const iovec vectors[2] = {{out_.data() + sent_, first}, {out_.data() + sent_ + first, second}};
      const auto put = channel->write(vectors, second > 0 ? 2 : 1);
      if (!put || *put == 0) return;
      sent_ += *put;
    }
  }
  void read() {
    for (;;) {
      std::byte head[7];
      std::byte rest[9001];
      const iovec vectors[2] = {{head, sizeof head}, {rest, sizeof rest}};
      const auto got = channel->read(vectors, 2);
      if (!got) {
        if (!std::exchange(has_ended_, true)) ended_.set_value(got.error());
        return;
      }
      if (*got == 0) return;
      wire::append(in_, {head, std::min(*got, sizeof head)});
      if (*got > sizeof head) wire::append(in_, {rest, *got - sizeof head});
    }
  }

  std::mutex mutex_;
  wire::Bytes out_;
  wire::Bytes in_;
  std::size_t sent_ = 0;
  std::size_t expected_ = 0;
  std::size_t reports_ = 0;
  bool has_finished_ = false;
  bool has_ended_ = false;
  std::promise<void> finished_;
  std::promise<Error> ended_;
};

wire::Bytes make_bytes(std::size_t size, std::uint64_t seed) {
  wire::Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(mix64(seed + i / 8) >> (i % 8 * 8));
  return bytes;
}

struct Kind {
  const char* name;
  Ends (*make)(PollingExecutor&);
  bool may_fall_silent = true;
  const char* how = nullptr;  // where a kind is tested in more than one way
};

class ChannelConformance : public ::testing::TestWithParam<Kind> {
 protected:
  ChannelConformance() {
    auto [one, other] = GetParam().make(executor_);
    one_ = std::make_shared<Pump>(std::move(one));
    other_ = std::make_shared<Pump>(std::move(other));
  }
  ~ChannelConformance() override {
    one_->channel->close();
    other_->channel->close();
  }

  ThreadedExecutor executor_{{.runners = 2, .max_threads = 4}};
  std::shared_ptr<Pump> one_;
  std::shared_ptr<Pump> other_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, ChannelConformance,
                         ::testing::Values(Kind{"loopback", &loopback, false}, Kind{"unix", &unix_sockets},
                                           Kind{"tcp", &tcp_sockets}, Kind{"tcp+tls", &tls_over_tcp, true, "tls"},
                                           Kind{"shm", &shm<1>, true, "shm_at_once"},
                                           Kind{"shm", &shm<5>, true, "shm_after_some_writes"}),
                         [](const auto& info) { return info.param.how ? info.param.how : info.param.name; });
// On a machine without UCX there is nothing to test.
INSTANTIATE_TEST_SUITE_P(
    Ucx, ChannelConformance,
    ::testing::ValuesIn(check_ucx() ? std::vector<Kind>{{"ucx", &ucx}, {"ucx+tls", &tls_over_ucx, true, "ucx_tls"}}
                                    : std::vector<Kind>{}),
    [](const auto& info) { return info.param.how ? info.param.how : info.param.name; });

TEST_P(ChannelConformance, SaysItsKind) { EXPECT_STREQ(one_->channel->kind(), GetParam().name); }

TEST_P(ChannelConformance, SE32_SaysWhetherItsPeerMayFallSilent) {
  EXPECT_EQ(one_->channel->may_fall_silent(), GetParam().may_fall_silent);
}

TEST_P(ChannelConformance, BytesArriveInOrderBothWaysPastWhatItHolds) {
  const wire::Bytes forth = make_bytes(3'000'017, 1);
  const wire::Bytes back = make_bytes(2'000'003, 2);
  one_->start(forth, back.size());
  other_->start(back, forth.size());
  one_->finish();
  other_->finish();
  EXPECT_TRUE(other_->received() == forth);
  EXPECT_TRUE(one_->received() == back);
}

TEST_P(ChannelConformance, NothingThereReadsZeroAndAFullChannelWritesZero) {
  one_->channel->start([](bool, bool) {});
  other_->channel->start([](bool, bool) {});
  std::byte byte{};
  const iovec in{&byte, 1};
  EXPECT_EQ(one_->channel->read(&in, 1).value(), 0U);
  wire::Bytes bytes = make_bytes(1 << 20, 3);
  const iovec out{bytes.data(), bytes.size()};
  std::size_t written = 0;
  for (std::size_t put = 1; put > 0; written += put) {
    put = one_->channel->write(&out, 1).value();
    ASSERT_LT(written, std::size_t{1} << 30);
  }
  EXPECT_GT(written, 0U);
}

TEST_P(ChannelConformance, AfterCloseWriteTheRestArrivesThenTheEnd) {
  const wire::Bytes forth = make_bytes(30'011, 4);
  one_->start(forth, 0);
  one_->finish();
  one_->channel->close_write();
  other_->start({}, forth.size());
  EXPECT_EQ(other_->end().code(), Errc::peer_down);
  EXPECT_TRUE(other_->received() == forth);
}

TEST_P(ChannelConformance, CloseIsTheEndForThePeer) {
  one_->start({}, 0);
  other_->start({}, 0);
  one_->channel->close();
  one_->channel->close();
  EXPECT_EQ(other_->end().code(), Errc::peer_down);
}

TEST_P(ChannelConformance, BreakingOffEndsBothWays) {
  one_->start({}, 0);
  other_->start({}, 0);
  one_->channel->break_off();
  EXPECT_EQ(one_->end().code(), Errc::peer_down);
  EXPECT_EQ(other_->end().code(), Errc::peer_down);
}

TEST_P(ChannelConformance, WritingToAClosedPeerIsAnErrorAndNoSignal) {
  one_->start({}, 0);
  other_->start({}, 0);
  other_->channel->close();
  EXPECT_EQ(one_->end().code(), Errc::peer_down);
  wire::Bytes bytes = make_bytes(100, 5);
  const iovec out{bytes.data(), bytes.size()};
  Result<std::size_t> put = one_->channel->write(&out, 1);
  for (int i = 0; i < 3 && put; ++i) put = one_->channel->write(&out, 1);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), Errc::peer_down);
}

/// Reads at most three bytes for each report, then arms again.
class SlowReader : public std::enable_shared_from_this<SlowReader> {
 public:
  explicit SlowReader(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  void start() {
    channel_->start([weak = weak_from_this()](bool, bool) {
      if (const auto self = weak.lock()) self->read();
    });
    channel_->arm(true, false);
  }
  /// Returns how many bytes came before the end.
  std::size_t count() { return ended_.get_future().get(); }

 private:
  void read() {
    std::byte bytes[3];
    const iovec vector{bytes, sizeof bytes};
    const auto got = channel_->read(&vector, 1);
    if (!got) {
      // The channel reports the end of the connection without a further arm(): here when the test closes the other end.
      if (!has_ended_.exchange(true)) ended_.set_value(count_);
      return;
    }
    count_ += *got;
    channel_->arm(true, false);
  }

  const std::shared_ptr<Channel> channel_;
  std::size_t count_ = 0;  // not atomic: reports before the end come one after the other
  std::atomic<bool> has_ended_{false};
  std::promise<std::size_t> ended_;
};

TEST_P(ChannelConformance, WhatWasLeftUnreadAndTheEndBehindItAreReportedAgain) {
  one_->start(make_bytes(100, 8), 0);
  one_->finish();
  one_->channel->close_write();
  const auto reader = std::make_shared<SlowReader>(other_->channel);
  reader->start();
  EXPECT_EQ(reader->count(), 100U);
}

TEST_P(ChannelConformance, M14_ReadinessIsReportedOncePerArm) {
  // The reader leaves the bytes unread while more arrive all the time. A report without an arm(), however late, would
  // come before the last round, and there would be more reports than arms.
  constexpr int kRounds = 60;
  std::atomic<int> arms{0};
  std::atomic<int> reports{0};
  other_->channel->start([&](bool readable, bool) {
    EXPECT_TRUE(readable);
    EXPECT_LE(++reports, arms);
    reports.notify_all();
  });
  one_->start({}, 0);
  const wire::Bytes more = make_bytes(10, 7);
  const iovec out{const_cast<std::byte*>(more.data()), more.size()};
  for (int round = 1; round <= kRounds; ++round) {
    EXPECT_EQ(one_->channel->write(&out, 1).value(), more.size());
    ++arms;
    other_->channel->arm(true, false);
    for (int seen = reports; seen < round; seen = reports) reports.wait(seen);
    EXPECT_EQ(one_->channel->write(&out, 1).value(), more.size());
    ASSERT_EQ(reports, round);
  }
  other_->channel->close();
}

}  // namespace
}  // namespace caftan::transport::channel_conformance_test

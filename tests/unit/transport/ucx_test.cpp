// A peer of channel ucx that writes onto the socket what it likes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "caftan/transport/threaded_executor.hpp"
#include "channels/ucx/ucx_channel.hpp"
#include "channels/ucx/ucx_worker.hpp"

namespace caftan::transport::ucx_test {
namespace {

using ::testing::HasSubstr;

constexpr net::Proof kKey{std::byte{7}};

wire::Bytes record(std::uint8_t kind, std::uint64_t value) {
  wire::Bytes bytes{static_cast<std::byte>(kind)};
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  return bytes;
}

/// An address record with its proof, as the dialler sends it.
wire::Bytes address_record(wire::ByteView address, const net::Proof& key) {
  const net::Secret secret(std::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
  wire::Bytes bytes = record(1, address.size());
  wire::append(bytes, net::make_proof(secret, "caftan ucx dialler", address).value());
  wire::append(bytes, address);
  return bytes;
}

/// The acceptor's end of a channel, and the socket of a dialler that is no channel.
class Ucx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto there = check_ucx(); !there) GTEST_SKIP() << there.error().text();
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    peer_ = fds[0];
    channel_ = make_ucx_channel(executor_, fds[1], {.dials = false, .key = kKey}).value();
    channel_->start([this](bool readable, bool) {
      if (readable && !is_over_.exchange(true)) readable_.set_value();
    });
    channel_->arm(true, false);
  }
  void TearDown() override {
    if (channel_) channel_->close();
    for (const int fd : {peer_, to_real_}) {
      if (fd >= 0) ::close(fd);
    }
  }

  void send(const wire::Bytes& bytes) {
    ASSERT_EQ(::send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// Returns how the channel ends.
  Error end() {
    readable_.get_future().get();
    std::byte byte;
    const iovec into{&byte, 1};
    const auto got = channel_->read(&into, 1);
    return got ? Error(Errc::ok, "", "no end") : got.error();
  }
  /// Opens the channel with the address of a worker that this test makes.
  void open() {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    real_ = make_ucx_channel(executor_, fds[0], {.dials = true, .key = kKey}).value();
    real_->start([](bool, bool) {});
    wire::Bytes bytes(4096);
    const ssize_t got = ::recv(fds[1], bytes.data(), bytes.size(), 0);
    ASSERT_GT(got, 41);
    bytes.resize(static_cast<std::size_t>(got));
    send(bytes);
    if (const int before = std::exchange(to_real_, fds[1]); before >= 0) ::close(before);
  }

  ThreadedExecutor executor_{{.runners = 1, .max_threads = 2}};
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<Channel> real_;
  int peer_ = -1;
  int to_real_ = -1;  // the socket of real_
  std::atomic<bool> is_over_{false};
  std::promise<void> readable_;
};

TEST_F(Ucx, UX2_AnAddressThatIsNotProvenIsNotGivenToUcx) {
  const wire::Bytes address(100, std::byte{0x55});
  send(address_record(address, net::Proof{std::byte{8}}));
  EXPECT_EQ(end().code(), Errc::not_authenticated);
}

TEST_F(Ucx, UX2_TheProofOfAnotherAddressIsNone) {
  wire::Bytes bytes = address_record(wire::Bytes(100, std::byte{0x55}), kKey);
  bytes.back() = std::byte{0x56};
  send(bytes);
  EXPECT_EQ(end().code(), Errc::not_authenticated);
}

TEST_F(Ucx, UX4_AnAddressOfNoBytesOrOfTooMany) {
  send(record(1, 0));
  EXPECT_EQ(end().code(), Errc::malformed_payload);
}

TEST_F(Ucx, UX4_AnAddressThatIsTooLongEndsTheConnectionBeforeItHasCome) {
  send(record(1, 16'385));
  const Error error = end();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_THAT(error.text(), HasSubstr("an address of 16385 bytes"));
}

TEST_F(Ucx, UX4_NoRecordComesBeforeTheAddress) {
  send(record(2, 0));
  EXPECT_EQ(end().code(), Errc::malformed_payload);
}

TEST_F(Ucx, UX4_ARecordOfAnotherKind) {
  open();
  send(record(4, 0));
  EXPECT_EQ(end().code(), Errc::malformed_payload);
}

TEST_F(Ucx, UX4_ThePeerHasReadNoMoreThanWasWritten) {
  open();
  send(record(2, 1));
  const Error error = end();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_THAT(error.text(), HasSubstr("the peer has read byte 1"));
}

TEST_F(Ucx, UX4_AStreamEndsOnce) {
  open();
  send(record(3, 5));
  send(record(3, 5));
  EXPECT_EQ(end().code(), Errc::malformed_payload);
}

TEST_F(Ucx, UX4_ASecondAddress) {
  open();
  open();
  EXPECT_EQ(end().code(), Errc::malformed_payload);
}

TEST_F(Ucx, UX6_TheEndOfTheSocketIsTheEndOfTheStream) {
  open();
  ::close(std::exchange(peer_, -1));
  EXPECT_EQ(end().code(), Errc::peer_down);
}

TEST_F(Ucx, UX6_WhatComesBehindTheEndOfTheSocketIsReadBeforeTheStreamEnds) {
  open();
  pollfd one{peer_, POLLIN, 0};
  ASSERT_EQ(::poll(&one, 1, -1), 1);
  wire::Bytes address(4096);
  const ssize_t size = ::recv(peer_, address.data(), address.size(), 0);
  ASSERT_GT(size, 41);
  send(record(3, 5));
  ::close(std::exchange(peer_, -1));
  (void)channel_->try_sleep();  // looks at the socket
  channel_->wake(true);
  std::array<std::byte, 8> bytes{};
  const iovec into{bytes.data(), bytes.size()};
  const auto nothing = channel_->read(&into, 1);
  ASSERT_TRUE(nothing) << nothing.error().message();
  EXPECT_EQ(*nothing, 0U);

  ASSERT_EQ(::send(to_real_, address.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL), size);
  const iovec from{bytes.data(), 5};
  ASSERT_EQ(real_->write(&from, 1).value(), 5U);
  readable_.get_future().get();
  EXPECT_EQ(channel_->read(&into, 1).value(), 5U);
  const auto end = channel_->read(&into, 1);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), Errc::peer_down);
}

TEST_F(Ucx, UX9_APeerThatEndsWhileMuchIsUnderWayEndsTheStreamAndNothingElse) {
  for (int round = 0; round < 10; ++round) {
    const auto writer = UcxWorker::open().value();
    auto reader = UcxWorker::open().value();
    ASSERT_TRUE(writer->connect(reader->address().value()));
    ASSERT_TRUE(reader->connect(writer->address().value()));
    std::vector<std::byte> bytes(1 << 20);
    const iovec from{bytes.data(), bytes.size()};
    ASSERT_EQ(writer->write(&from, 1, 1).value(), 1U);
    while (!reader->has_data()) {
      (void)writer->progress();
      (void)reader->progress();
    }
    // The reader has stopped: what UCX does not send stays under way.
    while (writer->write(&from, 1, bytes.size()).value() > 0) (void)writer->progress();
    reader.reset();
    while (!writer->failure()) (void)writer->progress();
    EXPECT_EQ(writer->failure()->code(), Errc::peer_down);
  }
}

/// Both ends of a channel; what comes is read, and what may be written is written, when the test says so.
class UcxPair : public ::testing::Test {
 protected:
  static constexpr std::size_t kWindow = 4 << 20;
  /// An end, and how often it was reported readable and writable.
  struct End {
    std::shared_ptr<Channel> channel;
    std::mutex mutex{};
    std::condition_variable changed{};
    int readable = 0;
    int writable = 0;

    void on_ready(bool reads, bool writes) {
      const std::lock_guard lock(mutex);
      readable += reads ? 1 : 0;
      writable += writes ? 1 : 0;
      changed.notify_all();
    }
    void wait_for(int End::*count, int number) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return this->*count >= number; });
    }
    int reports(int End::*count) {
      const std::lock_guard lock(mutex);
      return this->*count;
    }
  };

  void SetUp() override {
    if (const auto there = check_ucx(); !there) GTEST_SKIP() << there.error().text();
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    for (End* const end : {&sender_, &receiver_}) {
      const bool dials = end == &sender_;
      end->channel = make_ucx_channel(executor_, fds[dials ? 0 : 1], {.dials = dials, .key = kKey}).value();
    }
    for (End* const end : {&receiver_, &sender_})
      end->channel->start([end](bool reads, bool writes) { end->on_ready(reads, writes); });
  }
  void TearDown() override {
    for (End* const end : {&sender_, &receiver_}) {
      if (end->channel) end->channel->close();
    }
  }

  /// Writes until `sent_` has reached `size`, and waits for room meanwhile.
  void send_up_to(std::size_t size) {
    while (sent_ < size) {
      const std::size_t put = send_some();
      ASSERT_LE(sent_, received_ + kWindow);
      if (put > 0) continue;
      const int before = sender_.reports(&End::writable);
      sender_.channel->arm(false, true);
      sender_.wait_for(&End::writable, before + 1);
    }
  }
  std::size_t send_some() {
    std::vector<std::byte> bytes(64 * 1024);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(sent_ + i);
    const iovec from{bytes.data(), bytes.size()};
    const std::size_t put = sender_.channel->write(&from, 1).value();
    sent_ += put;
    return put;
  }
  void receive_up_to(std::size_t size) {
    while (received_ < size) {
      std::vector<std::byte> bytes(std::min<std::size_t>(64 * 1024, size - received_));
      const iovec into{bytes.data(), bytes.size()};
      const std::size_t got = receiver_.channel->read(&into, 1).value();
      for (std::size_t i = 0; i < got; ++i) ASSERT_EQ(bytes[i], byte_at(received_ + i)) << received_ + i;
      received_ += got;
      if (got > 0) continue;
      const int before = receiver_.reports(&End::readable);
      receiver_.channel->arm(true, false);
      receiver_.wait_for(&End::readable, before + 1);
    }
  }
  static std::byte byte_at(std::size_t at) { return static_cast<std::byte>(at * 2654435761U >> 13); }

  ThreadedExecutor executor_{{.runners = 1, .max_threads = 2}};
  End sender_;
  End receiver_;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
};

TEST_F(UcxPair, UX3_NoMoreThanAWindowIsUnderWay) {
  send_up_to(kWindow);
  ASSERT_EQ(send_some(), 0U);
  receive_up_to(kWindow / 4);
  send_up_to(kWindow + kWindow / 4);
  EXPECT_EQ(send_some(), 0U);
  receive_up_to(sent_);
}

TEST_F(UcxPair, UX5_AThreadThatSleepsOnTheDescriptorIsWokenAndReadsItself) {
  send_up_to(1);
  receive_up_to(sent_);
  receiver_.channel->arm(true, false);
  const int before = receiver_.reports(&End::readable);
  while (!receiver_.channel->try_sleep()) receiver_.channel->wake(true);
  send_up_to(sent_ + 1);
  pollfd one{receiver_.channel->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&one, 1, -1), 1);
  EXPECT_EQ(receiver_.reports(&End::readable), before) << "the thread that sleeps does the channel's work";
  receiver_.channel->wake(true);
  receive_up_to(sent_);
}

TEST_F(UcxPair, UX5_AThreadThatSleepsIsWokenForWhatAnotherThreadHasTaken) {
  send_up_to(1);
  receive_up_to(sent_);
  while (!receiver_.channel->try_sleep()) receiver_.channel->wake(true);
  send_up_to(sent_ + 1);
  std::vector<std::byte> bytes(64 * 1024);
  const iovec from{bytes.data(), bytes.size()};
  // The sender reads nothing, so that UCX cannot send all at once and works while this thread writes.
  while (!sender_.channel->try_sleep()) sender_.channel->wake(true);
  while (receiver_.channel->write(&from, 1).value() > 0) {
  }
  ASSERT_TRUE(receiver_.channel->has_unread()) << "UCX has handed the bytes to the thread that writes";
  pollfd one{receiver_.channel->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 1);
  receiver_.channel->wake(true);
  sender_.channel->wake(true);
  receive_up_to(sent_);
}

/// As UcxPair, over shared memory of UCX, which does not report that there is room again.
class UcxOverSharedMemory : public UcxPair {
 protected:
  void SetUp() override {
    ::setenv("UCX_TLS", "sysv", 1);
    UcxPair::SetUp();
    ::unsetenv("UCX_TLS");
  }
};

TEST_F(UcxOverSharedMemory, UX7_RoomThatUcxDoesNotReportIsFound) {
  send_up_to(kWindow);
  for (std::size_t size = kWindow; size <= 8 * kWindow; size += kWindow / 4) {
    receive_up_to(size - kWindow / 2);
    send_up_to(size);
  }
  receive_up_to(sent_);
}

}  // namespace
}  // namespace caftan::transport::ucx_test

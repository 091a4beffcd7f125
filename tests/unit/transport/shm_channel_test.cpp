// The channel over rings: set-up, its end, and what a peer of the same user can do to it (docs/protocols/shm.md). What
// it has in common with other channels is in channel_conformance_test.cpp.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/ring.hpp"
#include "channels/shm/shm_channel.hpp"
#include "channels/shm/shm_socket.hpp"

namespace caftan::transport::shm_channel_test {
namespace {

constexpr std::size_t kRing = 4096;

wire::Bytes bytes_of(std::string_view text) {
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

/// A channel that has accepted, and the socket of a peer that is no channel.
class Accepting : public ::testing::Test {
 protected:
  Accepting() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    peer_ = fds[0];
    channel_ = make_shm_channel(executor_, fds[1], {.makes_memory = makes_memory_, .ring = kRing, .frames = 1}, {});
    channel_->start([](bool, bool) {});
  }
  ~Accepting() override {
    channel_->close();
    ::close(peer_);
  }

  /// Sends a descriptor as the peer's last byte, and closes it here.
  void send(int descriptor) {
    EXPECT_EQ(send_descriptor(peer_, descriptor), Sent::yes);
    ::close(descriptor);
  }
  /// Sends memory as an honest peer does.
  void send_memory() {
    memory_ = std::make_shared<SharedMemory>(*SharedMemory::make(two_rings(kRing)));
    send(::dup(memory_->fd()));
    writer_ = std::make_unique<RingWriter>(memory_, false);
    words_ = std::make_unique<MappedWords>(RingPlace(*memory_, false).header);
    back_ = std::make_unique<MappedWords>(RingPlace(*memory_, true).header);
  }
  void write(std::string_view text) {
    wire::Bytes bytes = bytes_of(text);
    const iovec vector{bytes.data(), bytes.size()};
    ASSERT_EQ(writer_->write(&vector, 1, [] {}).value(), bytes.size());
  }
  Result<std::string> read() {
    std::string text(64, '\0');
    const iovec vector{text.data(), text.size()};
    const auto got = channel_->read(&vector, 1);
    if (!got) return got.error();
    text.resize(*got);
    return text;
  }
  Result<std::size_t> answer(std::string_view text) {
    wire::Bytes bytes = bytes_of(text);
    const iovec vector{bytes.data(), bytes.size()};
    return channel_->write(&vector, 1);
  }

  static constexpr bool makes_memory_ = false;
  ThreadedExecutor executor_{{.runners = 1}};
  std::shared_ptr<Channel> channel_;
  int peer_ = -1;
  std::shared_ptr<SharedMemory> memory_;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<MappedWords> words_;
  std::unique_ptr<MappedWords> back_;
};

TEST_F(Accepting, DP1_WhatIsOnTheSocketComesBeforeWhatIsInTheRing) {
  ASSERT_EQ(::send(peer_, "first", 5, 0), 5);
  send_memory();
  write("second");
  EXPECT_EQ(read().value(), "first");
  EXPECT_EQ(read().value(), "second");
  EXPECT_EQ(read().value(), "");
}

TEST_F(Accepting, ItSwitchesWhenItHasTheMemoryAndSendsItBack) {
  ASSERT_TRUE(answer("on the socket"));
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  ASSERT_TRUE(answer("in the ring"));
  char bytes[64];
  const iovec vector{bytes, sizeof bytes};
  const auto got = read_socket(peer_, &vector, 1);
  ASSERT_TRUE(got);
  EXPECT_EQ(std::string(bytes, got->bytes), "on the socket");
  ASSERT_GE(got->descriptor, 0);
  EXPECT_TRUE(memory_->is_same(got->descriptor));
  ::close(got->descriptor);
  EXPECT_EQ(back_->load(RingWord::tail), std::strlen("in the ring"));
}

TEST_F(Accepting, SP3_ALookIsNoSystemCallOnceThereAreRings) {
  EXPECT_EQ(channel_->look(), Look::unable) << "on the socket";
  send_memory();
  EXPECT_EQ(read().value(), "");
  EXPECT_EQ(channel_->look(), Look::nothing);
  write("x");
  EXPECT_EQ(channel_->look(), Look::something);
  EXPECT_EQ(read().value(), "x");
  EXPECT_EQ(channel_->look(), Look::nothing);
  ::shutdown(peer_, SHUT_RDWR);
  while (channel_->look() != Look::something) std::this_thread::yield();  // an idle runner finds the end
  EXPECT_EQ(read().error().code(), Errc::peer_down);
}

TEST_F(Accepting, SP3_DP3_WhoLooksIsNotRungAndWhoSleepsAgainIs) {
  send_memory();
  EXPECT_EQ(read().value(), "");
  int rings = 0;
  const auto write_one = [&] {
    std::byte byte{'x'};
    const iovec vector{&byte, 1};
    EXPECT_EQ(writer_->write(&vector, 1, [&] { ++rings; }).value(), 1U);
  };
  ASSERT_TRUE(channel_->try_sleep());
  channel_->stay_awake();
  write_one();
  EXPECT_EQ(rings, 0);
  EXPECT_FALSE(channel_->try_sleep()) << "it has come while this thread looked";
  EXPECT_EQ(read().value(), "x");
  ASSERT_TRUE(channel_->try_sleep());
  write_one();
  EXPECT_EQ(rings, 1);
  channel_->stay_awake();
  EXPECT_EQ(::send(peer_, "", 1, 0), 1) << "the bell that was rung";
  EXPECT_EQ(read().value(), "x");
  ASSERT_TRUE(channel_->try_sleep());
  std::byte byte{};
  EXPECT_EQ(::recv(channel_->fd(), &byte, 1, MSG_DONTWAIT), -1) << "a bell of an earlier sleep wakes this one";
}

TEST_F(Accepting, DP2_EveryOtherDescriptorEndsTheStreamWithAnError) {
  for (const int bad : {::eventfd(0, 0), ::memfd_create("unsealed", MFD_ALLOW_SEALING), ::open("/dev/null", O_RDWR)}) {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    const auto channel = make_shm_channel(executor_, fds[1], {.ring = kRing}, {});
    channel->start([](bool, bool) {});
    ASSERT_EQ(send_descriptor(fds[0], bad), Sent::yes);
    ::close(bad);
    std::byte byte{};
    const iovec vector{&byte, 1};
    const auto got = channel->read(&vector, 1);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), Errc::malformed_payload);
    EXPECT_EQ(::recv(fds[0], &byte, 1, 0), 0) << "the peer does not see the end";
    channel->close();
    ::close(fds[0]);
  }
}

TEST_F(Accepting, DP8_MemoryThatIsLargerThanItTakesIsRefused) {
  send(::dup(SharedMemory::make(two_rings(2 * kRing))->fd()));
  EXPECT_EQ(read().error().code(), Errc::malformed_payload);
}

TEST_F(Accepting, DP2_TwoDescriptorsAtOnceAreRefusedAndClosed) {
  int one[2];
  int other[2];
  ASSERT_EQ(::pipe2(one, O_NONBLOCK), 0);
  ASSERT_EQ(::pipe2(other, O_NONBLOCK), 0);
  const int both[2] = {one[1], other[1]};
  char byte = 0;
  iovec vector{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof both)] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof both);
  std::memcpy(CMSG_DATA(part), both, sizeof both);
  ASSERT_EQ(::sendmsg(peer_, &message, 0), 1);
  for (const int fd : both) ::close(fd);
  EXPECT_EQ(read().error().code(), Errc::malformed_payload);
  for (const int fd : {one[0], other[0]}) {
    EXPECT_EQ(::read(fd, &byte, 1), 0) << "a descriptor of the peer is still open";
    ::close(fd);
  }
}

TEST_F(Accepting, WithoutADescriptorForThePeersMemoryTheErrorSaysSo) {
  send_memory();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto got = read();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Errc::limit_exceeded);
  EXPECT_NE(got.error().text().find("no descriptor left"), std::string::npos) << got.error().text();
}

TEST_F(Accepting, DP8_MemoryWhoseRingsAreNoWholePagesIsRefused) {
  for (const std::size_t more : {std::size_t{1}, kRing}) {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    const auto channel = make_shm_channel(executor_, fds[1], {.ring = 4 * kRing}, {});
    channel->start([](bool, bool) {});
    ASSERT_EQ(send_descriptor(fds[0], SharedMemory::make(two_rings(kRing) + more)->fd()), Sent::yes);
    std::byte byte{};
    const iovec vector{&byte, 1};
    const auto got = channel->read(&vector, 1);
    ASSERT_FALSE(got) << more;
    EXPECT_EQ(got.error().code(), Errc::malformed_payload);
    channel->close();
    ::close(fds[0]);
  }
}

TEST_F(Accepting, DP2_AWrongCounterEndsTheStreamForBothSides) {
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  words_->store(RingWord::tail, std::uint64_t{1} << 40);
  EXPECT_TRUE(channel_->has_unread());
  const auto got = read();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Errc::malformed_payload);
  char byte = 0;
  ssize_t last = 1;
  while (last > 0) last = ::recv(peer_, &byte, 1, 0);
  EXPECT_EQ(last, 0);
}

TEST_F(Accepting, DP2_AWrongCounterOfTheReaderEndsTheStreamToo) {
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  ASSERT_TRUE(answer("reply"));
  back_->store(RingWord::head, 6);
  const auto put = answer("more");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), Errc::malformed_payload);
  char byte = 0;
  ssize_t last = 1;
  while (last > 0) last = ::recv(peer_, &byte, 1, 0);
  EXPECT_EQ(last, 0);
}

TEST_F(Accepting, TheRestOfTheRingIsReadBeforeTheEnd) {
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  write("last words");
  ::shutdown(peer_, SHUT_RDWR);  // as the kernel does when the peer is killed
  channel_->wake(true);
  EXPECT_EQ(read().value(), "last words");
  EXPECT_EQ(read().error().code(), Errc::peer_down);
}

TEST_F(Accepting, APeerThatRingsWithoutEndIsNoStream) {
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  const std::string rings(10'000, '\1');
  ASSERT_GT(::send(peer_, rings.data(), rings.size(), 0), 0);
  for (int i = 0; i < 100; ++i) {
    channel_->wake(true);
    EXPECT_EQ(read().value(), "");
  }
  write("still there");
  EXPECT_EQ(read().value(), "still there");
}

TEST_F(Accepting, DP3_ABellForWhichTheSocketHadNoRoomIsRungWithTheNextBeat) {
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  // A peer that reads the ring, and takes no bells away.
  constexpr std::uint64_t kSleeps = 100'000;  // more bells than a socket takes
  for (std::uint64_t sleeps = 1; sleeps <= kSleeps; ++sleeps) {
    back_->store(RingWord::bytes_bell, (sleeps << bell::kStateBits) | bell::kAsleep);
    ASSERT_EQ(answer("x").value(), 1U);
    back_->store(RingWord::head, sleeps);
  }
  const auto take_bells = [this] {
    char bytes[1024];
    std::size_t taken = 0;
    for (ssize_t got = 0; (got = ::recv(peer_, bytes, sizeof bytes, 0)) > 0;) taken += static_cast<std::size_t>(got);
    return taken;
  };
  const std::size_t taken = take_bells();
  EXPECT_GT(taken, 1U);
  ASSERT_LT(taken, kSleeps) << "the socket took all bells";
  EXPECT_TRUE(channel_->beat());
  EXPECT_EQ(take_bells(), 1U);
  EXPECT_TRUE(channel_->beat());
  EXPECT_EQ(take_bells(), 0U) << "the bell was rung once more";
}

TEST_F(Accepting, DP3_NoSleepBeginsWhereThereIsSomethingToRead) {
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  EXPECT_TRUE(channel_->try_sleep());
  write("y");
  EXPECT_FALSE(channel_->try_sleep());
  EXPECT_EQ(read().value(), "y");
  ::shutdown(peer_, SHUT_RDWR);
  channel_->wake(true);
  EXPECT_FALSE(channel_->try_sleep());
}

TEST_F(Accepting, BeatsTravelInTheHeaderOfTheRing) {
  EXPECT_FALSE(channel_->beat()) << "there is no ring yet: a ping is needed";
  send_memory();
  write("x");
  EXPECT_EQ(read().value(), "x");
  EXPECT_EQ(channel_->beats(), 0U);
  writer_->beat();
  EXPECT_EQ(channel_->beats(), 1U);
  EXPECT_TRUE(channel_->beat());
  EXPECT_EQ(back_->load(RingWord::beat), 1U);
  EXPECT_FALSE(channel_->has_unread()) << "a beat is no byte";
}

/// A channel that has dialled.
TEST(Dialling, DP2_OtherMemoryThanItsOwnIsRefused) {
  ThreadedExecutor executor({.runners = 1});
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const auto channel = make_shm_channel(executor, fds[1], {.makes_memory = true, .ring = kRing, .frames = 1}, {});
  channel->start([](bool, bool) {});
  std::byte byte{};
  const iovec vector{&byte, 1};
  ASSERT_EQ(channel->write(&vector, 1).value(), 1U);
  const auto other = SharedMemory::make(two_rings(kRing));
  ASSERT_EQ(send_descriptor(fds[0], other->fd()), Sent::yes);
  const auto got = channel->read(&vector, 1);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Errc::malformed_payload);
  channel->close();
  ::close(fds[0]);
}

TEST(Dialling, WithoutMemoryForRingsAllStaysOnTheSocketAndTheKindSaysSo) {
  ThreadedExecutor executor({.runners = 1});
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const auto channel = make_shm_channel(executor, fds[1], {.makes_memory = true, .ring = kRing, .frames = 1}, {});
  channel->start([](bool, bool) {});
  EXPECT_STREQ(channel->kind(), "shm");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  char text[] = "hello";
  const iovec vector{text, 5};
  auto put = channel->write(&vector, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(put.value(), 5U);
  EXPECT_STREQ(channel->kind(), "unix");
  char got[8];
  EXPECT_EQ(::recv(fds[0], got, sizeof got, 0), 5);
  channel->close();
  ::close(fds[0]);
}

}  // namespace
}  // namespace caftan::transport::shm_channel_test

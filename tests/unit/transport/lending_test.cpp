// Reading what a peer has lent out of its memory: whose memory it is, what is not there, and the end of either side
// (docs/protocols/bulk.md).
#include "channels/shm/lending.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "caftan/transport/internal/endpoint.hpp"
#include "refuse_reading.hpp"

namespace caftan::transport::lending_test {
namespace {

constexpr std::size_t kHeader = 4096;
constexpr std::size_t kPage = 4096;

/// The headers of two rings, shared with processes that are forked later.
class Headers {
 public:
  Headers()
      : memory_(static_cast<std::byte*>(
            ::mmap(nullptr, 2 * kHeader, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Headers() { ::munmap(memory_, 2 * kHeader); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  std::byte* taker() const { return memory_; }
  std::byte* lender() const { return memory_ + kHeader; }
  LendingWords& words(std::byte* header) const { return *reinterpret_cast<LendingWords*>(header + kLendingAt); }

 private:
  std::byte* memory_;
};

/// A process that does what it is given and then waits until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& act) {
    std::array<int, 2> ends;
    if (::pipe(ends.data()) != 0) std::abort();
    id = ::fork();
    if (id == 0) {
      act();
      if (::write(ends[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill() {
    if (id <= 0) return;
    ::kill(id, SIGKILL);
    ::waitpid(id, nullptr, 0);
    id = 0;
  }

  pid_t id = 0;
};

/// Two pages of this process, and of a child that is forked later; the second one is not there.
struct Pages {
  Pages()
      : data(static_cast<std::byte*>(
            ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::munmap(data + kPage, kPage);
    std::memset(data, 7, kPage);
  }
  ~Pages() { ::munmap(data, kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::uint64_t at(std::size_t offset = 0) const { return reinterpret_cast<std::uintptr_t>(data) + offset; }
  std::byte* data;
};

class LentByAChild : public ::testing::Test {
 protected:
  /// @param change  what the child does with its memory before it shows its identity
  void lend(const std::function<void()>& change = [] {}) {
    child_ = std::make_unique<Child>([&] {
      change();
      static Lending lending(headers_.lender(), headers_.taker(), ::getppid(), nullptr);
      if (!lending.show()) ::_exit(1);
    });
    taker_ = std::make_unique<Lending>(headers_.taker(), headers_.lender(), child_->id, nullptr);
  }
  Result<void> read(std::uint64_t from, std::size_t size = 100) {
    bytes_.assign(size, std::byte{0});
    return taker_->read(from, bytes_);
  }

  Headers headers_;
  Pages pages_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<Lending> taker_;
  std::vector<std::byte> bytes_;
};

TEST_F(LentByAChild, BU1_ItsMemoryIsReadOnceItsIdentityWasFound) {
  lend([this] { std::memset(pages_.data, 8, kPage); });
  Lending lender(headers_.lender(), headers_.taker(), ::getpid(), nullptr);
  EXPECT_FALSE(lender.peer_reads());
  const auto probed = taker_->probe();
  ASSERT_TRUE(probed) << probed.error().text();
  EXPECT_TRUE(lender.peer_reads());
  ASSERT_TRUE(read(pages_.at(10)));
  EXPECT_EQ(bytes_, std::vector<std::byte>(100, std::byte{8})) << "the child's memory, not what this process has there";
}

TEST_F(LentByAChild, BU1_AnotherProcessThanTheOneThatShowedItsIdentityIsNotRead) {
  lend();
  Lending wrong(headers_.taker(), headers_.lender(), ::getpid(), nullptr);
  EXPECT_EQ(wrong.probe().error().code(), Errc::unsupported);
  EXPECT_NE(headers_.words(headers_.taker()).reads.load(), 1U);
}

TEST_F(LentByAChild, BU1_WithoutAnIdentityNothingIsRead) {
  taker_ = std::make_unique<Lending>(headers_.taker(), headers_.lender(), ::getpid(), nullptr);
  EXPECT_EQ(taker_->probe().error().text(), "the peer does not let its memory be read");
  headers_.words(headers_.lender()).identity_at = 8;  // there is no such memory
  EXPECT_EQ(taker_->probe().error().code(), Errc::unsupported);
}

TEST_F(LentByAChild, BU1_AProcessWithTheNumberOfOneThatHasEndedIsNotTakenForIt) {
  lend();
  ASSERT_TRUE(taker_->probe());
  // Its memory no longer has the identity, as that of a process that got its number has not.
  child_->kill();
  Child other([] {});
  Lending of_other(headers_.taker(), headers_.lender(), other.id, nullptr);
  EXPECT_FALSE(of_other.probe());
  bytes_.resize(100);
  EXPECT_EQ(of_other.read(pages_.at(), bytes_).error().code(), Errc::peer_down);
}

TEST_F(LentByAChild, BU9_MemoryThatIsNotThereIsMalformedInWholeAndInPart) {
  lend();
  ASSERT_TRUE(taker_->probe());
  for (const std::uint64_t bad :
       {std::uint64_t{0}, pages_.at(kPage), pages_.at(kPage - 50), ~std::uint64_t{0} - 50, std::uint64_t{1} << 63}) {
    EXPECT_EQ(read(bad).error().code(), Errc::malformed_payload) << bad;
  }
  EXPECT_TRUE(read(pages_.at(kPage - 100)));
}

TEST_F(LentByAChild, BU1_AKilledProcessIsDownBeforeAndAfterItIsReaped) {
  lend();
  ASSERT_TRUE(taker_->probe());
  ASSERT_EQ(::kill(child_->id, SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_->id), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(read(pages_.at()).error().code(), Errc::peer_down);
  child_->kill();
  EXPECT_EQ(read(pages_.at()).error().code(), Errc::peer_down);
}

TEST_F(LentByAChild, BU4_WhatWasReadAfterTheLenderLetGoOfItIsNotGiven) {
  lend();
  ASSERT_TRUE(taker_->probe());
  Lending(headers_.lender(), headers_.taker(), ::getpid(), nullptr).end();
  EXPECT_EQ(read(pages_.at()).error().code(), Errc::peer_down);
}

TEST_F(LentByAChild, BU1_WhereTheKernelRefusesBothSidesKnowIt) {
  lend();
  Lending lender(headers_.lender(), headers_.taker(), ::getpid(), nullptr);
  EXPECT_FALSE(lender.peer_reads() || lender.peer_refuses());
  std::thread([this] {
    ASSERT_TRUE(test::refuse_reading(false));
    EXPECT_TRUE(check_reading()) << "itself";
    EXPECT_EQ(taker_->probe().error().text().substr(0, 41), "process_vm_readv: Operation not permitted");
  }).join();
  EXPECT_FALSE(lender.peer_reads());
  EXPECT_TRUE(lender.peer_refuses());
}

TEST_F(LentByAChild, BU1_AKernelThatRefusesLaterIsNoMistakeOfThePeer) {
  lend();
  ASSERT_TRUE(taker_->probe());
  std::thread([this] {
    ASSERT_TRUE(test::refuse_reading(false));
    EXPECT_EQ(read(pages_.at()).error().code(), Errc::unsupported);
  }).join();
}

TEST(Lending, AKernelThatLetsNoMemoryBeReadIsKnownBeforehand) {
  std::thread([] {
    ASSERT_TRUE(test::refuse_reading(true));
    const auto reading = check_reading();
    ASSERT_FALSE(reading);
    EXPECT_EQ(reading.error().text().substr(0, 41), "process_vm_readv: Operation not permitted");
    EXPECT_EQ(machine_note("shm"), "large tensors go through the rings: " + reading.error().text());
    EXPECT_EQ(machine_note("unix") + machine_note("tcp"), "");
  }).join();
}

TEST(Lending, ThisProcessIsReadAsAnyOther) {
  const Headers headers;
  Lending one(headers.taker(), headers.lender(), ::getpid(), nullptr);
  Lending other(headers.lender(), headers.taker(), ::getpid(), nullptr);
  ASSERT_TRUE(one.show() && other.show());
  ASSERT_TRUE(one.probe() && other.probe());
  EXPECT_TRUE(one.peer_reads() && other.peer_reads());
  const std::array<std::byte, 3> from{std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> to{};
  ASSERT_TRUE(one.read(reinterpret_cast<std::uintptr_t>(from.data()), to));
  EXPECT_EQ(from, to);
}

TEST(Lending, TheProcessThatMadeAConnectionIsKnown) {
  std::array<int, 2> ends;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  EXPECT_EQ(process_of_peer(ends[0]).value(), ::getpid());
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(process_of_peer(ends[0]).error().code(), Errc::unsupported);
}

}  // namespace
}  // namespace caftan::transport::lending_test

// Channel shm from the handshake on: what the sides of a connection agree on, and what they say of what is lacking
// (docs/protocols/shm.md, bulk.md).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/transport/internal/endpoint.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/ring.hpp"
#include "folder.hpp"
#include "refuse_reading.hpp"

namespace caftan::transport::shm_kind_test {
namespace {

net::HandshakeOptions worker(std::uint32_t id) {
  net::HandshakeOptions options;
  options.self.cluster = "test";
  options.self.name = "worker" + std::to_string(id);
  options.self.id = WorkerId{id};
  options.self.incarnation = Incarnation{id + 1};
  options.self.connection = id;
  options.allow_no_secret = true;
  return options;
}

/// Both ends of a connection: the side that listened, then the side that dialled.
std::array<Accepted, 2> connect(PollingExecutor& executor, const std::string& listen_at, const std::string& dial_at,
                                const HandshakeIoOptions& listener_options, const HandshakeIoOptions& dialler_options) {
  std::promise<Result<Accepted>> accepted;
  std::promise<Result<Accepted>> dialled;
  auto listener = listen(
      executor, listen_at, [] { return worker(0); }, listener_options,
      [&](Result<Accepted> result) { accepted.set_value(std::move(result)); });
  (*listener)->start();
  dial(executor, dial_at, worker(1), "worker0", dialler_options,
       [&](Result<Accepted> result) { dialled.set_value(std::move(result)); });
  std::array<Accepted, 2> ends{accepted.get_future().get().value(), dialled.get_future().get().value()};
  (*listener)->close();
  return ends;
}

TEST(ShmKind, BothSidesOfAConnectionAgreeAndTheirBudgetIsTakenUntilTheEnd) {
  ThreadedExecutor executor({.runners = 1});
  const test::Folder folder;
  {
    const auto ends = connect(executor, "shm:" + (folder / "a"), "shm:" + (folder / "a"), {}, {});
    for (const Accepted& end : ends) {
      EXPECT_STREQ(end.channel->kind(), "shm");
      EXPECT_EQ(end.channel->note(), "");
    }
    EXPECT_EQ(executor.shared_memory().used(), 2 * two_rings(64 * 1024));
    for (const Accepted& end : ends) end.channel->close();
  }
  EXPECT_EQ(executor.shared_memory().used(), 0U);
}

TEST(ShmKind, DP8_BeyondItsLimitASideOffersNoRingsAndBothSayWhy) {
  ThreadedExecutor executor({.runners = 1});
  const test::Folder folder;
  const auto ends = connect(executor, "shm:" + (folder / "a"), "shm:" + (folder / "a"), {.rings = 1000}, {});
  for (const Accepted& end : ends) EXPECT_STREQ(end.channel->kind(), "unix");
  EXPECT_EQ(ends[0].channel->note(), "not over shm: limits.shared_memory has no room for more rings");
  EXPECT_EQ(ends[1].channel->note(), "not over shm: worker0 does not offer shared memory");
  for (const Accepted& end : ends) end.channel->close();
}

TEST(ShmKind, APeerWithoutItGetsASocket) {
  ThreadedExecutor executor({.runners = 1});
  const test::Folder folder;
  const auto ends = connect(executor, "shm:" + (folder / "a"), "unix:" + (folder / "a"), {}, {});
  for (const Accepted& end : ends) EXPECT_STREQ(end.channel->kind(), "unix");
  EXPECT_EQ(ends[0].channel->note(), "not over shm: worker1 does not offer shared memory");
  EXPECT_EQ(ends[1].channel->note(), "");
  for (const Accepted& end : ends) end.channel->close();
}

TEST(ShmKind, RingsAreNoLargerThanTheOtherSideTakes) {
  ThreadedExecutor executor({.runners = 1});
  const test::Folder folder;
  const auto ends =
      connect(executor, "shm:" + (folder / "a"), "shm:" + (folder / "a"), {.ring = 5000}, {.ring = 1 << 20});
  wire::Bytes bytes(100'000);
  const iovec out{bytes.data(), bytes.size()};
  for (const Accepted& end : ends) end.channel->start([](bool, bool) {});
  EXPECT_EQ(ends[1].channel->write(&out, 1).value(), 8192U) << "5000 bytes are two pages";
  EXPECT_EQ(ends[0].channel->read(&out, 1).value(), 8192U);
  for (const Accepted& end : ends) end.channel->close();
}

TEST(ShmKind, BU1_BU4_OnceTheRingsAreThereEachSideReadsTheOthersMemoryUntilItEnds) {
  ThreadedExecutor executor({.runners = 1});
  const test::Folder folder;
  std::atomic<int> notes{0};
  const HandshakeIoOptions options{.note = [&](const std::string&, const std::string&) { ++notes; }};
  const auto ends = connect(executor, "shm:" + (folder / "a"), "shm:" + (folder / "a"), options, options);
  Channel& listener = *ends[0].channel;
  Channel& dialler = *ends[1].channel;
  for (const Accepted& end : ends) {
    EXPECT_NE(end.peer.agreed_features & net::kTakesLent, 0U);
    end.channel->start([](bool, bool) {});
    EXPECT_FALSE(end.channel->lends());
  }
  wire::Bytes bytes(100'000);
  const iovec vector{bytes.data(), bytes.size()};
  EXPECT_GT(dialler.write(&vector, 1).value(), 0U);
  EXPECT_GT(listener.read(&vector, 1).value(), 0U);
  EXPECT_EQ(dialler.read(&vector, 1).value(), 0U);
  std::array<std::byte, 3> to{};
  const std::array from{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  for (const Accepted& end : ends) {
    EXPECT_TRUE(end.channel->lends());
    to = {};
    ASSERT_TRUE(end.channel->read_lent(reinterpret_cast<std::uintptr_t>(from.data()), to));
    EXPECT_TRUE(std::ranges::equal(to, from));
  }
  dialler.close();
  EXPECT_EQ(listener.read_lent(reinterpret_cast<std::uintptr_t>(from.data()), to).error().code(), Errc::peer_down);
  listener.close();
  EXPECT_EQ(notes, 0);
  EXPECT_EQ(listener.note() + dialler.note(), "");
}

/// A pair whose sides agreed to lend, after each has written and read once on a thread that `prepare` was called on.
struct Switched {
  explicit Switched(const std::function<void()>& prepare) {
    const HandshakeIoOptions options{
        .note = [this](const std::string& peer, const std::string& note) { notes.push_back(peer + ": " + note); }};
    ends = connect(executor, "shm:" + (folder / "a"), "shm:" + (folder / "a"), options, options);
    for (const Accepted& end : ends) end.channel->start([](bool, bool) {});
    std::thread([&] {
      prepare();
      wire::Bytes bytes(100'000);
      const iovec vector{bytes.data(), bytes.size()};
      EXPECT_GT(ends[1].channel->write(&vector, 1).value(), 0U);
      EXPECT_GT(ends[0].channel->read(&vector, 1).value(), 0U);
      EXPECT_EQ(ends[1].channel->read(&vector, 1).value(), 0U);
    }).join();
  }
  ~Switched() {
    for (const Accepted& end : ends) end.channel->close();
  }
  /// Waits until what was posted has run.
  void run_posted() {
    std::promise<void> done;
    executor.post([&] { done.set_value(); });
    done.get_future().get();
  }
  std::vector<std::string> notes;  // written on the one runner
  ThreadedExecutor executor{{.runners = 1}};
  test::Folder folder;
  std::array<Accepted, 2> ends;
};

TEST(ShmKind, BU1_WhereTheKernelRefusesToReadNothingIsLentAndEachSideSaysWhyOnce) {
  Switched pair([] { ASSERT_TRUE(test::refuse_reading(true)); });
  const std::string from = "large tensors from it go through the ring: process_vm_readv: Operation not permitted";
  for (const Accepted& end : pair.ends) {
    EXPECT_FALSE(end.channel->lends());
    EXPECT_STREQ(end.channel->kind(), "shm");
    EXPECT_EQ(end.channel->note(),
              "large tensors to it go through the ring: it cannot read this process's memory; " + from);
  }
  pair.run_posted();
  EXPECT_EQ(pair.notes, (std::vector<std::string>{"worker1: " + from, "worker0: " + from}));
}

TEST(ShmKind, WithoutMemoryForTheRingsTheSessionStaysOnItsSocketAndSaysWhyOnce) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::string> notes;
  ThreadedExecutor executor({.runners = 1});
  const test::Folder folder;
  const HandshakeIoOptions options{.note = [&](const std::string&, const std::string& note) { notes.push_back(note); }};
  const auto ends = connect(executor, "shm:" + (folder / "a"), "shm:" + (folder / "a"), options, options);
  Channel& dialler = *ends[1].channel;
  dialler.start([](bool, bool) {});
  wire::Bytes bytes(70'000);
  const iovec vector{bytes.data(), bytes.size()};
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto first = dialler.write(&vector, 1);
  const auto second = dialler.write(&vector, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(first && second);
  EXPECT_STREQ(dialler.kind(), "unix");
  EXPECT_EQ(dialler.note(), "not over shm: shared memory: memfd_create: Too many open files");
  std::promise<void> done;
  executor.post([&] { done.set_value(); });
  done.get_future().get();
  EXPECT_EQ(notes, std::vector<std::string>{dialler.note()});
  for (const Accepted& end : ends) end.channel->close();
}

}  // namespace
}  // namespace caftan::transport::shm_kind_test

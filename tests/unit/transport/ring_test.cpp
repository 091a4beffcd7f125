// A ring in shared memory: bytes in order, bells, and what a peer may write there. docs/protocols/shm.md, DP-1 to DP-3.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "caftan/base/ids.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/ring.hpp"
#include "channels/shm/ring_demand.hpp"

namespace caftan::transport::ring_test {
namespace {

constexpr std::size_t kRing = 4096;

/// Both ends of one ring, each with a mapping of its own, and the words as a peer may write them.
class Ring : public ::testing::Test {
 protected:
  Ring() {
    auto made = SharedMemory::make(two_rings(kRing));
    auto taken = SharedMemory::take(::dup(made->fd()), two_rings(kRing), two_rings(kRing));
    made_ = std::make_shared<SharedMemory>(*std::move(made));
    taken_ = std::make_shared<SharedMemory>(*std::move(taken));
    writer = std::make_unique<RingWriter>(made_, false);
    reader = std::make_unique<RingReader>(taken_, false);
    words = std::make_unique<MappedWords>(RingPlace(*made_, false).header);
  }

  /// Writes as much as there is room for; returns how much, and counts how often the reader's bell is rung.
  Result<std::size_t> write(wire::ByteView bytes) {
    const iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return writer->write(&vector, 1, [this] { ++rings_for_bytes; });
  }
  Result<std::size_t> read(std::byte* to, std::size_t size) {
    const iovec vector{to, size};
    return reader->read(&vector, 1, [this] { ++rings_for_room; });
  }
  wire::Bytes read(std::size_t size) {
    wire::Bytes bytes(size);
    bytes.resize(read(bytes.data(), size).value());
    return bytes;
  }
  bool arm_reader() {
    return reader->arm([] {});
  }

  std::unique_ptr<RingWriter> writer;
  std::unique_ptr<RingReader> reader;
  std::unique_ptr<MappedWords> words;
  int rings_for_bytes = 0;
  int rings_for_room = 0;

 private:
  std::shared_ptr<SharedMemory> made_;
  std::shared_ptr<SharedMemory> taken_;
};

wire::Bytes make_bytes(std::size_t size, std::uint64_t seed) {
  wire::Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(mix64(seed + i / 8) >> (i % 8 * 8));
  return bytes;
}

TEST_F(Ring, DP1_BytesComeOutInTheirOrderHoweverTheyAreCut) {
  const wire::Bytes all = make_bytes(100'003, 1);
  std::mt19937_64 random(7);
  wire::Bytes out;
  std::size_t sent = 0;
  while (out.size() < all.size()) {
    const std::size_t offered = std::min<std::size_t>(random() % 6000, all.size() - sent);
    const std::size_t first = offered / 3;
    const iovec parts[2] = {{const_cast<std::byte*>(all.data()) + sent, first},
                            {const_cast<std::byte*>(all.data()) + sent + first, offered - first}};
    sent += writer->write(parts, 2, [] {}).value();
    wire::append(out, read(random() % 6000));
  }
  EXPECT_TRUE(out == all);
}

TEST_F(Ring, AFullRingTakesNothingAndAnEmptyOneGivesNothing) {
  EXPECT_EQ(read(10).size(), 0U);
  EXPECT_EQ(write(make_bytes(kRing + 1, 2)).value(), kRing);
  EXPECT_EQ(write(make_bytes(1, 3)).value(), 0U);
  EXPECT_EQ(read(1).size(), 1U);
  EXPECT_EQ(write(make_bytes(5, 3)).value(), 1U);
}

TEST_F(Ring, TheSecondRingOfTheMemoryIsAnotherOne) {
  const auto memory = std::make_shared<SharedMemory>(*SharedMemory::make(two_rings(kRing)));
  RingWriter forth(memory, false);
  RingWriter back(memory, true);
  wire::Bytes ones(kRing, std::byte{1});
  wire::Bytes twos(kRing, std::byte{2});
  const iovec one{ones.data(), ones.size()};
  const iovec two{twos.data(), twos.size()};
  ASSERT_EQ(forth.write(&one, 1, [] {}).value(), kRing);
  ASSERT_EQ(back.write(&two, 1, [] {}).value(), kRing);
  wire::Bytes got(kRing);
  const iovec out{got.data(), got.size()};
  ASSERT_EQ(RingReader(memory, false).read(&out, 1, [] {}).value(), kRing);
  EXPECT_TRUE(got == ones);
  ASSERT_EQ(RingReader(memory, true).read(&out, 1, [] {}).value(), kRing);
  EXPECT_TRUE(got == twos);
}

TEST_F(Ring, DP3_TheReadersBellIsRungOnceForASleepAndNotWithoutOne) {
  ASSERT_TRUE(write(make_bytes(1, 4)));
  EXPECT_EQ(rings_for_bytes, 0);
  EXPECT_EQ(read(10).size(), 1U);
  ASSERT_TRUE(arm_reader());
  EXPECT_FALSE(reader->is_rung());
  ASSERT_TRUE(write(make_bytes(1, 5)));
  ASSERT_TRUE(write(make_bytes(1, 6)));
  EXPECT_EQ(rings_for_bytes, 1);
  EXPECT_TRUE(reader->is_rung());
}

TEST_F(Ring, DP3_ASleepThatEndedByItselfIsNotAnswered) {
  ASSERT_TRUE(arm_reader());
  reader->disarm();
  ASSERT_TRUE(write(make_bytes(1, 4)));
  EXPECT_EQ(rings_for_bytes, 0);
}

TEST_F(Ring, DP3_NoSleepBeginsWhereThereAreBytes) {
  ASSERT_TRUE(write(make_bytes(1, 4)));
  EXPECT_FALSE(arm_reader());
  ASSERT_TRUE(write(make_bytes(1, 5)));
  EXPECT_EQ(rings_for_bytes, 0) << "the sleep that did not begin was answered";
}

TEST_F(Ring, DP3_WhatAPeerStoresBetweenTheWordAndTheLookIsSeen) {
  EXPECT_FALSE(reader->arm([this] { ASSERT_TRUE(write(make_bytes(1, 4))); }));
  EXPECT_EQ(rings_for_bytes, 1);
}

TEST_F(Ring, DP3_NoSleepBeginsWhoseBellMayHaveBeenTakenAway) {
  // The writer was held up between its counter and its bell. The reader has read the bytes and sleeps again, and takes
  // the late bell away.
  ASSERT_TRUE(write(make_bytes(1, 4)));
  EXPECT_EQ(read(10).size(), 1U);
  EXPECT_FALSE(reader->arm([this] { ASSERT_TRUE(bell::answer(*words, RingWord::bytes_bell)); }));
  ASSERT_TRUE(arm_reader());
  ASSERT_TRUE(write(make_bytes(1, 5)));
  EXPECT_EQ(rings_for_bytes, 1);
}

/// The words of a writer that is held up between its look at a bell's word and its ring.
struct HeldUpWords {
  MappedWords words;
  std::function<void()> meanwhile;
  std::uint64_t load(RingWord word) const {
    const std::uint64_t seen = words.load(word);
    meanwhile();
    return seen;
  }
  void store(RingWord word, std::uint64_t value) { words.store(word, value); }
  bool compare_exchange(RingWord word, std::uint64_t expected, std::uint64_t desired) {
    return words.compare_exchange(word, expected, desired);
  }
  void fence() const { MappedWords::fence(); }
};

TEST_F(Ring, DP3_ALateAnswerIsForTheSleepThatWasSeen) {
  ASSERT_TRUE(arm_reader());
  HeldUpWords late{*words, [this] {
                     reader->disarm();
                     ASSERT_TRUE(arm_reader());
                   }};
  EXPECT_FALSE(bell::answer(late, RingWord::bytes_bell));
  EXPECT_FALSE(reader->is_rung());
}

TEST_F(Ring, DP3_TheWritersBellIsRungWhenHalfOfTheRingIsFree) {
  ASSERT_EQ(write(make_bytes(kRing, 7)).value(), kRing);
  ASSERT_TRUE(writer->arm());
  EXPECT_EQ(read(kRing / 2 - 1).size(), kRing / 2 - 1);
  EXPECT_EQ(rings_for_room, 0);
  EXPECT_FALSE(writer->has_room());
  EXPECT_EQ(read(1).size(), 1U);
  EXPECT_EQ(rings_for_room, 1);
  EXPECT_TRUE(writer->has_room());
  EXPECT_EQ(read(kRing).size(), kRing / 2);
  EXPECT_EQ(rings_for_room, 1);
}

TEST_F(Ring, DP3_ABellThatWasRungForRoomThatIsGoneStaysRungUntilTheNextSleep) {
  // The reader rings by the writer's counter as it knew that: more may have been written since.
  ASSERT_EQ(write(make_bytes(kRing, 7)).value(), kRing);
  ASSERT_TRUE(writer->arm());
  EXPECT_FALSE(writer->is_rung());
  EXPECT_EQ(read(kRing / 2).size(), kRing / 2);
  ASSERT_EQ(write(make_bytes(kRing, 8)).value(), kRing / 2);
  EXPECT_FALSE(writer->has_room());
  EXPECT_TRUE(writer->is_rung()) << "a writer that waits for room alone would not look again";
  EXPECT_EQ(read(kRing).size(), kRing);
  EXPECT_EQ(rings_for_room, 1) << "the same sleep was answered twice";
}

TEST_F(Ring, DP3_AWriterDoesNotWaitForRoomThatIsThere) {
  ASSERT_EQ(write(make_bytes(kRing / 2, 7)).value(), kRing / 2);
  EXPECT_FALSE(writer->arm());
}

TEST_F(Ring, DP3_ALargeWriteLetsTheReaderBeginBeforeItsEnd) {
  auto large = SharedMemory::make(two_rings(64 * 1024));
  const auto memory = std::make_shared<SharedMemory>(*std::move(large));
  RingWriter out(memory, false);
  RingReader in(memory, false);
  ASSERT_TRUE(in.arm([] {}));
  wire::Bytes bytes = make_bytes(64 * 1024, 8);
  const iovec vector{bytes.data(), bytes.size()};
  std::size_t seen = 0;
  ASSERT_EQ(out.write(&vector, 1,
                      [&] {
                        wire::Bytes part(bytes.size());
                        const iovec room{part.data(), part.size()};
                        seen = in.read(&room, 1, [] {}).value();
                      })
                .value(),
            bytes.size());
  EXPECT_EQ(seen, 16U * 1024);
}

TEST_F(Ring, DP2_ACounterOfTheReaderThatCannotBeIsAnError) {
  ASSERT_EQ(write(make_bytes(100, 1)).value(), 100U);
  EXPECT_EQ(read(60).size(), 60U);
  ASSERT_TRUE(write(make_bytes(1, 1)));
  for (const std::uint64_t head : {std::uint64_t{59}, std::uint64_t{102}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    words->store(RingWord::head, head);
    const auto put = write(make_bytes(1, 2));
    ASSERT_FALSE(put) << head;
    EXPECT_EQ(put.error().code(), Errc::malformed_payload);
  }
  words->store(RingWord::head, 101);
  EXPECT_EQ(write(make_bytes(1, 2)).value(), 1U);
}

TEST_F(Ring, DP2_ACounterOfTheWriterThatCannotBeIsAnError) {
  ASSERT_EQ(write(make_bytes(100, 1)).value(), 100U);
  EXPECT_EQ(read(60).size(), 60U);
  wire::Bytes to(10);
  for (const std::uint64_t tail : {std::uint64_t{59}, std::uint64_t{60 + kRing + 1}, ~std::uint64_t{0}}) {
    words->store(RingWord::tail, tail);
    const auto got = read(to.data(), to.size());
    ASSERT_FALSE(got) << tail;
    EXPECT_EQ(got.error().code(), Errc::malformed_payload);
    EXPECT_TRUE(reader->has_bytes()) << "a reader that waits would not look at " << tail;
  }
}

TEST_F(Ring, DP2_AWriterThatWaitsLooksAtACounterThatCannotBe) {
  ASSERT_EQ(write(make_bytes(kRing, 1)).value(), kRing);
  words->store(RingWord::head, kRing + 1);
  EXPECT_FALSE(writer->arm());
}

TEST_F(Ring, DP2_ABellThatAPeerWritesCostsAtMostARing) {
  for (std::uint64_t value : {std::uint64_t{1}, std::uint64_t{3}, ~std::uint64_t{0}, ~std::uint64_t{0} - 2}) {
    words->store(RingWord::bytes_bell, value);
    rings_for_bytes = 0;
    ASSERT_TRUE(write(make_bytes(1, 1)));
    ASSERT_TRUE(write(make_bytes(1, 1)));
    EXPECT_LE(rings_for_bytes, 1) << value;
    EXPECT_EQ(read(10).size(), 2U);
  }
}

TEST_F(Ring, BeatsAreSeenByTheReader) {
  EXPECT_EQ(reader->beats(), 0U);
  writer->beat();
  writer->beat();
  EXPECT_EQ(reader->beats(), 2U);
}

TEST(RingDemand, ManyFramesInShortTimeAskForRings) {
  base::ManualClock clock;
  RingDemand demand(3, clock.now());
  demand.note(10);
  demand.note(10);
  EXPECT_FALSE(demand.wants(clock));
  demand.note(10);
  EXPECT_TRUE(demand.wants(clock));
}

TEST(RingDemand, TheSameFramesInALongTimeDoNot) {
  base::ManualClock clock;
  RingDemand demand(3, clock.now());
  for (int i = 0; i < 3; ++i) demand.note(10);
  clock.advance(std::chrono::seconds(11));
  EXPECT_FALSE(demand.wants(clock));
  for (int i = 0; i < 3; ++i) demand.note(10);
  EXPECT_TRUE(demand.wants(clock)) << "the frames since then came within 10 s";
}

TEST(RingDemand, BulkAsksAtOnce) {
  base::ManualClock clock;
  RingDemand demand(100, clock.now());
  demand.note(64 * 1024 - 1);
  EXPECT_FALSE(demand.wants(clock));
  demand.note(64 * 1024);
  EXPECT_TRUE(demand.wants(clock));
}

}  // namespace
}  // namespace caftan::transport::ring_test

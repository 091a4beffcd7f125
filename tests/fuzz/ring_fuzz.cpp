// Feeds a ring whose other side keeps no rule: the input says which words and bytes of the shared memory that side
// stores, while a thread of its own stores further ones all the time. Each read and write ends with what there is or
// with an error, within the bounds of the memory that it was given.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "channels/shm/ring.hpp"

namespace {

using namespace caftan;
using namespace caftan::transport;

constexpr std::size_t kRing = 4096;
constexpr std::size_t kMost = 3 * kRing;  // bytes of one read or write

void require(bool holds) {
  if (!holds) std::abort();
}

/// Both sides' mappings of one memory, made once.
struct Memory {
  Memory() {
    auto made = SharedMemory::make(two_rings(kRing));
    require(made.has_value());
    auto taken = SharedMemory::take(::dup(made->fd()), two_rings(kRing), two_rings(kRing));
    require(taken.has_value());
    theirs = std::make_shared<SharedMemory>(*std::move(made));
    ours = std::make_shared<SharedMemory>(*std::move(taken));
  }
  std::shared_ptr<SharedMemory> theirs;
  std::shared_ptr<SharedMemory> ours;
};

/// Stores numbers near and far from honest ones into all words of both rings, and bytes behind them, until its end.
class Scribbler {
 public:
  Scribbler(SharedMemory& memory, std::uint64_t seed)
      : thread_([this, &memory, seed] {
          MappedWords words[2] = {MappedWords(RingPlace(memory, false).header),
                                  MappedWords(RingPlace(memory, true).header)};
          for (std::uint64_t x = seed | 1; !stop_.load(std::memory_order_relaxed);) {
            x = x * 6364136223846793005U + 1442695040888963407U;
            const std::uint64_t value = (x & 1) != 0 ? x >> 51 : x;
            words[(x >> 8) & 1].store(static_cast<RingWord>((x >> 16) % kRingWords), value);
          }
        }) {}
  ~Scribbler() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static Memory memory;
  std::memset(memory.theirs->data(), 0, memory.theirs->size());
  RingReader reader(memory.ours, false);
  RingWriter writer(memory.ours, true);
  MappedWords words[2] = {MappedWords(RingPlace(*memory.theirs, false).header),
                          MappedWords(RingPlace(*memory.theirs, true).header)};
  std::unique_ptr<Scribbler> scribbler;
  // One input in 16, since starting a thread takes a hundred times as long as the reads and writes of an input.
  if (data[0] % 16 == 1) scribbler = std::make_unique<Scribbler>(*memory.theirs, data[1]);

  std::vector<std::byte> room(kMost + 16, std::byte{0x5a});
  std::size_t rings = 0;
  std::size_t calls = 0;
  bool reads = true;  // a side that has found a wrong number is not used again, as in a session,
  bool writes = true;
  const bool goes_on = (data[0] & 0x20) != 0;  // or it is: it must stay within its memory then, too
  for (std::size_t at = 2; at + 3 <= size && (reads || writes || goes_on); at += 3) {
    const std::size_t amount = (std::size_t{data[at + 1]} << 8 | data[at + 2]) % (kMost + 1);
    const iovec parts[2] = {{room.data(), amount / 3}, {room.data() + amount / 3, amount - amount / 3}};
    const auto ring = [&rings] { ++rings; };
    ++calls;
    switch (data[at] & 7) {
      case 0:
      case 1: {
        if (!reads && !goes_on) break;
        const auto got = reader.read(parts, 2, ring);
        reads = got.has_value();
        require(got ? *got <= std::min(amount, kRing) : got.error().code() == Errc::malformed_payload);
        break;
      }
      case 2:
      case 3: {
        if (!writes && !goes_on) break;
        const auto put = writer.write(parts, 2, ring);
        writes = put.has_value();
        require(put ? *put <= std::min(amount, kRing) : put.error().code() == Errc::malformed_payload);
        break;
      }
      case 4:
        (void)reader.arm([] {});
        break;
      case 5:
        (void)writer.arm();
        break;
      case 6:  // a number near what an honest peer stores
        words[data[at] >> 7].store(static_cast<RingWord>((data[at] >> 3) % kRingWords), amount);
        break;
      case 7:  // any number
        words[data[at] >> 7].store(static_cast<RingWord>((data[at] >> 3) % kRingWords),
                                   ~std::uint64_t{0} << (amount % 64));
        break;
    }
    require(std::all_of(room.end() - 16, room.end(), [](std::byte byte) { return byte == std::byte{0x5a}; }));
  }
  // A bell rings at most once for what is handed over at once: each of the two parts of such a read.
  require(rings <= 2 * calls);
  return 0;
}

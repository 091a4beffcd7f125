// The rules of DP-3 (docs/protocols/shm.md) in a machine whose stores may wait: two sides, a ring with room for two
// messages in each direction, both bells of each ring over one byte count per side, and a store buffer per side. The
// code of the rings runs one access of memory at a time, in any order of the two sides.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "channels/shm/ring_protocol.hpp"
#include "histories.hpp"
#include "soak_size.hpp"

namespace caftan::transport::ring_model_test {
namespace {

using test::below;

/// The rule that the model lacks, to show that the model notices.
enum class Without { nothing, fence, late_answer };

/// Two rings: the one that side 0 writes, then the one that side 1 writes.
struct Memory {
  std::array<std::array<std::uint64_t, kRingWords>, 2> words{};
  struct Store {
    int ring;
    RingWord word;
    std::uint64_t value;
  };
  std::array<std::deque<Store>, 2> buffers;  // by side
  std::array<int, 2> bells{};                // bytes in the socket that the side reads

  void flush_one(int side) {
    auto& buffer = buffers[static_cast<std::size_t>(side)];
    const Store store = buffer.front();
    buffer.pop_front();
    words[static_cast<std::size_t>(store.ring)][static_cast<std::size_t>(store.word)] = store.value;
  }
  void flush(int side) {
    while (!buffers[static_cast<std::size_t>(side)].empty()) flush_one(side);
  }
  std::uint64_t load(int side, int ring, RingWord word) const {
    const auto& buffer = buffers[static_cast<std::size_t>(side)];
    for (auto store = buffer.rbegin(); store != buffer.rend(); ++store) {
      if (store->ring == ring && store->word == word) return store->value;
    }
    return words[static_cast<std::size_t>(ring)][static_cast<std::size_t>(word)];
  }
};

/// Runs the code of one operation up to its next access of memory: earlier accesses give what they gave before, later
/// ones have no effect.
class Steps {
 public:
  Steps(Memory& memory, int side, Without without, std::vector<std::uint64_t>& done)
      : memory_(memory), side_(side), without_(without), done_(done) {}

  std::uint64_t load(int ring, RingWord word) {
    return step([&] { return memory_.load(side_, ring, word); });
  }
  void store(int ring, RingWord word, std::uint64_t value) {
    step([&] {
      buffer().push_back({ring, word, value});
      return std::uint64_t{0};
    });
  }
  void fence() {
    step([&] {
      if (without_ != Without::fence) memory_.flush(side_);
      return std::uint64_t{0};
    });
  }
  bool compare_exchange(int ring, RingWord word, std::uint64_t expected, std::uint64_t desired) {
    return step([&] {
             memory_.flush(side_);
             auto& value = memory_.words[static_cast<std::size_t>(ring)][static_cast<std::size_t>(word)];
             if (value != expected) return std::uint64_t{0};
             value = desired;
             return std::uint64_t{1};
           }) != 0;
  }
  /// Rings the other side. The system call writes out the stores before it.
  void ring() {
    step([&] {
      memory_.flush(side_);
      ++memory_.bells[static_cast<std::size_t>(1 - side_)];
      return std::uint64_t{0};
    });
  }
  /// Takes the bells out of the socket, if there are any: only then it is a system call.
  void take_bells() {
    step([&] {
      if (memory_.bells[static_cast<std::size_t>(side_)] == 0) return std::uint64_t{0};
      memory_.flush(side_);
      memory_.bells[static_cast<std::size_t>(side_)] = 0;
      return std::uint64_t{0};
    });
  }
  /// Returns whether the operation came to its end.
  bool ended() const noexcept { return !beyond_; }

 private:
  std::deque<Memory::Store>& buffer() { return memory_.buffers[static_cast<std::size_t>(side_)]; }
  template <class Access>
  std::uint64_t step(const Access& access) {
    if (at_ < done_.size()) return done_[at_++];
    if (std::exchange(has_stepped_, true)) {
      beyond_ = true;
      return 0;
    }
    done_.push_back(access());
    return done_[at_++];
  }

  Memory& memory_;
  const int side_;
  const Without without_;
  std::vector<std::uint64_t>& done_;
  std::size_t at_ = 0;
  bool has_stepped_ = false;
  bool beyond_ = false;
};

/// A ring's header, for the code under test. `now` is set to the operation that runs.
struct ModelWords {
  Steps** now;
  int ring;
  std::uint64_t load(RingWord word) { return (*now)->load(ring, word); }
  void store(RingWord word, std::uint64_t value) { (*now)->store(ring, word, value); }
  bool compare_exchange(RingWord word, std::uint64_t expected, std::uint64_t desired) {
    return (*now)->compare_exchange(ring, word, expected, desired);
  }
  void fence() { (*now)->fence(); }
};

constexpr std::uint64_t kRoom = 2;
constexpr int kMessages = 4;  // of a side that sends

/// Who sends: with both, a side that sleeps is mostly woken by what the other one does next.
enum class Senders : std::uint8_t { both, first, second };

/// One side: reads and writes while it can, then begins to wait for both, looks, and sleeps.
struct Side {
  Side(Steps** now, int self, Senders senders, Without without)
      : out({now, self}, kRoom),
        in({now, 1 - self}, kRoom),
        room({now, self}, RingWord::room_bell),
        bytes({now, 1 - self}, RingWord::bytes_bell),
        sees_late_answers(without != Without::late_answer),
        to_send(senders == (self == 0 ? Senders::second : Senders::first) ? 0 : kMessages) {}

  WriteSide<ModelWords> out;
  ReadSide<ModelWords> in;
  bell::Sleeper<ModelWords> room;
  bell::Sleeper<ModelWords> bytes;
  enum class Doing { read, write, arm_bytes, arm_room, take, look, asleep, take_awake } doing = Doing::read;
  bool sees_late_answers;
  bool progressed = false;
  int to_send;
  int sent = 0;
  int received = 0;

  bool wants_room() const { return sent < to_send; }

  /// Returns whether a bell may have been taken away that this sleep was answered with.
  bool was_answered() { return sees_late_answers && (bytes.is_rung() || (wants_room() && room.is_rung())); }

  /// Runs the present operation. What it changes counts only if the operation came to its end.
  void run(Steps& steps) {
    switch (doing) {
      case Doing::read: {
        const auto there = in.available();
        progressed = there.value_or(0) > 0;
        if (progressed) {
          ++received;
          if (in.publish(1)) steps.ring();
        }
        doing = Doing::write;
        break;
      }
      case Doing::write:
        if (wants_room() && out.room().value_or(0) > 0) {
          progressed = true;
          ++sent;
          if (out.publish(1)) steps.ring();
        }
        doing = progressed ? Doing::read : Doing::arm_bytes;
        break;
      case Doing::arm_bytes:
        bytes.arm();
        doing = wants_room() ? Doing::arm_room : Doing::take;
        break;
      case Doing::arm_room:
        room.arm();
        doing = Doing::take;
        break;
      case Doing::take:  // rings of earlier sleeps
        steps.take_bells();
        doing = Doing::look;
        break;
      case Doing::look:
        doing = in.has_bytes() || (wants_room() && out.has_room()) || was_answered() ? Doing::read : Doing::asleep;
        break;
      case Doing::take_awake:
        steps.take_bells();
        doing = Doing::read;
        break;
      case Doing::asleep:
        break;
    }
  }
};

struct History {
  Senders senders{};
  std::vector<std::uint32_t> steps{};
};

class World {
 public:
  World(Without without, Senders senders)
      : without_(without), sides_{Side(&now_, 0, senders, without), Side(&now_, 1, senders, without)} {}

  /// Returns what went wrong, empty if all messages arrived.
  std::string run(const History& history) {
    for (const std::uint32_t choice : history.steps) {
      const int side = static_cast<int>(choice & 1);
      switch ((choice >> 1) & 7) {
        case 0:
          if (!memory_.buffers[static_cast<std::size_t>(side)].empty()) memory_.flush_one(side);
          break;
        case 1:
          // The sleep ends by itself, as by a deadline or for another reason of the process.
          if (is_asleep(side)) of(side).doing = Side::Doing::read;
          break;
        default:
          step(side);
      }
    }
    // From here on nothing wakes a side but a bell.
    for (int idle = 0; idle < 4;) {
      idle = step(0) || step(1) ? 0 : idle + 1;
      memory_.flush(0);
      memory_.flush(1);
    }
    for (const int side : {0, 1}) {
      if (of(side).received != of(1 - side).to_send) {
        return "side " + std::to_string(side) + " sleeps for ever with " + std::to_string(of(side).received) +
               " messages read";
      }
    }
    return {};
  }

 private:
  Side& of(int side) { return sides_[static_cast<std::size_t>(side)]; }
  bool is_asleep(int side) { return of(side).doing == Side::Doing::asleep; }

  /// Lets a side do its next access of memory; returns false if it sleeps.
  bool step(int side) {
    if (is_asleep(side)) {
      memory_.flush(side);  // it went into the kernel
      if (memory_.bells[static_cast<std::size_t>(side)] == 0) return false;
      of(side).doing = Side::Doing::take_awake;
    }
    auto& done = done_[static_cast<std::size_t>(side)];
    Steps steps(memory_, side, without_, done);
    now_ = &steps;
    Side next = of(side);
    next.run(steps);
    now_ = nullptr;
    if (steps.ended()) {
      of(side) = next;
      done.clear();
    }
    return true;
  }

  const Without without_;
  Memory memory_;
  Steps* now_ = nullptr;
  std::array<Side, 2> sides_;
  std::array<std::vector<std::uint64_t>, 2> done_;  // what the present operation of a side has read
};

/// Draws runs of one side and then of the other, as a scheduler makes them: most faults need one that is held up for
/// long between two accesses. A later step can hide a lost wake-up, as a sleep that ends by itself does: so some
/// histories are short.
History draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  History history{.senders = static_cast<Senders>(below(random, 3)), .steps = {}};
  std::uint32_t side = 0;
  const std::size_t length = 20 + below(random, 280);
  while (history.steps.size() < length) {
    side ^= 1;
    for (std::uint32_t left = 1 + below(random, below(random, 2) == 0 ? 4 : 30); left > 0; --left) {
      const std::uint32_t kind = below(random, 40);
      history.steps.push_back(side | (kind < 2 ? kind : 2) << 1);
    }
  }
  return history;
}

/// Returns a report of the first bad history, empty if there is none.
std::string search(Without without, std::uint64_t histories) {
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    const auto run = [&](const History& history) { return World(without, history.senders).run(history); };
    if (const std::string bad = run(draw(seed)); !bad.empty()) {
      const History shortest = test::without_needless_steps<History>(
          draw(seed), [&](const History& history) { return !run(history).empty(); });
      return "seed " + std::to_string(seed) + ", " + std::to_string(shortest.steps.size()) + " steps: " + bad;
    }
  }
  return {};
}

TEST(RingModel, DP3_NoWakeUpIsLostInEitherDirection) {
  EXPECT_EQ(search(Without::nothing, test::soak_size("CAFTAN_RING_HISTORIES", 25'000)), "");
}

TEST(RingModel, DP3_WithoutTheFenceAWakeUpIsLost) { EXPECT_NE(search(Without::fence, 10'000), ""); }

TEST(RingModel, DP3_WithoutALookAtTheAnswerAWakeUpIsLost) { EXPECT_NE(search(Without::late_answer, 100'000), ""); }

}  // namespace
}  // namespace caftan::transport::ring_model_test

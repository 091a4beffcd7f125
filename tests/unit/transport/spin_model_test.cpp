// SP-4, SP-5 and SP-7 to SP-9 (docs/protocols/spin.md) in random histories: threads of one process wait, look, lose
// their cores and find what they wait for, at any moment of a clock that is moved by hand. What the policy decides is
// compared with the rules of the page, which are written down here once more, and how many threads spin with its
// budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "caftan/transport/internal/spin_budget.hpp"
#include "caftan/transport/internal/spin_policy.hpp"
#include "histories.hpp"
#include "soak_size.hpp"

namespace caftan::transport::spin_model_test {
namespace {

using namespace std::chrono_literals;
using base::Duration;
using base::TimePoint;
using test::below;
using Waiter = SpinPolicy::Waiter;

/// The part of a rule that the page of the model lacks, to show that the histories reach it.
enum class Without {
  nothing,
  halving,       ///< SP-4: a long wait halves the limit
  trials,        ///< SP-4: each 64th wait spins all the same
  budget,        ///< SP-5: no more callers spin than the budget has
  one_runner,    ///< SP-5: one runner spins
  yielding,      ///< SP-7: a runner ends its spin when a caller begins one
  lost_core,     ///< SP-8: an interrupt is no gap
  second_gap,    ///< SP-8: one gap is not enough
  near_gaps,     ///< SP-8: the second gap comes within 100 ms
  doubling,      ///< SP-8: each time is twice as long
  forgetting,    ///< SP-8: after 10 s it is 100 ms again
  tasks,         ///< SP-8: more runnable tasks than cores stop all threads
  two_looks,     ///< SP-8: one look at the tasks is not enough
  end_of_looks,  ///< SP-9: the tasks are looked at no more once no thread spins
};

constexpr std::size_t kThreads = 5;
constexpr std::size_t kCallers = 3;  // the first ones
Waiter waiter_of(std::size_t thread) { return thread < kCallers ? Waiter::caller : Waiter::runner; }

/// What the kernel counts for the thread that runs.
std::uint64_t lost_by_this_thread = 0;
std::uint64_t lost_cores() noexcept { return lost_by_this_thread; }

/// What the process may use, and what its file says.
struct Setting {
  Cores cores;
  std::size_t workers = 1;
  std::optional<Duration> longest;
};

/// The rules of the page.
class Page {
 public:
  Page(Without without, const Setting& setting)
      : without_(without),
        learns_(!setting.longest),
        longest_(setting.longest.value_or(50us)),
        cores_(setting.cores.machine) {
    const bool is_limited = setting.cores.granted && *setting.cores.granted < setting.cores.mask;
    if (setting.cores.mask > 1 && !is_limited) budget_ = setting.cores.mask / setting.workers;
  }

  /// Returns whether the wait that begins spins.
  bool begin(std::size_t thread, TimePoint now) {
    Thread& of = threads_[thread];
    of.began = now;
    if (budget_ == 0 || is_crowded(of, now)) return false;
    Duration limit = learns_ ? of.limit : longest_;
    if (limit == 0us) {
      ++of.waits_at_zero;
      if (of.waits_at_zero % 64 != 0 || without_ == Without::trials) return false;
      limit = 50us;
    }
    if (waiter_of(thread) == Waiter::caller) {
      if (spinning(Waiter::caller) >= budget_ && without_ != Without::budget) return false;
    } else if (spinning(Waiter::caller) > 0 || (spinning(Waiter::runner) > 0 && without_ != Without::one_runner)) {
      return false;
    }
    of.spins_until = now + limit;
    of.last_turn = now;
    ++spins;
    has_spun_ = true;
    return true;
  }
  /// Returns whether a spin goes on with one more turn.
  bool go_on(std::size_t thread, TimePoint now, std::uint64_t lost) {
    Thread& of = threads_[thread];
    if (!of.spins_until) return false;
    if (now - of.last_turn > 400us && (lost != of.lost || without_ == Without::lost_core)) note_gap(of, now, lost);
    of.last_turn = now;
    const bool has_to_yield =
        waiter_of(thread) == Waiter::runner && spinning(Waiter::caller) > 0 && without_ != Without::yielding;
    if (is_crowded(of, now) || has_to_yield || now >= *of.spins_until) of.spins_until.reset();
    return of.spins_until.has_value();
  }
  void worked(std::size_t thread, TimePoint now) { threads_[thread].last_turn = now; }
  void found(std::size_t thread) {
    if (std::exchange(threads_[thread].spins_until, std::nullopt)) ++won;
  }
  void end(std::size_t thread, TimePoint now) {
    Thread& of = threads_[thread];
    of.spins_until.reset();
    const Duration took = now - of.began;
    if (took < 50us) {
      of.limit = std::min<Duration>(std::max<Duration>(2 * took, 20us), 50us);
    } else if (without_ != Without::halving) {
      of.limit = of.limit / 2 < 2us ? Duration(0) : of.limit / 2;
    }
  }
  bool wants_look() {
    if (!has_spun_ || is_looking_) return false;
    return is_looking_ = true;
  }
  /// Returns whether the tasks are looked at again.
  bool look(std::uint32_t runnable, TimePoint now) {
    looks_with_more_ = runnable > cores_ ? looks_with_more_ + 1 : 0;
    if (looks_with_more_ >= (without_ == Without::two_looks ? 1U : 2U) && without_ != Without::tasks)
      crowded_until_ = now + 100ms;
    is_looking_ = std::exchange(has_spun_, false) || without_ == Without::end_of_looks;
    return is_looking_;
  }
  bool is_looking() const { return is_looking_; }
  unsigned budget() const { return budget_; }

  std::uint64_t spins = 0;
  std::uint64_t won = 0;

 private:
  struct Thread {
    Duration limit{0};
    std::uint64_t waits_at_zero = 0;
    TimePoint began{};
    std::optional<TimePoint> spins_until;
    TimePoint last_turn{};
    std::uint64_t lost = 0;  // cores, when it had its last gap
    std::optional<TimePoint> last_gap;
    std::optional<TimePoint> crowded_until;
    Duration crowded_for{0};
  };

  unsigned spinning(Waiter waiter) const {
    unsigned count = 0;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      count += waiter_of(thread) == waiter && threads_[thread].spins_until ? 1 : 0;
    }
    return count;
  }
  bool is_crowded(const Thread& of, TimePoint now) const {
    return now < crowded_until_ || (of.crowded_until && now < *of.crowded_until);
  }
  void note_gap(Thread& of, TimePoint now, std::uint64_t lost) const {
    of.lost = lost;
    const auto before = std::exchange(of.last_gap, now);
    const bool is_near = before && (now - *before <= 100ms || without_ == Without::near_gaps);
    if (!is_near && without_ != Without::second_gap) return;
    const bool is_first_time = !of.crowded_until || now - *of.crowded_until > 10s;
    const bool begins_anew = (is_first_time && without_ != Without::forgetting) || without_ == Without::doubling;
    of.crowded_for =
        begins_anew || of.crowded_for == 0ms ? Duration(100ms) : std::min<Duration>(2 * of.crowded_for, 10s);
    of.crowded_until = now + of.crowded_for;
  }

  const Without without_;
  const bool learns_;
  const Duration longest_;
  const unsigned cores_;
  unsigned budget_ = 0;
  std::array<Thread, kThreads> threads_;
  TimePoint crowded_until_{};
  bool has_spun_ = false;  // since the last look at the tasks
  bool is_looking_ = false;
  unsigned looks_with_more_ = 0;
};

struct History {
  std::uint32_t world = 0;
  std::vector<std::uint32_t> steps;
};

Setting setting_of(std::uint32_t world) {
  constexpr std::array<unsigned, 8> kMasks = {2, 2, 2, 4, 4, 4, 8, 1};
  constexpr std::array<std::optional<Duration>, 4> kLongest = {std::nullopt, std::nullopt, Duration(5us),
                                                               Duration(1ms)};
  Setting setting;
  setting.cores.mask = kMasks[world & 7];
  setting.cores.machine = setting.cores.mask + (world >> 3 & 1);
  if ((world >> 4 & 7) == 0) setting.cores.granted = setting.cores.mask - 0.5;
  if ((world >> 4 & 7) == 1) setting.cores.granted = setting.cores.mask;
  setting.workers = 1 + (world >> 7 & 3) % 3;
  setting.longest = kLongest[world >> 9 & 3];
  return setting;
}

class World {
 public:
  World(Without without, std::uint32_t world)
      : setting_(setting_of(world)),
        page_(without, setting_),
        policy_(spin_budget(setting_.cores, setting_.workers, setting_.longest).options, &lost_cores) {}

  /// Returns what went wrong, empty if the policy kept to the page.
  std::string run(const History& history) {
    if (policy_.is_on() != (page_.budget() > 0)) return "SP-5: the budget is another one";
    for (const std::uint32_t choice : history.steps) {
      const std::string bad = step(choice & 15, (choice >> 4 & 15) % kThreads, choice >> 8);
      if (!bad.empty()) return bad;
      if (!keeps_budget()) return "SP-5: more threads spin than may";
    }
    if (policy_.counts().spins != page_.spins || policy_.counts().won != page_.won)
      return "spins are counted differently";
    return {};
  }

 private:
  std::string step(std::uint32_t kind, std::size_t thread, std::uint32_t drawn) {
    std::optional<SpinWait>& wait = waits_[thread];
    const TimePoint now = clock_.now();
    lost_by_this_thread = lost_[thread];
    switch (kind) {
      case 0:
      case 1:
      case 2:
        return advance(drawn);
      case 3:
        ++lost_[thread];
        return advance(drawn);
      case 4:
        return look(drawn, now);
      case 5:
        if (wait) wait->worked();
        if (wait && wait->spins()) page_.worked(thread, now);
        return {};
      case 6:
        if (wait) wait->stop(true);
        if (wait) page_.found(thread);
        return {};
      case 7:
      case 8:
        if (wait) page_.end(thread, now);
        wait.reset();
        return {};
      case 9:
      case 10:
      case 11:
        return begin(thread, wait, now);
      default:
        if (!wait) return {};
        return wait->go_on() == page_.go_on(thread, now, lost_[thread])
                   ? ""
                   : "SP-7, SP-8: a spin ends when it has not to, or goes on";
    }
  }
  std::string begin(std::size_t thread, std::optional<SpinWait>& wait, TimePoint now) {
    // A wait ends before its thread begins another one.
    if (wait) page_.end(thread, now);
    wait.reset();
    wait.emplace(policy_, habits_[thread], waiter_of(thread), clock_);
    if (wait->spins() != page_.begin(thread, now)) return "SP-4, SP-5, SP-8: a wait spins when it may not, or sleeps";
    return {};
  }
  std::string look(std::uint32_t drawn, TimePoint now) {
    if (!page_.is_looking()) return policy_.wants_look() == page_.wants_look() ? "" : "SP-9: who looks at the tasks";
    const std::uint32_t runnable = setting_.cores.machine + drawn % 3;
    return policy_.look(runnable, now) == page_.look(runnable, now) ? ""
                                                                    : "SP-9: whether the tasks are looked at again";
  }
  std::string advance(std::uint32_t drawn) {
    static constexpr std::array<Duration, 16> kTimes = {1us,  3us,   10us,  20us, 24us, 25us,  49us,  50us,
                                                        51us, 400us, 401us, 2ms,  99ms, 100ms, 101ms, 10s};
    clock_.advance(kTimes[drawn % kTimes.size()]);
    return {};
  }
  bool keeps_budget() const {
    std::array<unsigned, 2> spinning{};
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      const bool spins = waits_[thread] && waits_[thread]->spins();
      spinning[static_cast<std::size_t>(waiter_of(thread))] += spins ? 1 : 0;
    }
    return spinning[0] * setting_.workers <= setting_.cores.mask && spinning[1] <= 1;
  }

  const Setting setting_;
  Page page_;
  base::ManualClock clock_;
  SpinPolicy policy_;
  std::array<SpinHabit, kThreads> habits_;
  std::array<std::uint64_t, kThreads> lost_{};
  std::array<std::optional<SpinWait>, kThreads> waits_;
};

/// Draws histories of few threads in long runs: a limit and a crowd take many waits of one thread.
History draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  History history;
  history.world = below(random, 1U << 11);
  const std::uint32_t threads = 1 + below(random, kThreads);
  const std::uint32_t first = below(random, kThreads);
  const bool is_quick = below(random, 2) == 0;   // its times are short, but for a few
  const bool is_sleepy = below(random, 8) == 0;  // one thread whose waits are long, but for a few
  while (history.steps.size() < 400) {
    if (is_sleepy && below(random, 64) != 0) {
      history.steps.push_back(9 | first << 4);
      history.steps.push_back(11 << 8);  // 2 ms
      continue;
    }
    const std::uint32_t thread = (first + below(random, threads)) % kThreads;
    for (std::uint32_t left = 1 + below(random, 20); left > 0; --left) {
      const std::uint32_t drawn = below(random, is_quick && below(random, 16) != 0 ? 12 : 16);
      history.steps.push_back(below(random, 16) | thread << 4 | drawn << 8);
    }
  }
  return history;
}

std::string outcome(Without without, const History& history) { return World(without, history.world).run(history); }

/// Returns a report of the first bad history, empty if there is none.
std::string search(Without without, std::uint64_t histories) {
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    if (outcome(without, draw(seed)).empty()) continue;
    const History shortest = test::without_needless_steps<History>(
        draw(seed), [&](const History& history) { return !outcome(without, history).empty(); });
    return "seed " + std::to_string(seed) + ", " + std::to_string(shortest.steps.size()) +
           " steps: " + outcome(without, shortest);
  }
  return {};
}

TEST(SpinModel, SP4_SP5_SP7_SP8_SP9_HoldInEachHistory) {
  EXPECT_EQ(search(Without::nothing, test::soak_size("CAFTAN_SPIN_HISTORIES", 10'000)), "");
}

class SpinModelWithout : public ::testing::TestWithParam<std::pair<const char*, Without>> {};

TEST_P(SpinModelWithout, IsFound) { EXPECT_NE(search(GetParam().second, 50'000), ""); }

INSTANTIATE_TEST_SUITE_P(
    Rules, SpinModelWithout,
    ::testing::Values(
        std::pair("SP4_LongWaitsHalve", Without::halving), std::pair("SP4_Each64thWaitSpins", Without::trials),
        std::pair("SP5_TheBudgetOfCallers", Without::budget), std::pair("SP5_OneRunner", Without::one_runner),
        std::pair("SP7_ARunnerYields", Without::yielding), std::pair("SP8_AnInterruptIsNoGap", Without::lost_core),
        std::pair("SP8_OneGapIsNotEnough", Without::second_gap), std::pair("SP8_GapsNearEachOther", Without::near_gaps),
        std::pair("SP8_TwiceAsLong", Without::doubling), std::pair("SP8_AfterTenSecondsAnew", Without::forgetting),
        std::pair("SP8_MoreTasksThanCores", Without::tasks), std::pair("SP8_OneLookIsNotEnough", Without::two_looks),
        std::pair("SP9_LooksEnd", Without::end_of_looks)),
    [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace caftan::transport::spin_model_test

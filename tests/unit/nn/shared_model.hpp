/// Histories of a shared module: a SharedSchedule is driven by random events, and a reference that has the parameters
/// as one number checks what it asks for (CM-1 to CM-17). Start with `run_history`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/nn/consistency.hpp"

namespace caftan::nn::model {

enum class Act : std::uint8_t {
  begin,
  call,
  finish_call,
  step,
  end,
  lose,
  apply,
  fail_apply,
  time_out,
  evaluate,
  finish_evaluation,
};
inline constexpr std::uint32_t kActs = 11;

/// One choice. `a` chooses among what is there when the step runs (modulo), so that a history stays meaningful when
/// steps are taken out of it. A step for which nothing is there does nothing.
struct Step {
  Act act;
  std::uint32_t a = 0;
};

struct History {
  ConsistencyOptions options;
  std::uint32_t trainers = 1;
  std::vector<Step> steps;
};

/// Returns history number `index` of `seed`; six in a row have all modes and leases, with and without limits.
History make_history(std::uint64_t seed, std::uint64_t index);

/// Runs the history, then lets everything that is under way end. Returns what went wrong first, or nothing.
/// @param trace  gets one line for each thing that happens
std::string run_history(const History& history, std::vector<std::string>* trace = nullptr);

/// What happened in a history, for the test that histories reach all of it.
struct Reached {
  std::uint64_t applied = 0;
  std::uint64_t stale = 0;
  std::uint64_t closed = 0;     ///< gradients that came after their round
  std::uint64_t conflicts = 0;  ///< of leases
  std::uint64_t late = 0;       ///< rounds that a quorum closed
  std::uint64_t lost = 0;       ///< trainers
};
/// Runs the history as run_history does.
Reached reached_by(const History& history);

}  // namespace caftan::nn::model

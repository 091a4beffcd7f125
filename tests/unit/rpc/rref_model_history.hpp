/// Histories of the RRef model test: lists of choices, made from a seed and cut down to the shortest bad one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace caftan::rpc::model {

enum class Act : std::uint8_t {
  call,
  create,
  create_here,
  use,
  finish,
  copy,
  drop,
  deliver,
  run_actor,
  give_up,
  deadline,
  cut,
  declare,
  reconnect,
  crash,
  restart,
  kill,
};
inline constexpr int kActs = 17;

/// One choice. `a`, `b`, `c` choose among what is there when the step runs (modulo), so that a history stays meaningful
/// when steps are taken out of it. A step for which nothing is there does nothing.
struct Step {
  Act act;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
};

struct History {
  int workers = 3;
  /// Whether actors read their mailboxes after each step; if not, only when a `run_actor` step says so.
  bool prompt = true;
  std::vector<Step> steps;
};

/// Returns history number `index` of `seed`.
History make_history(std::uint64_t seed, std::uint64_t index);

/// Returns the shortest history found for which `is_bad` still holds, by delta debugging over the steps.
History shrink(History bad, const std::function<bool(const History&)>& is_bad);

}  // namespace caftan::rpc::model

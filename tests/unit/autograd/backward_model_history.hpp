/// Histories of the backward protocol's model test: lists of choices, made from a seed and cut down to the shortest bad
/// one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace caftan::autograd::model {

enum class Act : std::uint8_t {
  create,    ///< a context
  call,      ///< a recorded message
  backward,  ///< a pass
  deliver,   ///< a message, or the loss of a session
  work,      ///< a slice of a walk or run
  use,       ///< the handle begins or ends a call of its own
  release,
  // The acts from here on are faults, which a calm history does not have.
  throw_in_node,
  give_up,  ///< the initiator's deadline
  forge,    ///< a message that does not fit what was recorded
  cut,
  crash,
  restart,
  reconnect,
};
inline constexpr int kActs = 14;
inline constexpr int kCalmActs = 7;

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
  bool calm = true;
  std::vector<Step> steps;
};

/// Returns history number `index` of `seed`.
History make_history(std::uint64_t seed, std::uint64_t index);

/// Returns the shortest history found for which `is_bad` still holds, by delta debugging over the steps.
History shrink(History bad, const std::function<bool(const History&)>& is_bad);

}  // namespace caftan::autograd::model

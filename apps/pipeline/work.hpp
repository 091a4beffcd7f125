/// `Work`: what a stage did, and when. The picture of a batch and the idle share of its stages come from these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"

namespace caftan::pipeline {

enum class WorkKind : std::uint8_t { forward, backward };
inline bool is_valid(WorkKind kind) noexcept { return kind <= WorkKind::backward; }

/// A forward or backward of one micro-batch at one stage. Its times are those of the machine's steady clock, in
/// seconds: the same clock for all processes of one host.
struct Work {
  WorkKind kind = WorkKind::forward;
  std::uint32_t micro_batch = 0;
  double begin = 0;
  double end = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& kind& micro_batch& begin& end;
  }
};

/// Returns seconds on the steady clock.
double seconds(base::TimePoint time) noexcept;

/// Returns the share of `window` seconds in which a stage did nothing; 0 where the window is empty.
double idle_share(const std::vector<Work>& works, double window) noexcept;

/// Returns the picture of one batch as the text of an SVG file: a row for each stage, a box for each work.
/// @param names  of the stages
/// @param works  of each stage
/// Errors: bad_arguments (no work at all).
Result<std::string> draw_batch(const std::string& title, const std::vector<std::string>& names,
                               const std::vector<std::vector<Work>>& works);

}  // namespace caftan::pipeline

/// What names a logical process and a scheduled event. `LpId` counts from 0 in the order in which a model adds its
/// processes.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "caftan/sim/time.hpp"

namespace caftan::sim {

/// The number of a logical process in its model, the same in every placement.
struct LpId {
  std::uint32_t value = 0;

  constexpr LpId() = default;
  /// A number that no id has (negative ones included) becomes the largest id, which no process has.
  constexpr explicit LpId(std::uint64_t number) noexcept
      : value(number < kNone ? static_cast<std::uint32_t>(number) : kNone) {}
  constexpr auto operator<=>(const LpId&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value;
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
};

/// An event that a process has scheduled, for `LpContext::cancel`. It can be kept in the state of the process.
struct EventHandle {
  Time time{};
  std::uint64_t sequence = 0;  ///< the ordinal of the event among those of its source, from 0 on
  LpId source{};
  LpId to{};
  std::uint8_t priority = 0;  ///< 128 + the priority that the event was given

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& time& sequence& source& to& priority;
  }
};

}  // namespace caftan::sim

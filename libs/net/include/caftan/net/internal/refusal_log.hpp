/// Which refused connections get a line in the log: strangers may connect without limit, and each line is a write.
/// HS-14: docs/protocols/handshake.md.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "caftan/base/clock.hpp"
#include "caftan/base/error.hpp"

namespace caftan::net {

/// Threads: none of its own and no lock.
class RefusalLog {
 public:
  static constexpr std::size_t kLines = 10;  ///< per code and minute
  static constexpr base::Duration kMinute = std::chrono::minutes(1);

  enum class Action : std::uint8_t {
    write,  ///< a line of its own
    count,  ///< only counted; `end_of_minute` says how many
    /// The first refusal of its minute that is only counted: `end_of_minute` has to be called at `until(code)`.
    count_first,
  };

  Action on_refused(Errc code, base::TimePoint now);
  /// Returns when the minute of this code is over.
  base::TimePoint until(Errc code) const noexcept { return of(code).until; }
  /// Ends the minute of this code and returns how many connections were only counted.
  std::size_t end_of_minute(Errc code) noexcept;

 private:
  struct Minute {
    base::TimePoint until{};
    std::size_t seen = 0;
  };
  static std::size_t index(Errc code) noexcept { return static_cast<std::uint8_t>(code); }
  const Minute& of(Errc code) const noexcept { return minutes_[index(code)]; }

  std::array<Minute, 256> minutes_;  ///< by code
};

}  // namespace caftan::net

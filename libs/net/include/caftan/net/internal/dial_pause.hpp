/// How long to wait before a member that did not answer is dialled again: a fixed part of the time for which it has
/// been missing. So a member that starts soon is connected at once, and one that stays away costs little. SE-33:
/// docs/protocols/session.md.
#pragma once

#include <cstdint>

#include "caftan/base/clock.hpp"

namespace caftan::net {

/// Threads: none of its own and no lock.
class DialPause {
 public:
  static constexpr base::Duration kShortest = std::chrono::milliseconds(20);
  static constexpr base::Duration kLongest = std::chrono::seconds(1);

  /// @param seed  seed of the random part of the pause; has to differ between processes and between members
  explicit DialPause(std::uint64_t seed) : seed_(seed) {}

  /// Returns the pause after an attempt that failed at `now`: an eighth of the time since the first failed attempt,
  /// between kShortest and kLongest, less up to a quarter of it at random, so that processes do not dial in step.
  base::Duration after_failure(base::TimePoint now);

  /// Returns whether the first failure since the last reset is less than `limit` ago; true as well if there was none.
  bool has_begun_within(base::Duration limit, base::TimePoint now) const noexcept {
    return first_ == base::kNever || now - first_ < limit;
  }

  /// Begins anew, because the member has another address or has left again.
  void reset() noexcept { first_ = base::kNever; }

 private:
  std::uint64_t seed_;
  base::TimePoint first_ = base::kNever;  ///< failure since the last reset
};

}  // namespace caftan::net

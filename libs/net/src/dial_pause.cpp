#include "caftan/net/internal/dial_pause.hpp"

#include <algorithm>

#include "caftan/base/ids.hpp"

namespace caftan::net {

Duration DialPause::after_failure(TimePoint now) {
  if (first_ == kNever) first_ = now;
  const Duration pause = std::clamp<Duration>((now - first_) / 8, kShortest, kLongest);
  seed_ = mix64(seed_ + 1);
  return pause - pause / 4 * static_cast<std::int64_t>(seed_ % 256) / 256;
}

}  // namespace caftan::net

#include "caftan/net/internal/dial_pause.hpp"

#include <algorithm>

#include "caftan/base/ids.hpp"

namespace caftan::net {

base::Duration DialPause::after_failure(base::TimePoint now) {
  if (first_ == base::kNever) first_ = now;
  const base::Duration pause = std::clamp<base::Duration>((now - first_) / 8, kShortest, kLongest);
  seed_ = mix64(seed_ + 1);
  return pause - pause / 4 * static_cast<std::int64_t>(seed_ % 256) / 256;
}

}  // namespace caftan::net

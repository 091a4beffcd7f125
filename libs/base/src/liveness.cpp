#include "caftan/base/internal/liveness.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "caftan/base/internal/rounded_duration.hpp"

namespace caftan {

Liveness::Liveness(LivenessOptions options, std::string peer, base::TimePoint now)
    : options_(options), peer_(std::move(peer)), heard_(now), spoken_(now), last_poll_(now) {
  options_.interval = std::max(options_.interval, base::Duration(std::chrono::milliseconds(1)));
  // A peer must not count as dead because one side missed a single slice of processor time.
  options_.timeout = std::max(options_.timeout, 2 * options_.interval);
}

void Liveness::on_bytes_in(base::TimePoint now, std::size_t count) noexcept {
  if (count == 0) return;
  heard_ = std::max(heard_, now);
  bytes_in_ += count;
}

void Liveness::on_bytes_out(base::TimePoint now, std::size_t count) noexcept {
  if (count == 0) return;
  spoken_ = std::max(spoken_, now);
  bytes_out_ += count;
}

Liveness::Action Liveness::poll(base::TimePoint now, bool unread) {
  if (is_dead_) return Action::dead;
  if (unread) heard_ = std::max(heard_, now);  // SE-30
  const base::TimePoint due = last_poll_ + options_.interval;
  if (now > due) heard_ = std::min(now, heard_ + (now - due));
  last_poll_ = std::max(last_poll_, now);
  const base::Duration silence = now - heard_;
  if (silence >= options_.timeout) {
    is_dead_ = true;
    error_ = Error(Errc::peer_down, peer_,
                   "no bytes from " + peer_ + " for " + base::format_rounded(silence) + " (limit " +
                       base::format_rounded(options_.timeout) + "; cluster.heartbeat is " +
                       base::format_rounded(options_.interval) + "), after " + std::to_string(bytes_in_) +
                       " bytes in and " + std::to_string(bytes_out_) + " out");
    return Action::dead;
  }
  if (now - spoken_ >= options_.interval) {
    spoken_ = now;
    return Action::send_ping;
  }
  return Action::nothing;
}

base::TimePoint Liveness::next_poll() const noexcept {
  if (is_dead_) return base::kNever;
  return std::min({spoken_ + options_.interval, heard_ + options_.timeout, last_poll_ + options_.interval});
}

}  // namespace caftan

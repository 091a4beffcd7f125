#include "caftan/net/internal/refusal_log.hpp"

namespace caftan::net {

RefusalLog::Action RefusalLog::on_refused(Errc code, base::TimePoint now) {
  Minute& minute = minutes_[index(code)];
  // A minute in which some refusals were only counted ends by end_of_minute, never before.
  if (now >= minute.until && minute.seen <= kLines) minute = {now + kMinute, 0};
  ++minute.seen;
  if (minute.seen <= kLines) return Action::write;
  return minute.seen == kLines + 1 ? Action::count_first : Action::count;
}

std::size_t RefusalLog::end_of_minute(Errc code) noexcept {
  Minute& minute = minutes_[index(code)];
  const std::size_t counted = minute.seen > kLines ? minute.seen - kLines : 0;
  minute = {};
  return counted;
}

}  // namespace caftan::net

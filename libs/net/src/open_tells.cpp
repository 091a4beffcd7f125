#include "caftan/net/internal/open_tells.hpp"

#include <string>

namespace caftan::net {

Result<std::vector<OpenTells::Tell>> OpenTells::on_ended(std::uint64_t count) {
  if (count == 0 || count > open_.size()) {
    return Error(Errc::malformed_payload, "the peer reports the end of " + std::to_string(count) +
                                              " one-way calls, and " + std::to_string(open_.size()) + " are open");
  }
  return take(static_cast<std::size_t>(count));
}

std::vector<OpenTells::Tell> OpenTells::take_all() { return take(open_.size()); }

std::vector<OpenTells::Tell> OpenTells::take(std::size_t count) {
  std::vector<Tell> taken;
  taken.reserve(count);
  for (; count > 0; --count) {
    taken.push_back(std::move(open_.front()));
    open_.pop_front();
  }
  return taken;
}

}  // namespace caftan::net

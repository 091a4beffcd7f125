#include "caftan/autograd/internal/context_table.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "released_context.hpp"

namespace caftan::autograd {

ContextId ContextTable::create() {
  ContextId id{self_.id, self_.incarnation, ++made_};
  creators_[self_].open.insert(id.number);
  return id;
}

Result<bool> ContextTable::enter(ContextId context) {
  if (is_open(context)) return false;
  if (!context || (context.maker() == self_ && context.number > made_)) {
    return Error(Errc::unknown_context, "there is no context " + to_string(context));
  }
  if (context.maker() == self_) return released_context(context);
  Creator& creator = creators_[context.maker()];
  if (creator.refuses(context.number)) return released_context(context);
  creator.open.insert(context.number);
  return true;
}

void ContextTable::released(ContextId context) {
  const auto at = creators_.find(context.maker());
  if (at != creators_.end()) at->second.open.erase(context.number);
}

bool ContextTable::Creator::refuses(std::uint64_t number) const {
  const auto after = released.upper_bound(number);
  return after != released.begin() && std::prev(after)->second >= number;
}

void ContextTable::Creator::add(ReleasedRange range) {
  if (range.first > range.last) return;
  auto at = released.upper_bound(range.first);
  // The range before this one is joined with it, too, when it ends right before this one begins.
  if (at != released.begin() && std::prev(at)->second >= range.first - 1) --at;
  while (at != released.end() && (at->first <= range.last || at->first == range.last + 1)) {
    range.first = std::min(range.first, at->first);
    range.last = std::max(range.last, at->second);
    at = released.erase(at);
  }
  released.emplace(range.first, range.last);
}

std::optional<ContextId> ContextTable::learn(WorkerLife creator, const ReleasedRange& range) {
  if (creator == self_ || range.first == 0 || range.last == std::numeric_limits<std::uint64_t>::max()) return {};
  Creator& known = creators_[creator];
  const std::size_t before = known.released.size();
  known.add(range);
  if (known.released.size() <= std::max(before, kMostUnasked)) return {};
  // Asks about one range after the other, so that each gap between two open contexts has its turn.
  auto next = known.released.upper_bound(known.asked);
  if (next == known.released.end()) next = known.released.begin();
  known.asked = next->first;
  return ContextId{creator.id, creator.incarnation, next->first};
}

std::vector<ContextId> ContextTable::peer_down(WorkerLife peer) {
  std::vector<ContextId> open_here;
  const auto at = creators_.find(peer);
  if (at == creators_.end() || peer == self_) return open_here;
  Creator& creator = at->second;
  for (const std::uint64_t number : creator.open) open_here.push_back({peer.id, peer.incarnation, number});
  std::uint64_t last = creator.released.empty() ? 0 : creator.released.rbegin()->second;
  if (!creator.open.empty()) last = std::max(last, *creator.open.rbegin());
  creator.add({1, last});
  return open_here;
}

std::optional<Send> ContextTable::refuse(WorkerLife from, const PassMessage& message) const {
  if (from == self_) return std::nullopt;
  const ContextId context = context_of(message);
  // The failure goes back to the sender, which takes part in the pass: the initiator may be unreachable from here.
  const auto failed = [&](const PassHeader& header) {
    return Send{from, Fail{header.pass, released_context(context)}};
  };
  if (const auto* mark = std::get_if<Mark>(&message)) return failed(mark->header);
  if (const auto* grad = std::get_if<Grad>(&message)) return failed(grad->header);
  if (context.maker() != self_ || context.number == 0 || context.number > made_) return std::nullopt;
  return Send{from, Release{context, released_around(context)}};
}

bool ContextTable::is_open(ContextId context) const {
  const auto at = creators_.find(context.maker());
  return at != creators_.end() && at->second.open.count(context.number) != 0;
}

ReleasedRange ContextTable::released_around(ContextId context) const {
  const auto at = creators_.find(self_);
  if (at == creators_.end() || at->second.open.count(context.number) != 0) return {};
  const std::set<std::uint64_t>& open = at->second.open;
  const auto after = open.upper_bound(context.number);
  return {after == open.begin() ? 1 : *std::prev(after) + 1, after == open.end() ? made_ : *after - 1};
}

std::size_t ContextTable::open_contexts() const noexcept {
  std::size_t count = 0;
  for (const auto& [life, creator] : creators_) count += creator.open.size();
  return count;
}

std::size_t ContextTable::remembered() const noexcept {
  std::size_t count = 0;
  for (const auto& [life, creator] : creators_) count += creator.released.size();
  return count;
}

}  // namespace caftan::autograd

#include "caftan/autograd/context_table.hpp"

#include <algorithm>
#include <string>

#include "released_context.hpp"

namespace caftan::autograd {

ContextId ContextTable::create() {
  ContextId id{self_.worker, self_.incarnation, ++made_};
  creators_[self_].open.insert(id.number);
  return id;
}

Result<bool> ContextTable::enter(ContextId context) {
  if (is_open(context)) return false;
  if (!context || (maker(context) == self_ && context.number > made_)) {
    return Error(Errc::unknown_context, "there is no context " + to_string(context));
  }
  if (maker(context) == self_) return released_context(context);
  Creator& creator = creators_[maker(context)];
  if (creator.refuses(context.number)) return released_context(context);
  creator.open.insert(context.number);
  return true;
}

void ContextTable::released(ContextId context) {
  const auto at = creators_.find(maker(context));
  if (at != creators_.end()) at->second.open.erase(context.number);
}

void ContextTable::learn(Life creator, const ReleasedSet& released) {
  if (creator == self_) return;
  Creator& known = creators_[creator];
  const auto says_released = [&](std::uint64_t number) {
    return number <= released.newest && !std::binary_search(released.open.begin(), released.open.end(), number);
  };
  // What either says is released is released: Releases overtake each other.
  std::set<std::uint64_t> exceptions;
  for (const std::uint64_t number : known.exceptions) {
    if (!says_released(number)) exceptions.insert(number);
  }
  for (const std::uint64_t number : released.open) {
    if (number > known.newest && number <= released.newest) exceptions.insert(number);
  }
  known.exceptions = std::move(exceptions);
  known.newest = std::max(known.newest, released.newest);
}

std::vector<ContextId> ContextTable::peer_down(Life peer) {
  std::vector<ContextId> open_here;
  const auto at = creators_.find(peer);
  if (at == creators_.end() || peer == self_) return open_here;
  Creator& creator = at->second;
  for (const std::uint64_t number : creator.open) open_here.push_back({peer.worker, peer.incarnation, number});
  if (!creator.open.empty()) creator.newest = std::max(creator.newest, *creator.open.rbegin());
  creator.exceptions.clear();
  return open_here;
}

std::optional<Send> ContextTable::refuse(Life from, const PassMessage& message) const {
  if (from == self_) return std::nullopt;
  const ContextId context = context_of(message);
  // Back the way it came: whoever sent it takes part, and the initiator may be out of reach from here.
  const auto failed = [&](const PassHeader& header) {
    return Send{from, Fail{header.pass, released_context(context)}};
  };
  if (const auto* mark = std::get_if<Mark>(&message)) return failed(mark->header);
  if (const auto* grad = std::get_if<Grad>(&message)) return failed(grad->header);
  if (maker(context) != self_ || context.number == 0 || context.number > made_) return std::nullopt;
  return Send{from, Release{context, released_set()}};
}

bool ContextTable::is_open(ContextId context) const {
  const auto at = creators_.find(maker(context));
  return at != creators_.end() && at->second.open.count(context.number) != 0;
}

ReleasedSet ContextTable::released_set() const {
  ReleasedSet set{made_, {}};
  if (const auto at = creators_.find(self_); at != creators_.end()) {
    set.open.assign(at->second.open.begin(), at->second.open.end());
  }
  return set;
}

std::size_t ContextTable::open_contexts() const noexcept {
  std::size_t count = 0;
  for (const auto& [life, creator] : creators_) count += creator.open.size();
  return count;
}

std::size_t ContextTable::remembered() const noexcept {
  std::size_t count = 0;
  for (const auto& [life, creator] : creators_) count += 1 + creator.exceptions.size();
  return count;
}

}  // namespace caftan::autograd

#include "caftan/net/internal/membership.hpp"

#include <algorithm>
#include <utility>

#include "caftan/net/internal/handshake.hpp"
#include "in_quotes.hpp"

namespace caftan::net {

namespace {

constexpr std::size_t kNamesShown = 16;

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamesShown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamesShown) text += " and " + std::to_string(names.size() - kNamesShown) + " more";
  return text;
}

}  // namespace

Result<Membership> Membership::make(std::vector<MemberEntry> entries, const Join& self) {
  const auto invalid = [](std::string text) { return Error(Errc::invalid_config, std::move(text)); };
  std::sort(entries.begin(), entries.end(), [](const MemberEntry& a, const MemberEntry& b) { return a.id < b.id; });
  std::vector<Member> members;
  std::size_t self_index = entries.size();
  for (MemberEntry& entry : entries) {
    const std::size_t index = members.size();
    if (entry.id.value != index)
      return invalid("the ids of workers have a gap or repetition at " + in_quotes(entry.name));
    if (entry.name.empty() || entry.name.size() > kMaxName) {
      return invalid("a worker's name has 1 to " + std::to_string(kMaxName) + " bytes");
    }
    if (entry.name == self.name && entry.id == self.id) self_index = index;
    members.push_back({.known = {std::move(entry.name), entry.id, {}, std::move(entry.address)}});
  }
  if (self_index == members.size()) {
    return invalid("worker " + in_quotes(self.name) + " with id " + std::to_string(self.id.value) +
                   " is not in this job");
  }
  if (self.incarnation.value == 0) return invalid("worker " + in_quotes(self.name) + " has no incarnation");
  members[self_index].known.incarnation = self.incarnation;
  if (!self.address.empty()) members[self_index].known.address = self.address;
  Membership membership(std::move(members), self_index);
  membership.set_joined(membership.members_[self_index], self.incarnation);
  for (const Member& member : membership.members_) {
    if (membership.by_name_.at(member.known.name) == member.known.id.value) continue;
    return invalid("two workers have the same name, " + in_quotes(member.known.name) + ": ids " +
                   std::to_string(membership.by_name_.at(member.known.name)) + " and " +
                   std::to_string(member.known.id.value));
  }
  return membership;
}

Membership::Membership(std::vector<Member> members, std::size_t self)
    : members_(std::move(members)), self_(self), missing_(members_.size()) {
  for (const Member& member : members_) by_name_.emplace(member.known.name, member.known.id.value);
}

std::string Membership::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.known.name);
  return join_names(names);
}

Result<Join> Membership::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return members_[found->second].known;
  return Error(Errc::unknown_worker, "no worker " + in_quotes(name) + " in this job; there are " + names());
}

Result<Join> Membership::find(WorkerId id) const {
  if (id.value < members_.size()) return members_[id.value].known;
  return Error(Errc::unknown_worker, "no worker with id " + std::to_string(id.value) + " in this job; there are " +
                                         std::to_string(members_.size()));
}

Result<void> Membership::check_life(const Member& member, Incarnation incarnation) const {
  const Join& known = member.known;
  if (incarnation == known.incarnation && incarnation.value != 0) return {};
  if (&member == &members_[self_]) {
    return Error(Errc::duplicate_worker,
                 "another process claims to be worker " + in_quotes(known.name) + ", which runs here");
  }
  if (std::find(member.replaced.begin(), member.replaced.end(), incarnation) != member.replaced.end() ||
      incarnation.value == 0) {
    return Error(Errc::peer_down, known.name, "this incarnation has ended and was replaced by a later one");
  }
  if (member.sessions != 0) {
    return Error(Errc::duplicate_worker, "another worker " + in_quotes(known.name) + " is connected" +
                                             (member.place.empty() ? "" : " (" + member.place + ")") +
                                             "; when it has ended a new one may join");
  }
  return {};
}

Result<void> Membership::admit(const Join& peer) const {
  const auto found = by_name_.find(peer.name);
  if (found == by_name_.end()) return find(peer.name).error();
  const Member& member = members_[found->second];
  if (peer.id != member.known.id) {
    return Error(Errc::invalid_config, "worker " + in_quotes(peer.name) + " has id " +
                                           std::to_string(member.known.id.value) + " in this job and comes with id " +
                                           std::to_string(peer.id.value));
  }
  return check_life(member, peer.incarnation);
}

void Membership::begin_life(Member& member, Incarnation incarnation) {
  if (member.known.incarnation == incarnation) return;
  if (member.known.incarnation.value != 0) member.replaced.push_back(member.known.incarnation);
  member.known.incarnation = incarnation;
}

/// Precondition: not zero.
void Membership::set_joined(Member& member, Incarnation incarnation) {
  if (member.joined.value == 0) --missing_;
  member.joined = incarnation;
}

Result<bool> Membership::join(const Join& member) {
  if (auto admitted = admit(member); !admitted) return admitted.error();
  Member& known = members_[member.id.value];
  // on_up may have stored the incarnation already; only its join shows that this life has joined.
  const bool is_new = known.joined != member.incarnation;
  const bool is_moved = known.known.address != member.address;
  begin_life(known, member.incarnation);
  known.known.address = member.address;
  set_joined(known, member.incarnation);
  if (is_new || is_moved) ++revision_;
  return is_new || is_moved;
}

std::vector<std::string> Membership::missing() const {
  std::vector<std::string> names;
  for (const Member& member : members_) {
    if (member.joined.value == 0) names.push_back(member.known.name);
  }
  return names;
}

View Membership::view() const {
  View view{revision_, {}};
  for (const Member& member : members_) view.members.push_back(member.known);
  return view;
}

Result<void> Membership::check_view(const View& view) const {
  const auto malformed = [](std::string text) { return Error(Errc::malformed_payload, "view: " + std::move(text)); };
  if (view.members.size() != members_.size()) {
    return malformed(std::to_string(view.members.size()) + " members instead of " + std::to_string(members_.size()));
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Join& member = view.members[i];
    if (member.name != members_[i].known.name || member.id != members_[i].known.id) {
      return malformed("member " + std::to_string(i) + " is not " + in_quotes(members_[i].known.name));
    }
    if (member.incarnation.value == 0) return malformed("member " + in_quotes(member.name) + " has no incarnation");
    if (member.address.size() > kMaxAddress)
      return malformed("the address of " + in_quotes(member.name) + " is too long");
  }
  if (view.members[self_].incarnation != self().incarnation) {
    return Error(Errc::duplicate_worker,
                 "the coordinator knows another incarnation of worker " + in_quotes(self().name));
  }
  return {};
}

Result<std::vector<WorkerId>> Membership::apply(const View& view) {
  if (auto fits = check_view(view); !fits) return fits.error();
  std::vector<WorkerId> changed;
  if (view.revision <= revision_) return changed;
  revision_ = view.revision;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    set_joined(member, view.members[i].incarnation);
    if (!check_life(member, view.members[i].incarnation)) continue;
    if (member.known == view.members[i]) continue;
    begin_life(member, view.members[i].incarnation);
    member.known.address = view.members[i].address;
    changed.push_back(member.known.id);
  }
  return changed;
}

Result<bool> Membership::on_up(const WorkerLife& worker, const std::string& place) {
  if (auto found = find(worker.id); !found) return found.error();
  Member& member = members_[worker.id.value];
  if (auto life = check_life(member, worker.incarnation); !life) return life.error();
  begin_life(member, worker.incarnation);
  member.place = place;
  return member.sessions++ == 0;
}

bool Membership::on_down(const WorkerLife& worker) {
  if (worker.id.value >= members_.size()) return false;
  Member& member = members_[worker.id.value];
  if (member.known.incarnation != worker.incarnation) return false;
  return member.sessions != 0 && --member.sessions == 0;
}

bool Membership::is_up(WorkerId id) const { return id.value < members_.size() && members_[id.value].sessions != 0; }

}  // namespace caftan::net

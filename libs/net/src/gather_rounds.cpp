#include "caftan/net/internal/gather_rounds.hpp"

#include <algorithm>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::net {

GatherRounds::GatherRounds(const std::vector<Name>& members, const WorkerLife& self) : self_(self.id) {
  for (const Name& member : members) members_.push_back({.id = member.id, .name = member.name});
  find(self_)->life = self.incarnation;
}

GatherRounds::Member* GatherRounds::find(WorkerId id) noexcept {
  const auto found = std::ranges::find_if(members_, [&](const Member& member) { return member.id == id; });
  return found == members_.end() ? nullptr : &*found;
}

const GatherRounds::Member& GatherRounds::self() const {
  return *std::ranges::find_if(members_, [&](const Member& member) { return member.id == self_; });
}

std::uint64_t GatherRounds::lives() const {
  std::uint64_t hash = 0;
  for (const Member& member : members_) hash = mix64(hash ^ member.life.value) + 1;
  return hash;
}

/// Returns the present round of this worker: with other lives of the members, rounds begin anew.
std::uint64_t GatherRounds::round() const { return round_lives_ == lives() ? round_ : 0; }

const GatherRounds::Value* GatherRounds::value_of(const Member& member, std::uint64_t round) const {
  if (member.lives != lives() || round < member.first || round - member.first >= member.values.size()) return nullptr;
  return &member.values[round - member.first];
}

// ---- calls of this worker

Result<GatherRound> GatherRounds::begin_call(Value value) {
  if (is_called_) {
    return Error(Errc::overloaded, self().name,
                 "a barrier or all_gather of these members is under way here: they take one after the other");
  }
  is_called_ = was_called_ = true;
  replaced_.reset();
  round_ = round();
  round_lives_ = lives();
  Member& own = *find(self_);
  if (!value_of(own, round_)) {
    own.lives = round_lives_;
    own.first = round_;
    own.values.assign(1, std::move(value));
  }
  for (Member& member : members_) member.has_confirmed = member.id == self_;
  return GatherRound{round_lives_, round_};
}

const GatherRounds::Value& GatherRounds::own_value() const { return self().values.front(); }

void GatherRounds::on_confirmed(WorkerId id, const GatherRound& round) {
  if (is_called_ && round == GatherRound{round_lives_, round_}) find(id)->has_confirmed = true;
}

void GatherRounds::on_not_reached(WorkerId id, const Error& reason) {
  Member& member = *find(id);
  if (!member.lost) member.lost = reason;
}

std::optional<Result<std::vector<GatherRounds::Value>>> GatherRounds::outcome() const {
  using Outcome = Result<std::vector<Value>>;
  if (!is_called_) return std::nullopt;
  if (replaced_) return Outcome(*replaced_);
  std::vector<Value> values;
  bool is_complete = true;
  for (const Member& member : members_) {
    const Value* const value = value_of(member, round_);
    if (value) {
      values.push_back(*value);
      is_complete = is_complete && (member.has_confirmed || member.lost);
      continue;
    }
    if (member.lost) {
      return Outcome(Error(Errc::peer_down, member.name,
                           member.name + " is lost or has not come, and has given no value",
                           std::make_shared<const Error>(*member.lost)));
    }
    is_complete = false;
  }
  if (!is_complete) return std::nullopt;
  return Outcome(std::move(values));
}

void GatherRounds::end_call(bool succeeded) {
  is_called_ = false;
  if (!succeeded) return;
  ++round_;
  for (Member& member : members_) {
    if (member.lives != round_lives_ || member.values.empty() || member.first >= round_) continue;
    member.values.erase(member.values.begin());
    ++member.first;
  }
}

Error GatherRounds::why_late(const std::string& what, base::Duration timeout) const {
  const std::string within = " within " + format_duration(timeout.count());
  std::vector<std::string> not_come;
  std::vector<std::string> missing;
  std::vector<std::string> unconfirmed;
  for (const Member& member : members_) {
    if (member.life.value == 0) not_come.push_back(member.name);
    if (!value_of(member, round_)) missing.push_back(member.name);
    if (!member.has_confirmed) unconfirmed.push_back(member.name);
  }
  const auto late = [&](const std::vector<std::string>& names, const char* why) {
    return Error(Errc::timeout, self().name,
                 what + ": " + base::joined(names) + (names.size() == 1 ? " has " : " have ") + why + within);
  };
  if (!not_come.empty()) return late(not_come, "not come");
  if (!missing.empty()) return late(missing, "not called it");
  return late(unconfirmed, "not confirmed this worker's value");
}

// ---- other members

void GatherRounds::set_life(Member& member, Incarnation life) {
  if (member.life == life) return;
  if (is_called_ && member.life.value != 0) {
    replaced_ = Error(Errc::peer_down, member.name, member.name + " began a new life before the call had ended");
  }
  member.life = life;
  member.lost.reset();
}

void GatherRounds::on_up(const WorkerLife& peer) {
  Member* const member = find(peer.id);
  if (!member || peer.id == self_) return;
  set_life(*member, peer.incarnation);
  member->lost.reset();
}

void GatherRounds::on_lost(const WorkerLife& peer, const Error& reason) {
  Member* const member = find(peer.id);
  if (member && peer.id != self_ && member->life == peer.incarnation) member->lost = reason;
}

Result<void> GatherRounds::on_value(const WorkerLife& sender, const GatherRound& round, Value value) {
  Member* const member = find(sender.id);
  if (!member || sender.id == self_) {
    return Error(Errc::bad_arguments, self().name, "a value of a worker that is not another member of the set");
  }
  if (member->life != sender.incarnation) {
    if (member->life.value != 0 && !member->lost) {
      return Error(Errc::bad_arguments, self().name, "a value of a life of " + member->name + " that was replaced");
    }
    set_life(*member, sender.incarnation);  // the session with this new life is about to be reported, too
  }
  const auto cannot_be = [&] {
    return Error(Errc::bad_arguments, self().name,
                 member->name + " gives a value for round " + std::to_string(round.number) +
                     ", which cannot have begun: round " + std::to_string(this->round()) + " is under way here");
  };
  if (round.lives != lives()) {
    // Of lives that this worker does not know yet only round 0 can have begun: every round needs its value. A later
    // round is of lives that are over.
    if (round.number != 0) return {};
    if (member->lives == round.lives && !member->values.empty()) return {};
    member->lives = round.lives;
    member->first = 0;
    member->values.assign(1, std::move(value));
    return {};
  }
  const std::uint64_t present = this->round();
  if (round.number < present) return {};
  if (member->lives != round.lives) {
    member->lives = round.lives;
    member->first = present;
    member->values.clear();
  }
  if (member->values.empty()) member->first = present;
  if (round.number < member->first + member->values.size()) return {};
  if (round.number > present + 1 || round.number != member->first + member->values.size()) return cannot_be();
  member->values.push_back(std::move(value));
  return {};
}

}  // namespace caftan::net

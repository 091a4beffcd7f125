#include "caftan/net/internal/leave_together.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::net {

namespace {

const char* has(const std::vector<std::string>& names) { return names.size() == 1 ? " has" : " have"; }
const char* is(const std::vector<std::string>& names) { return names.size() == 1 ? " is" : " are"; }

}  // namespace

LeaveTogether::LeaveTogether(const std::vector<std::string>& names, const WorkerLife& self) : self_(self.id) {
  for (const std::string& name : names) members_.push_back({.name = name});
  set_life(members_[self_.value], self.incarnation);
}

// ---- calls of this worker

Result<void> LeaveTogether::begin_call() {
  const std::string& own_name = members_[self_.value].name;
  if (is_called_) return Error(Errc::overloaded, own_name, "leave_together is under way on another thread");
  is_called_ = true;
  return {};
}

bool LeaveTogether::all_have_come() const {
  return std::ranges::all_of(members_, [](const Member& member) { return member.life.value != 0; });
}

void LeaveTogether::set_life(Member& member, Incarnation life) {
  member.life = life;
  lives_.reset();
}

std::uint64_t LeaveTogether::lives() const {
  if (lives_) return *lives_;
  std::uint64_t hash = 0;
  for (const Member& each : members_) hash = mix64(hash ^ each.life.value) + 1;
  lives_ = hash;
  return hash;
}

std::size_t LeaveTogether::rounds_of(const Member& member) const {
  return member.lives == lives() ? member.work.size() : 0;
}

bool LeaveTogether::is_over() const {
  const std::size_t rounds = own_rounds();
  if (rounds < 3) return false;
  return std::ranges::all_of(members_, [&](const Member& member) {
    return rounds_of(member) >= rounds && member.work[rounds - 1] == member.work[rounds - 2];
  });
}

std::optional<std::uint64_t> LeaveTogether::due() const {
  if (!is_called_ || !all_have_come() || is_over()) return std::nullopt;
  const std::size_t rounds = own_rounds();
  const bool is_complete =
      std::ranges::all_of(members_, [&](const Member& member) { return rounds_of(member) >= rounds; });
  return is_complete ? std::optional<std::uint64_t>(rounds) : std::nullopt;
}

LeaveReport LeaveTogether::report(std::uint64_t work) {
  Member& self = members_[self_.value];
  const LeaveReport report{.lives = lives(), .round = own_rounds(), .work = own_rounds() == 0 ? 0 : work};
  if (report.round == 0) self.work.clear();
  self.lives = report.lives;
  self.work.push_back(report.work);
  return report;
}

std::optional<Result<void>> LeaveTogether::outcome() const {
  if (stopped_) return Result<void>(*stopped_);
  if (is_over()) return Result<void>();
  const std::size_t rounds = own_rounds();
  for (const Member& member : members_) {
    // This worker needs the report of a lost member for the last round that it has reported itself, or for the next
    // round, and that report will not come.
    if (!member.lost || rounds_of(member) > rounds) continue;
    if (rounds_of(member) == rounds && rounds > 0 && !due()) continue;
    const char* const what = rounds_of(member) == 0 ? " is lost and has not called leave_together"
                                                    : " is lost before all members were at rest";
    return Result<void>(
        Error(Errc::peer_down, member.name, member.name + what, std::make_shared<const Error>(*member.lost)));
  }
  return std::nullopt;
}

Error LeaveTogether::why_late(base::Duration timeout) const {
  const std::string within = " within " + format_duration(timeout.count());
  const std::string& own_name = members_[self_.value].name;
  std::vector<std::string> not_come;
  for (const Member& member : members_) {
    if (member.life.value == 0) not_come.push_back(member.name);
  }
  if (!not_come.empty()) {
    return {Errc::timeout, own_name,
            "leave_together: " + base::joined(not_come) + has(not_come) + " not come" + within};
  }
  const auto rounds = [&](const Member& member) {
    const bool has_called = &member == &members_[self_.value];
    return std::max<std::size_t>(rounds_of(member), has_called ? 1 : 0);
  };
  std::size_t fewest = rounds(members_[self_.value]);
  for (const Member& member : members_) fewest = std::min(fewest, rounds(member));
  std::vector<std::string> behind;
  for (const Member& member : members_) {
    if (rounds(member) == fewest) behind.push_back(member.name);
  }
  if (fewest == 0) {
    return {Errc::timeout, own_name,
            "leave_together: " + base::joined(behind) + has(behind) + " not called it" + within};
  }
  return {Errc::timeout, own_name,
          "leave_together: all members have called it, and " + base::joined(behind) + is(behind) + " not at rest" +
              within + ": calls or released references are under way there, or calls begin again and again"};
}

// ---- other members

void LeaveTogether::on_up(const WorkerLife& peer) {
  Member& member = members_[peer.id.value];
  if (member.life != peer.incarnation) set_life(member, peer.incarnation);
  member.lost.reset();
}

void LeaveTogether::on_lost(const WorkerLife& peer, const Error& reason) {
  Member& member = members_[peer.id.value];
  if (member.life == peer.incarnation) member.lost = reason;
}

void LeaveTogether::on_report(const WorkerLife& sender, const LeaveReport& report) {
  Member& member = members_[sender.id.value];
  if (sender.id == self_) return;
  if (member.life != sender.incarnation) {
    if (member.life.value != 0 && !member.lost) return;  // the report is from a life that was replaced
    on_up(sender);                                       // the session with this new life is about to be reported, too
  }
  // Only a report of round 0 can be for lives that this worker does not know: later rounds begin after this worker has
  // reported round 0 for the same lives.
  if (report.round == 0) {
    if (member.lives == report.lives && !member.work.empty()) return;
    member.lives = report.lives;
    member.work.assign(1, 0);
    return;
  }
  const bool is_next = report.lives == lives() && report.round == rounds_of(member);
  if (is_next && report.round <= own_rounds()) member.work.push_back(report.work);
}

}  // namespace caftan::net

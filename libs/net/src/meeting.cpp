#include "caftan/net/internal/meeting.hpp"

#include <algorithm>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "caftan/net/internal/who_is_missing.hpp"

namespace caftan::net {

namespace {

constexpr std::size_t kMostRefusalsReported = 8;  // strangers may connect without limit

/// Returns whether a refusal may be the reason why a member is missing. If not, the refused peer did not speak this
/// protocol.
bool concerns_members(const Error& refusal) {
  switch (refusal.code()) {
    case Errc::protocol_mismatch:
    case Errc::wrong_cluster:
    case Errc::not_authenticated:
    case Errc::unknown_worker:
    case Errc::invalid_config:
    case Errc::duplicate_worker:
      return true;
    default:
      return false;
  }
}

}  // namespace

Meeting::Meeting(Membership membership, Options options)
    : membership_(std::move(membership)), options_(std::move(options)), self_(membership_.self().id) {
  for (const std::string& address : options_.addresses) {
    const auto id = static_cast<std::uint32_t>(members_.size());
    const std::uint64_t seed = membership_.self().incarnation.value ^ mix64(id + 1);
    members_.push_back({.name = membership_.find(WorkerId{id})->name,
                        .address = address,
                        .has_fixed_address = !address.empty(),
                        .dial_pause = DialPause(seed)});
  }
}

// ---- sessions

Result<void> Meeting::on_session_start(const WorkerLife& peer, const std::string& place) {
  if (is_leaving_) return Error(Errc::shut_down, "this worker is leaving");
  if (peer.id == self_) return {};
  const auto up = membership_.on_up(peer, place);
  return up ? Result<void>() : Result<void>(up.error());
}

bool Meeting::is_present(const WorkerLife& peer) const {
  return membership_.is_up(peer.id) && membership_.find(peer.id)->incarnation == peer.incarnation;
}

void Meeting::set(bool& flag, std::size_t& count, bool value) noexcept {
  if (flag == value) return;
  flag = value;
  value ? ++count : --count;
}

void Meeting::learn_address(Member& member, const std::string& address) {
  if (member.has_fixed_address || address.empty() || address == member.address) return;
  member.address = address;
  member.dial_pause.reset();
}

void Meeting::on_connected(const WorkerLife& peer, const std::string& address) {
  Member& member = members_[peer.id.value];
  learn_address(member, address);
  member.was_up = peer.incarnation;
  member.dial_pause.reset();
  member.duplicate = Error();
  if (!is_present(peer)) return;  // it has ended meanwhile
  set(member.is_connected, connected_, true);
  if (!is_coordinator()) return;
  const auto changed = membership_.join({member.name, peer.id, peer.incarnation, member.address});
  // SE-34: a new life has an address of its own, which the coordinator sends to all members in a new view.
  if (changed && *changed) view_ = ViewState::none;
}

Meeting::Loss Meeting::on_session_end(const WorkerLife& peer) {
  if (peer.id == self_ || !membership_.on_down(peer)) return {};
  Member& member = members_[peer.id.value];
  set(member.is_connected, connected_, false);
  set(member.reported_ready, reported_ready_, false);
  Loss loss{.is_last = true};
  if (!start_is_over()) {
    member.lost_at_start = true;
    loss.report = Loss::Report::after_start;
  } else if (!is_leaving_) {
    loss.report = Loss::Report::now;
  }
  // SE-34: the lost peer may come back, perhaps at another address.
  loss.dial = !options_.in_one_process && peer.id < self_;
  return loss;
}

Error Meeting::why_unreachable(WorkerId peer) const {
  const Member& member = members_[peer.value];
  if (member.was_up.value == 0) {
    return Error(Errc::peer_unreachable, member.name,
                 member.name + " has not come yet: calls begin when the worker is ready");
  }
  return Error(Errc::peer_down, member.name, "there is no connection with " + member.name);
}

// ---- dialling

std::vector<WorkerId> Meeting::to_dial() const {
  std::vector<WorkerId> lower;
  if (options_.in_one_process) return lower;
  for (std::uint32_t id = 0; id < self_.value; ++id) lower.push_back(WorkerId{id});
  return lower;
}

/// During the start every member that is not connected may be dialled; afterwards only a life that the coordinator has
/// announced and with which this worker has had no session, for as long as a start may take (SE-34).
bool Meeting::may_dial(const Member& member, base::TimePoint now) const {
  if (is_leaving_) return false;
  if (start_ != Start::over) return start_ != Start::failed;
  return member.announced.value != 0 && member.announced != member.was_up &&
         member.dial_pause.has_begun_within(options_.start_timeout, now);
}

std::optional<std::string> Meeting::begin_dial(WorkerId peer, base::TimePoint now) {
  Member& member = members_[peer.value];
  if (member.is_dialled || membership_.is_up(peer) || !may_dial(member, now)) return std::nullopt;
  if (member.address.empty()) return std::nullopt;
  member.is_dialled = true;
  return member.address;
}

Meeting::FailedDial Meeting::on_dial_failed(WorkerId peer, const Error& error, base::TimePoint now) {
  // A duplicate may be an earlier life that froze: it is lost when it has been silent for long enough.
  const bool is_duplicate = error.code() == Errc::duplicate_worker;
  const bool may_come = is_duplicate || error.code() == Errc::peer_down || error.code() == Errc::timeout;
  Member& member = members_[peer.value];
  const Error refusal(error.code(), member.name, error.text());
  FailedDial failed;
  if (may_come) last_dial_error_ = error;
  const bool is_first_duplicate =
      is_duplicate && std::ranges::all_of(members_, [](const Member& m) { return m.duplicate.code() == Errc::ok; });
  member.duplicate = is_duplicate ? refusal : Error();
  member.is_dialled = may_come && may_dial(member, now);
  if (may_come && !member.is_dialled) return failed;
  const base::TimePoint again = now + member.dial_pause.after_failure(now);
  if (!may_come) {
    if (start_ == Start::over) failed.given_up = refusal;
    fail(refusal);
    return failed;
  }
  failed.again = again;
  // Reports a refusal as duplicate_worker at once; this worker dials again until start_timeout.
  if (is_first_duplicate) failed.duplicate = refusal;
  return failed;
}

// ---- connections that this worker refused

void Meeting::on_other_settings(const Error& error) {
  if (!other_settings_) other_settings_ = error;
}

bool Meeting::on_refused(const Error& error) {
  if (start_is_over() || start_ == Start::failed) return false;
  if (!other_settings_ && !concerns_members(error)) return false;
  last_refusal_ = error;
  if (other_settings_) {
    fail(*other_settings_);
    return false;
  }
  return ++refusals_ <= kMostRefusalsReported;
}

// ---- the start

std::optional<View> Meeting::take_view() {
  if (!is_coordinator() || view_ == ViewState::sent) return std::nullopt;
  if (!membership_.complete() || !all_others(connected_)) return std::nullopt;
  view_ = ViewState::sent;
  return membership_.view();
}

Result<std::vector<WorkerId>> Meeting::on_view(WorkerId sender, const View& view) {
  std::vector<WorkerId> dial;
  if (sender != kCoordinator) return dial;
  const bool is_newer = view.revision > membership_.revision();
  if (const auto applied = membership_.apply(view); !applied) return applied.error();
  view_ = ViewState::received;
  // The coordinator sends views from several threads: an older one may arrive behind a newer one.
  if (!is_newer) return dial;
  for (const Join& life : view.members) {
    Member& member = members_[life.id.value];
    learn_address(member, life.address);
    if (std::exchange(member.announced, life.incarnation) != life.incarnation) member.dial_pause.reset();
    if (life.id < self_ && !membership_.is_up(life.id)) dial.push_back(life.id);
  }
  return dial;
}

std::optional<Meeting::ReadyReport> Meeting::take_ready_report() {
  if (start_ != Start::meeting || (is_coordinator() && view_ != ViewState::sent)) return std::nullopt;
  if (!all_others(connected_) || (is_coordinator() && !all_others(reported_ready_))) return std::nullopt;
  ReadyReport report{.ends_start = is_coordinator()};
  if (!is_coordinator()) report.receivers.push_back(kCoordinator);
  for (std::uint32_t id = 1; is_coordinator() && id < members_.size(); ++id) report.receivers.push_back(WorkerId{id});
  start_ = Start::reported;
  return report;
}

Meeting::OnMet Meeting::on_met(const WorkerLife& sender) {
  // Only the coordinator knows when all members have a session with every other.
  if (!is_coordinator()) return sender.id == kCoordinator ? OnMet::end_start : OnMet::nothing;
  if (sender.id == self_ || !is_present(sender)) return OnMet::nothing;  // the message is from a life that has ended
  set(members_[sender.id.value].reported_ready, reported_ready_, true);
  return start_ == Start::reported || start_ == Start::over ? OnMet::answer : OnMet::look;
}

std::optional<std::vector<WorkerId>> Meeting::end_start() {
  if (is_decided()) return std::nullopt;
  start_ = Start::over;
  std::vector<WorkerId> lost;
  for (std::uint32_t id = 0; id < members_.size(); ++id) {
    if (members_[id].lost_at_start && !membership_.is_up(WorkerId{id})) lost.push_back(WorkerId{id});
  }
  return lost;
}

void Meeting::fail(Error error) {
  if (is_decided()) return;
  start_ = Start::failed;
  failure_ = std::move(error);
}

void Meeting::fail_late(std::span<const std::string> siblings) {
  if (!is_decided()) fail(why_late(siblings));
}

std::optional<Result<void>> Meeting::outcome() const {
  if (start_ == Start::over) return Result<void>();
  if (start_ == Start::failed) return Result<void>(failure_);
  return std::nullopt;
}

Error Meeting::why_late(std::span<const std::string> siblings) const {
  const std::string& own_name = members_[self_.value].name;
  for (const Member& member : members_) {
    if (member.duplicate.code() == Errc::ok) continue;
    return {Errc::duplicate_worker, own_name,
            "still refused after " + format_duration(options_.start_timeout.count()) + ": " +
                member.duplicate.worker() + ": " + member.duplicate.text()};
  }
  std::vector<MemberAtStart> members;
  for (std::uint32_t id = 0; id < members_.size(); ++id) {
    const Member& member = members_[id];
    const bool is_self = WorkerId{id} == self_;
    const bool is_sibling = std::ranges::find(siblings, member.name) != siblings.end();
    const bool is_up = is_self || membership_.is_up(WorkerId{id});
    const bool was_up = member.was_up.value != 0;
    // A member connects without further help where all are in one process, where this worker is the coordinator, which
    // all dial, or where the member's address is known.
    const bool would_be_met = options_.in_one_process || is_coordinator() || !member.address.empty();
    members.push_back({.name = member.name,
                       .is_here = is_up || (is_sibling && !would_be_met && !was_up),
                       .has_left = was_up && !is_up,
                       .would_be_met = would_be_met,
                       .is_meeting = is_coordinator() && is_up && !is_self && !member.reported_ready});
  }
  std::string text = who_is_missing(members, view_ == ViewState::received, options_.start_timeout);
  if (last_dial_error_.code() != Errc::ok) text += " (last: " + last_dial_error_.text() + ")";
  if (last_refusal_.code() != Errc::ok) text += " (refused: " + last_refusal_.message() + ")";
  return {Errc::timeout, own_name, std::move(text)};
}

}  // namespace caftan::net

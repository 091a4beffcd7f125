#include "worker/gatherer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/group.hpp"
#include "caftan/rpc/registry.hpp"
#include "worker/worker_core.hpp"

namespace caftan::actors {

namespace {

constexpr std::size_t kMostUncalledSets = 1024;  // of which only other members have called anything

Result<void> give_value(Worker& worker, const CallInfo& info, const GatherValue& value) {
  return WorkerCore::of(worker).gatherer().on_value(info.caller, value);
}

bool is_loss(Errc code) { return code == Errc::peer_down || code == Errc::peer_unreachable || code == Errc::shut_down; }

}  // namespace

void Gatherer::register_with(Registry& registry, remote::MessageRegistry&) {
  registry.add<&give_value>("caftan.gather.value", brief);
}

// ---- calls of this worker

Future<rpc::Contributions> Gatherer::gather(rpc::GatherRequest&& request, const CallOptions& options) {
  const auto refuse = [&](const Error& error) {
    return make_ready_future<rpc::Contributions>(Error(
        error.code(), error.worker().empty() ? ports_.name() : error.worker(), request.what + ": " + error.text()));
  };
  const Result<Ids> ids = ids_of(request);
  if (!ids) return refuse(ids.error());
  base::Duration timeout = options.timeout.value_or(ports_.default_timeout());
  if (timeout < base::Duration::zero())
    return refuse(Error(Errc::bad_arguments, "the timeout is negative; 0 means none"));
  const base::TimePoint now = ports_.executor().clock().now();
  const Ambient* const ambient = Ambient::current();
  const base::Duration inherited = ambient ? ambient->deadline - now : base::kNever - now;
  if (inherited <= base::Duration::zero())
    return refuse(Error(Errc::timeout, "no time was left of the surrounding call"));
  if (timeout == base::Duration::zero() || inherited < timeout) timeout = inherited;
  Promise<rpc::Contributions> promise(ports_.weak_from_this());
  Future<rpc::Contributions> future = promise.future();
  GatherValue given{*ids, {}, {}};
  std::uint64_t number = 0;
  {
    const base::LockGuard lock(mutex_);
    if (ended_) return refuse(*ended_);
    Set& set = set_of(*ids);
    if (set.call && set.call->promise.is_complete()) {  // its future was cancelled
      set.rounds.end_call(false);
      set.call.reset();
    }
    meet(*ids, set);
    const auto round = set.rounds.begin_call(std::make_shared<const rpc::Contribution>(std::move(request.value)));
    if (!round) return refuse(round.error());
    given.round = *round;
    given.value = *std::static_pointer_cast<const rpc::Contribution>(set.rounds.own_value());
    number = ++last_call_;
    set.call.emplace(Call{number, request.what, timeout, std::move(promise)});
  }
  if (timeout < base::kNever - now) {
    ports_.executor().post_at(now + timeout, [weak = ports_.weak_from_this(), this, ids = *ids, number] {
      if (const auto alive = weak.lock()) on_late(ids, number);
    });
  }
  give(*ids, std::move(given), timeout, number);
  return future;
}

Result<Gatherer::Ids> Gatherer::ids_of(const rpc::GatherRequest& request) const {
  Ids ids(request.members.size());
  if (request.members.empty()) {
    ids.resize(peers_.size());
    std::iota(ids.begin(), ids.end(), 0U);
    return ids;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto peer = peers_.find(request.members[i]);
    if (!peer) return peer.error();
    ids[i] = peer->id().value;
  }
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  if (twice != ids.end()) {
    return Error(Errc::bad_arguments, peers_.at(WorkerId{*twice}).name() + " is a member twice");
  }
  if (!std::ranges::binary_search(ids, ports_.id().value)) {
    return Error(Errc::bad_arguments, "this worker, " + ports_.name() + ", is not among the members");
  }
  return ids;
}

/// Gives the value to all other members at once, as no part of the code that calls.
void Gatherer::give(const Ids& ids, GatherValue value, base::Duration timeout, std::uint64_t call) {
  std::vector<Peer> others;
  for (const std::uint32_t id : ids) {
    if (WorkerId{id} != ports_.id()) others.push_back(*peers_.find(WorkerId{id}));
  }
  if (others.empty()) return on_given(ids, value.round, call, {});
  const net::GatherRound round = value.round;
  Ambient none;
  const AmbientSwap swap(&none);
  const WorkerGroup group(std::make_shared<const rpc::GroupMembers>(ports_.weak_from_this(), std::move(others)),
                          {.timeout = timeout});
  group.rpc_all_results<&give_value>(value)
      .then([weak = ports_.weak_from_this(), this, ids, round, call](Result<std::vector<Result<void>>> all) {
        if (const auto alive = weak.lock(); alive && all) on_given(ids, round, call, *all);
      })
      .forget();
}

/// @param confirmed  by the other members, in order
void Gatherer::on_given(const Ids& ids, const net::GatherRound& round, std::uint64_t call,
                        const std::vector<Result<void>>& confirmed) {
  base::Task ended;
  {
    const base::LockGuard lock(mutex_);
    Set& set = set_of(ids);
    if (!set.call || set.call->number != call) return;
    auto one = confirmed.begin();
    for (const std::uint32_t id : ids) {
      if (WorkerId{id} == ports_.id()) continue;
      const Result<void>& result = *one++;
      if (result) {
        set.rounds.on_confirmed(WorkerId{id}, round);
      } else if (is_loss(result.error().code())) {
        set.rounds.on_not_reached(WorkerId{id}, result.error());
      } else if (result.error().code() != Errc::timeout) {  // of which on_late has the names
        ended = fail(set, result.error());
        break;
      }
    }
    if (set.call) ended = conclude(ids, set);
  }
  if (ended) ended();
}

void Gatherer::on_late(const Ids& ids, std::uint64_t call) {
  base::Task ended;
  {
    const base::LockGuard lock(mutex_);
    Set& set = set_of(ids);
    if (!set.call || set.call->number != call) return;
    ended = fail(set, set.rounds.why_late(set.call->what, set.call->timeout));
  }
  ended();
}

base::Task Gatherer::conclude(const Ids& ids, Set& set) {
  auto outcome = set.rounds.outcome();
  if (!outcome) return {};
  if (!*outcome) {
    const Error& why = outcome->error();
    std::shared_ptr<const Error> cause = why.cause() ? std::make_shared<const Error>(*why.cause()) : nullptr;
    return fail(set, Error(why.code(), why.worker(), set.call->what + ": " + why.text(), std::move(cause)));
  }
  rpc::Contributions all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    all.emplace_back(peers_.at(WorkerId{ids[i]}).name(),
                     *std::static_pointer_cast<const rpc::Contribution>((**outcome)[i]));
  }
  set.rounds.end_call(true);
  Promise<rpc::Contributions> promise = std::move(set.call->promise);
  set.call.reset();
  return base::Task([promise = std::move(promise), all = std::move(all)]() mutable { promise.set(std::move(all)); });
}

base::Task Gatherer::fail(Set& set, const Error& error) {
  set.rounds.end_call(false);
  Promise<rpc::Contributions> promise = std::move(set.call->promise);
  set.call.reset();
  return base::Task([promise = std::move(promise), error]() mutable { promise.set(error); });
}

// ---- other members

Result<void> Gatherer::on_value(const Peer& sender, const GatherValue& value) {
  if (Result<void> known = check(value.members, sender.id()); !known) return known;
  const auto session = ports_.session_of(sender);
  if (!session) return Error(Errc::peer_down, sender.name(), "the session has ended");
  base::Task ended;
  {
    const base::LockGuard lock(mutex_);
    if (ended_) return *ended_;
    if (!sets_.contains(value.members)) {
      const auto uncalled =
          std::ranges::count_if(sets_, [](const auto& one) { return !one.second.rounds.was_called(); });
      if (static_cast<std::size_t>(uncalled) >= kMostUncalledSets) {
        return Error(Errc::overloaded, ports_.name(),
                     "values of " + std::to_string(kMostUncalledSets) +
                         " sets of members wait here, of which this worker has never called barrier or all_gather");
      }
    }
    Set& set = set_of(value.members);
    meet(value.members, set);
    const auto taken =
        set.rounds.on_value(session->peer().life, value.round, std::make_shared<const rpc::Contribution>(value.value));
    if (!taken) return taken;
    if (set.call) ended = conclude(value.members, set);
  }
  if (ended) ended();
  return {};
}

Result<void> Gatherer::check(const Ids& ids, WorkerId sender) const {
  const bool ascends = std::ranges::adjacent_find(ids, std::ranges::greater_equal()) == ids.end();
  const auto has = [&](WorkerId id) { return std::ranges::binary_search(ids, id.value); };
  if (ascends && !ids.empty() && ids.back() < peers_.size() && has(sender) && has(ports_.id())) return {};
  return Error(Errc::bad_arguments, ports_.name(), "a value for a set of members that cannot be");
}

Gatherer::Set& Gatherer::set_of(const Ids& ids) {
  const auto found = sets_.find(ids);
  if (found != sets_.end()) return found->second;
  std::vector<net::GatherRounds::Name> members;
  for (const std::uint32_t id : ids) members.push_back({WorkerId{id}, peers_.at(WorkerId{id}).name()});
  return sets_.emplace(ids, Set{net::GatherRounds(members, ports_.life())}).first->second;
}

/// Reports to the rules which lives of the members have a session now.
void Gatherer::meet(const Ids& ids, Set& set) {
  for (const std::uint32_t id : ids) {
    if (const auto session = peers_.at(WorkerId{id}).session()) set.rounds.on_up(session->peer().life);
  }
}

void Gatherer::on_session_end(const transport::Session& session, bool is_last) {
  if (!is_last) return;
  const std::string& name = session.peer().name;
  const Error reason(Errc::peer_down, name, session.has_left() ? name + " has left" : "lost " + name);
  std::vector<base::Task> ended;
  {
    const base::LockGuard lock(mutex_);
    for (auto& [ids, set] : sets_) {
      set.rounds.on_lost(session.peer().life, reason);
      if (!set.call) continue;
      if (base::Task end = conclude(ids, set)) ended.push_back(std::move(end));
    }
  }
  for (base::Task& end : ended) end();
}

void Gatherer::end_all(const Error& reason, StopReport&) {
  std::vector<base::Task> ended;
  {
    const base::LockGuard lock(mutex_);
    ended_ = reason;
    for (auto& [ids, set] : sets_) {
      if (set.call) ended.push_back(fail(set, reason));
    }
  }
  for (base::Task& end : ended) end();
}

}  // namespace caftan::actors

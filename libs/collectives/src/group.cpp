#include "caftan/collectives/internal/group.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "caftan/base/peer_loss.hpp"
#include "caftan/collectives/internal/group_table.hpp"

namespace caftan::collectives {
namespace {

std::vector<std::string> names_of(const std::vector<Peer>& peers) {
  std::vector<std::string> names;
  for (const Peer& peer : peers) names.push_back(peer.name());
  return names;
}

/// While it lives, calls are made outside of the running code's context, deadline and grad mode.
class Outside {
 public:
  Outside() : swap_(&empty_) {}

 private:
  static Ambient without_grad() {
    Ambient ambient;
    ambient.grad_mode = false;
    if (const Ambient* const around = Ambient::current()) {
      ambient.executor = around->executor;
      ambient.inside_reading_wait = around->inside_reading_wait;
    }
    return ambient;
  }
  Ambient empty_ = without_grad();
  AmbientSwap swap_;
};

Reason reason_of(const Error& error, const std::string& here) {
  return {static_cast<std::uint8_t>(error.code()), error.worker().empty() ? here : error.worker(), error.text()};
}

}  // namespace

Group::Group(std::weak_ptr<rpc::Caller> caller, std::weak_ptr<GroupTable> table, GroupKey key, int rank,
             std::vector<Peer> members)
    : caller_(std::move(caller)),
      table_(std::move(table)),
      key_(std::move(key)),
      rank_(rank),
      peers_(std::move(members)),
      names_(names_of(peers_)),
      exchange_(rank, names_) {}

int Group::rank_of(WorkerId member) const noexcept {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.id() == member; });
  return found == peers_.end() ? -1 : static_cast<int>(found - peers_.begin());
}

Future<std::vector<Tensors>> Group::begin(const Operation& operation, const Tensors& tensors) {
  return begin_elsewhere(operation, tensors, {});
}

Future<std::vector<Tensors>> Group::begin_elsewhere(Operation operation, const Tensors& tensors,
                                                    const std::function<void(std::uint64_t)>& carry) {
  operation.is_elsewhere = static_cast<bool>(carry);
  Promise<std::vector<Tensors>> promise(caller_);
  Future<std::vector<Tensors>> future = promise.future();
  GroupExchange::Actions actions;
  Result<std::uint64_t> number = Error();
  {
    const base::LockGuard in_order(order_);
    {
      const base::LockGuard lock(mutex_);
      number = has_left_ ? Result<std::uint64_t>(Error(Errc::shut_down, "this member has left the group " + key_.name))
                         : exchange_.begin(operation, tensors, actions);
      if (number) open_.emplace(*number, std::move(promise));
    }
    if (number && carry) carry(*number);
  }
  if (!number) promise.set(number.error());
  carry_out(std::move(actions));
  return future;
}

void Group::finish(std::uint64_t operation, Result<std::vector<Tensors>> result) {
  GroupExchange::Actions actions;
  {
    const base::LockGuard lock(mutex_);
    exchange_.finish(operation, std::move(result), actions);
  }
  carry_out(std::move(actions));
}

void Group::fail_soon(const Error& reason) {
  const auto caller = caller_.lock();
  if (!caller) return fail_everywhere(reason);
  base::Executor& executor = caller->executor();
  executor.post_at(executor.clock().now() + std::chrono::seconds(1), [weak = weak_from_this(), reason] {
    if (const auto self = weak.lock()) self->fail_everywhere(reason);
  });
}

std::vector<std::string> Group::awaited(std::uint64_t operation) const {
  std::vector<std::string> names;
  const base::LockGuard lock(mutex_);
  for (const int rank : exchange_.awaited(operation)) names.push_back(names_[static_cast<std::size_t>(rank)]);
  return names;
}

void Group::fail_everywhere(const Error& reason) {
  GroupExchange::Actions actions;
  {
    const base::LockGuard lock(mutex_);
    if (exchange_.failure() || has_left_) return;
    exchange_.fail(reason, actions);
    actions.failure = reason;
  }
  carry_out(std::move(actions));
}

void Group::fail_here(const Error& reason) {
  GroupExchange::Actions actions;
  {
    const base::LockGuard lock(mutex_);
    exchange_.fail(reason, actions);
  }
  carry_out(std::move(actions));
}

void Group::on_lost(WorkerId member) {
  const int rank = rank_of(member);
  if (rank < 0) return;
  const std::string& name = names_[static_cast<std::size_t>(rank)];
  fail_everywhere(Error(Errc::peer_down, name, "member " + name + " of the group " + key_.name + " is lost"));
}

void Group::on_left(WorkerId from, std::uint64_t operations) {
  const int rank = rank_of(from);
  if (rank < 0) return;
  GroupExchange::Actions actions;
  {
    const base::LockGuard lock(mutex_);
    exchange_.on_left(rank, operations, actions);
  }
  carry_out(std::move(actions));
}

void Group::leave() {
  GroupExchange::Actions actions;
  std::uint64_t begun = 0;
  bool report = false;
  {
    const base::LockGuard lock(mutex_);
    if (std::exchange(has_left_, true)) return;
    begun = exchange_.begun();
    report = !exchange_.failure();
    exchange_.fail(Error(Errc::shut_down, "this member has left the group " + key_.name), actions);
  }
  carry_out(std::move(actions));
  if (report) {
    call_others([&](const CallSite& site, const Peer& to) { site.rpc_async(kLeave, to, key_, begun).forget(); });
  }
  if (const auto table = table_.lock()) table->close(key_);
}

void Group::on_failure(std::function<void(const Error&)> failed) {
  std::optional<Error> known;
  {
    const base::LockGuard lock(mutex_);
    known = exchange_.failure();
    if (!known) on_failure_.push_back(std::move(failed));
  }
  if (known) failed(*known);
}

Future<void> Group::receive(WorkerId from, PieceHeader header, Tensors tensors) {
  const int rank = rank_of(from);
  if (rank < 0 || rank == rank_) {
    return make_ready_future<void>(Error(Errc::bad_arguments, "the sender is no member of the group " + key_.name));
  }
  Promise<void> promise(caller_);
  Future<void> future = promise.future();
  GroupExchange::Actions actions;
  {
    const base::LockGuard lock(mutex_);
    const Ticket ticket = next_ticket_++;
    pieces_.emplace(ticket, std::move(promise));
    exchange_.receive(rank, std::move(header), std::move(tensors), ticket, actions);
  }
  carry_out(std::move(actions));
  return future;
}

/// Does what the exchange has decided, without the lock: completing a future may run code of the user.
void Group::carry_out(GroupExchange::Actions&& actions) {
  std::vector<std::pair<Promise<std::vector<Tensors>>, Result<std::vector<Tensors>>>> done;
  std::vector<Promise<void>> taken;
  std::vector<std::function<void(const Error&)>> on_failure;
  std::vector<Promise<wire::Bytes>> waits;
  std::optional<Error> failure;
  {
    const base::LockGuard lock(mutex_);
    failure = exchange_.failure();
    for (auto& one : actions.done) {
      auto found = open_.extract(one.operation);
      if (found) done.emplace_back(std::move(found.mapped()), std::move(one.result));
    }
    for (const Ticket ticket : actions.taken) {
      auto found = pieces_.extract(ticket);
      if (found) taken.push_back(std::move(found.mapped()));
    }
    if (failure) {
      on_failure.swap(on_failure_);
      for (auto& [key, wait] : std::exchange(store_waits_, {})) waits.push_back(std::move(wait));
    }
  }
  for (auto& piece : actions.sends) send(std::move(piece));
  const Result<void> answer = failure ? Result<void>(*failure) : Result<void>();
  for (auto& promise : taken) promise.set(answer);
  if (actions.failure) {
    const auto caller = caller_.lock();
    const Reason reason = reason_of(*actions.failure, caller ? caller->name() : std::string());
    call_others([&](const CallSite& site, const Peer& to) { site.rpc_async(kFail, to, key_, reason).forget(); });
  }
  for (auto& [promise, result] : done) promise.set(std::move(result));
  for (auto& wait : waits) wait.set(*failure);
  for (const auto& failed : on_failure) failed(*failure);
}

void Group::call_others(const std::function<void(const CallSite&, const Peer&)>& call) const {
  const Outside outside;
  const CallSite site(caller_, {.timeout = base::Duration(0), .fail_when_full = true});
  for (std::size_t to = 0; to < peers_.size(); ++to) {
    if (static_cast<int>(to) != rank_) call(site, peers_[to]);
  }
}

void Group::send(GroupExchange::Send&& piece) { send_piece(piece.to, piece.header, piece.tensors, false); }

void Group::send_piece(int to, const PieceHeader& header, const Tensors& tensors, bool may_wait) {
  const Outside outside;
  const CallSite site(caller_, {.timeout = base::Duration(0), .fail_when_full = !may_wait});
  site.rpc_async(kPiece, peers_[static_cast<std::size_t>(to)], key_, header, tensors)
      .then([weak = weak_from_this(), to, header, tensors](Result<void> reply) {
        if (const auto self = weak.lock()) self->on_reply(to, header, tensors, reply);
      })
      .forget();
}

void Group::on_reply(int to, const PieceHeader& header, const Tensors& tensors, const Result<void>& reply) {
  if (reply) {
    GroupExchange::Actions actions;
    {
      const base::LockGuard lock(mutex_);
      exchange_.on_answered(header.operation, to, actions);
    }
    return carry_out(std::move(actions));
  }
  if (reply.error().code() == Errc::overloaded) {
    // There was no room for it: a task may wait until there is.
    if (const auto caller = caller_.lock()) {
      caller->executor().post([weak = weak_from_this(), to, header, tensors] {
        const at::NoGradGuard no_grad;
        if (const auto self = weak.lock()) self->send_piece(to, header, tensors, true);
      });
    }
    return;
  }
  if (is_loss_of_peer(reply.error())) return on_lost(peers_[static_cast<std::size_t>(to)].id());
  {
    const base::LockGuard lock(mutex_);
    if (has_left_) return;
  }
  // The member has left the group, or its worker stops: its message or the end of its session says which (CO-8, CO-9).
  // Neither comes where the worker had left before this group was made.
  if (reply.error().code() == Errc::shut_down) return fail_soon(reply.error());
  fail_everywhere(reply.error());
}

Future<wire::Bytes> Group::store(const std::string& key, const std::vector<wire::Bytes>& value) {
  Promise<wire::Bytes> promise(caller_);
  Future<wire::Bytes> future = promise.future();
  std::vector<Promise<wire::Bytes>> ready;
  wire::Bytes found;
  std::optional<Error> failure;
  {
    const base::LockGuard lock(mutex_);
    failure = exchange_.failure();
    if (!value.empty()) stored_[key] = value.front();
    const auto stored = stored_.find(key);
    if (failure || stored != stored_.end()) {
      if (stored != stored_.end()) found = stored->second;
      const auto [first, last] = store_waits_.equal_range(key);
      for (auto wait = first; wait != last; ++wait) ready.push_back(std::move(wait->second));
      store_waits_.erase(first, last);
      ready.push_back(std::move(promise));
    } else {
      store_waits_.emplace(key, std::move(promise));
    }
  }
  for (auto& wait : ready) wait.set(failure ? Result<wire::Bytes>(*failure) : Result<wire::Bytes>(found));
  return future;
}

Future<wire::Bytes> Group::store_at_root(const std::string& key, const std::vector<wire::Bytes>& value) const {
  const Outside outside;
  return CallSite(caller_, {.timeout = base::Duration(0)}).rpc_async(kStore, peers_.front(), key_, key, value);
}

}  // namespace caftan::collectives

/// `Group`: one member's part in a group at its worker: the exchange under a lock, and the calls that carry its pieces.
/// Users have a `Collectives` that holds it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/collectives/internal/group_exchange.hpp"
#include "caftan/rpc/call_site.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan {
class Worker;
struct CallInfo;
}  // namespace caftan

namespace caftan::collectives {

class GroupTable;

// The functions that members call of each other (docs/protocols/collectives.md, Messages).
inline constexpr RemoteFunction<Future<void>(Worker&, const CallInfo&, const GroupKey&, const PieceHeader&,
                                             const std::vector<at::Tensor>&)>
    kPiece{"caftan.collectives.piece"};
inline constexpr RemoteFunction<Result<void>(Worker&, const CallInfo&, const GroupKey&, std::uint64_t)> kLeave{
    "caftan.collectives.leave"};
inline constexpr RemoteFunction<Result<void>(Worker&, const CallInfo&, const GroupKey&, const Reason&)> kFail{
    "caftan.collectives.fail"};
inline constexpr RemoteFunction<Future<wire::Bytes>(Worker&, const CallInfo&, const GroupKey&, const std::string&,
                                                    const std::vector<wire::Bytes>&)>
    kStore{"caftan.collectives.store"};

/// Threads: any, all methods.
class Group final : public std::enable_shared_from_this<Group> {
 public:
  /// @param members  found by the worker that makes this, by rank
  Group(std::weak_ptr<rpc::Caller> caller, std::weak_ptr<GroupTable> table, GroupKey key, int rank,
        std::vector<Peer> members);

  const GroupKey& key() const noexcept { return key_; }
  int rank() const noexcept { return rank_; }
  const std::vector<std::string>& members() const noexcept { return names_; }

  /// Begins an operation; the future gets the lists of tensors that GroupExchange::Done has.
  Future<std::vector<Tensors>> begin(const Operation& operation, const Tensors& tensors);
  /// As begin, for an operation that is carried elsewhere: `carry` is called with its number if it has begun, in the
  /// order of the numbers; it must complete nothing, since code that waits for that may begin an operation.
  Future<std::vector<Tensors>> begin_elsewhere(Operation operation, const Tensors& tensors,
                                               const std::function<void(std::uint64_t number)>& carry);
  /// An operation that is carried elsewhere has ended.
  void finish(std::uint64_t operation, Result<std::vector<Tensors>> result);
  /// Fails the group at all members after a second, unless something else has by then: what carries the tensors may see
  /// the end of a member before its session does, and cannot name it.
  void fail_soon(const Error& reason);
  /// Returns the members from which nothing has come for an operation that this member waits for.
  std::vector<std::string> awaited(std::uint64_t operation) const;
  /// Fails the group at all members.
  void fail_everywhere(const Error& reason);
  /// Leaves the group: what has not ended fails with shut_down.
  void leave();
  /// Calls `failed` once when the group fails, inside this call if it has.
  void on_failure(std::function<void(const Error&)> failed);

  // What other members send, and what happens to them.
  Future<void> receive(WorkerId from, PieceHeader header, Tensors tensors);
  void on_left(WorkerId from, std::uint64_t operations);
  /// The group has failed at another member, or this worker ends.
  void fail_here(const Error& reason);
  /// Errors: as the end of its last session at this worker.
  void on_lost(WorkerId member);
  /// Returns the value of a key of the rendezvous at rank 0, once it is set. @param value  at most one: to be set
  Future<wire::Bytes> store(const std::string& key, const std::vector<wire::Bytes>& value);
  /// As store, at rank 0, from any member.
  Future<wire::Bytes> store_at_root(const std::string& key, const std::vector<wire::Bytes>& value) const;

 private:
  using Ticket = GroupExchange::Ticket;

  int rank_of(WorkerId member) const noexcept;
  void carry_out(GroupExchange::Actions&& actions);
  void send(GroupExchange::Send&& piece);
  void send_piece(int to, const PieceHeader& header, const Tensors& tensors, bool may_wait);
  void on_reply(int to, const PieceHeader& header, const Tensors& tensors, const Result<void>& reply);
  void call_others(const std::function<void(const CallSite&, const Peer&)>& call) const;

  const std::weak_ptr<rpc::Caller> caller_;
  const std::weak_ptr<GroupTable> table_;
  const GroupKey key_;
  const int rank_;
  const std::vector<Peer> peers_;
  const std::vector<std::string> names_;

  base::Mutex order_;  ///< taken before mutex_
  mutable base::Mutex mutex_;
  GroupExchange exchange_ CAFTAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Promise<std::vector<Tensors>>> open_ CAFTAN_GUARDED_BY(mutex_);
  std::map<Ticket, Promise<void>> pieces_ CAFTAN_GUARDED_BY(mutex_);
  Ticket next_ticket_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void(const Error&)>> on_failure_ CAFTAN_GUARDED_BY(mutex_);
  std::map<std::string, wire::Bytes> stored_ CAFTAN_GUARDED_BY(mutex_);
  std::multimap<std::string, Promise<wire::Bytes>> store_waits_ CAFTAN_GUARDED_BY(mutex_);
  bool has_left_ CAFTAN_GUARDED_BY(mutex_) = false;
};

}  // namespace caftan::collectives

/// The actors of all references of one worker, by id: of the values it owns and of the forks it uses; with what the
/// live listing shows of them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/actors/rref_info.hpp"
#include "caftan/base/mutex.hpp"
#include "rref/rref_messages.hpp"

namespace caftan::actors {

class UserHandle;
class ValueError;

/// Threads: any.
class RRefTable {
 public:
  struct User {
    caf::actor actor;
    std::weak_ptr<UserHandle> handle;
    RRefId rref;
    base::TimePoint born;
    bool is_creators = false;
    bool is_let_go = false;  // the last handle is gone
  };
  struct Actors {
    std::vector<caf::actor> owners;
    std::vector<caf::actor> users;
  };

  // ---- values that this worker owns

  /// @param first  reaches the actor ahead of what any other thread sends it
  void add_owner(RRefId id, caf::actor actor, OwnerEvent first, std::string type, base::TimePoint born);
  bool has_owner(RRefId id) const;
  std::size_t owners() const;
  /// Sends the event to the actor of the value. Returns false if there is no such value. The event stands in the
  /// actor's mailbox before the message that ends the actor.
  bool send_to_owner(RRefId id, OwnerEvent event);
  /// Returns where the handles at the owner learn why the value failed; null if there is no such value.
  std::shared_ptr<const ValueError> value_error(RRefId id);
  void value_known(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value);
  void fork_counted(RRefId id, ForkInfo fork);
  void fork_ended(RRefId id, ForkId fork);
  void remove_owner(RRefId id);

  // ---- forks that this worker uses

  /// Adds a fork with the actor that `spawn` makes, in one step: the end of a session that comes now finds either no
  /// fork or its actor, and the actor cannot end before it is here.
  template <class Spawn>
  void add_user(ForkId fork, User user, const Spawn& spawn) {
    const base::LockGuard lock(mutex_);
    user.actor = spawn();
    users_[fork] = std::move(user);
  }
  bool has_user(ForkId fork) const;
  std::size_t users() const;
  /// Returns null if the fork has ended.
  caf::actor user_actor(ForkId fork) const;
  std::vector<caf::actor> user_actors() const;
  /// Returns null if user code has let the fork go, or it has ended.
  std::shared_ptr<UserHandle> handle_of(ForkId fork) const;
  /// The last handle of the fork is gone. Returns false if the fork's actor has ended before.
  bool let_go(ForkId fork);
  /// Removes the fork and returns its entry. Call `notify_if_empty` when nothing of the fork is in use any more.
  std::optional<User> remove_user(ForkId fork);

  // ---- all

  /// Takes all values out, and returns the actors of all values and forks. A fork stays until its actor has ended.
  Actors clear_owners();
  /// Calls `done` once no value and no fork is left; inside this call if that is so already.
  void when_empty(std::function<void()> done);
  void notify_if_empty();
  /// @param self  the name of this worker
  std::vector<RRefInfo> list(const std::string& self, base::TimePoint now) const;

 private:
  struct Owner {
    caf::actor actor;
    std::string type;
    std::string state = "pending";
    std::shared_ptr<ValueError> error;  // made with the first handle at this worker, or when the value has failed
    base::TimePoint born;
    std::unordered_map<ForkId, ForkInfo> forks;
  };

  mutable base::Mutex mutex_;
  std::unordered_map<RRefId, Owner> owners_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<ForkId, User> users_ CAFTAN_GUARDED_BY(mutex_);
  std::function<void()> empty_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors

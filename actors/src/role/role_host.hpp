/// The role of one worker as others see it: its reference, which peers get by `role_of`, and its end. What the role
/// does is the state of its actor (role_actor.hpp).
#pragma once

#include <any>
#include <condition_variable>
#include <memory>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/actors/role_catalog.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/future.hpp"
#include "role/role_actor.hpp"
#include "role/role_state.hpp"

namespace caftan::actors {

/// Threads: any, all methods.
class RoleHost final : public RolePorts, public std::enable_shared_from_this<RoleHost> {
 public:
  RoleHost(const RoleDefinition& definition, std::any config, std::shared_ptr<RoleState> state)
      : definition_(definition), config_(std::move(config)), state_(std::move(state)) {}

  /// Makes the reference on a worker that was just launched; peers can have it from now on.
  void attach(Worker& worker);
  /// Constructs the object, then runs it if it drives. Precondition: attached, and the worker is ready.
  void begin();
  /// Asks run() to return.
  void request_stop() { state_->stop.request_stop(); }
  /// Waits until run() has returned, or the construction if it does not drive. Returns whether it has.
  bool wait_until_idle(base::TimePoint deadline);
  /// Lets go of the object and ends the actor; before the worker stops.
  void end();

  /// Returns the reference once there is one.
  Future<std::shared_ptr<rpc::RRefHandle>> handle();

  // RolePorts
  base::Executor& executor() override;
  bool set_value(const Result<std::shared_ptr<rpc::HostedObject>>& object) override;
  void report_returned() override;
  void set_idle() override;

 private:
  const RoleDefinition& definition_;
  std::any config_;  // the role's config until `attach` moves it to the actor
  const std::shared_ptr<RoleState> state_;
  Worker* worker_ = nullptr;

  base::Mutex mutex_;
  std::condition_variable idle_changed_;
  bool idle_ CAFTAN_GUARDED_BY(mutex_) = true;
  bool ended_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::shared_ptr<rpc::RRefHandle> handle_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<Promise<std::shared_ptr<rpc::RRefHandle>>> waiting_ CAFTAN_GUARDED_BY(mutex_);
  caf::actor actor_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors

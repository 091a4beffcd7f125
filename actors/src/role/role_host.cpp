#include "role/role_host.hpp"

#include <caf/send.hpp>

#include "role/role_actor.hpp"
#include "worker/worker_core.hpp"

namespace caftan::actors {

Future<std::shared_ptr<rpc::RRefHandle>> role_handle(Worker& worker) {
  const std::shared_ptr<RoleHost>& role = WorkerCore::of(worker).options().role;
  if (role) return role->handle();
  return make_ready_future<std::shared_ptr<rpc::RRefHandle>>(
      Error(Errc::unsupported, worker.name(), "this worker plays no role"));
}

void RoleHost::attach(Worker& worker) {
  worker_ = &worker;
  WorkerCore& core = WorkerCore::of(worker);
  auto handle = core.rref_host().own(core.make_rref_id(), definition_.type);
  {
    const base::LockGuard lock(state_->mutex);
    state_->self = handle;
  }
  std::vector<Promise<std::shared_ptr<rpc::RRefHandle>>> waiting;
  {
    const base::LockGuard lock(mutex_);
    handle_ = handle;
    waiting.swap(waiting_);
    actor_ = core.actor_host().spawn(
        role_actor, std::make_shared<const RoleParts>(
                        RoleParts{shared_from_this(), &definition_, std::move(config_), state_, handle->rref()}));
    core.rref_host().link_value(handle->rref(), actor_);
  }
  for (auto& promise : waiting) promise.set(handle);
}

Future<std::shared_ptr<rpc::RRefHandle>> RoleHost::handle() {
  const base::LockGuard lock(mutex_);
  if (handle_) return make_ready_future<std::shared_ptr<rpc::RRefHandle>>(handle_);
  if (ended_) {
    return make_ready_future<std::shared_ptr<rpc::RRefHandle>>(Error(Errc::shut_down, "this role has ended"));
  }
  return waiting_.emplace_back().future();
}

void RoleHost::begin() {
  const base::LockGuard lock(mutex_);
  if (ended_) return;
  idle_ = false;
  caf::anon_send(actor_, RoleEvent{role_event::Begin{}});
}

base::Executor& RoleHost::executor() { return WorkerCore::of(*worker_).executor(); }

bool RoleHost::set_value(const Result<std::shared_ptr<rpc::HostedObject>>& object) {
  std::shared_ptr<rpc::RRefHandle> handle;
  {
    const base::LockGuard lock(mutex_);
    handle = handle_;
  }
  if (!handle) return false;
  WorkerCore::of(*worker_).rref_host().set_value(handle->rref(), object);
  return true;
}

void RoleHost::report_returned() {
  WorkerCore::of(*worker_).joiner().leaver().report_returned(state_->drivers_elsewhere);
}

void RoleHost::set_idle() {
  const base::LockGuard lock(mutex_);
  idle_ = true;
  idle_changed_.notify_all();
}

bool RoleHost::wait_until_idle(base::TimePoint deadline) {
  base::UniqueLock lock(mutex_);
  return idle_changed_.wait_until(lock.native(), deadline, [this] {
    mutex_.assert_held();
    return idle_;
  });
}

void RoleHost::end() {
  std::shared_ptr<rpc::RRefHandle> handle;
  std::vector<Promise<std::shared_ptr<rpc::RRefHandle>>> waiting;
  {
    const base::LockGuard lock(mutex_);
    ended_ = true;
    waiting.swap(waiting_);
    handle.swap(handle_);
    if (actor_) caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = nullptr;
  }
  for (auto& promise : waiting) promise.set(Error(Errc::shut_down, "this role has ended"));
  const base::LockGuard lock(state_->mutex);
  state_->self.reset();
}

}  // namespace caftan::actors

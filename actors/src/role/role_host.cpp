#include "role/role_host.hpp"

#include <caf/send.hpp>

#include "caftan/rpc/user_code.hpp"
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
    const std::lock_guard lock(state_->mutex);
    state_->self = handle;
  }
  std::vector<Promise<std::shared_ptr<rpc::RRefHandle>>> waiting;
  {
    const std::lock_guard lock(mutex_);
    handle_ = handle;
    waiting.swap(waiting_);
    actor_ = core.actor_host().spawn<RoleActor>(shared_from_this());
    core.rref_host().link_value(handle->rref(), actor_);
  }
  for (auto& promise : waiting) promise.set(handle);
}

Future<std::shared_ptr<rpc::RRefHandle>> RoleHost::handle() {
  const std::lock_guard lock(mutex_);
  if (handle_) return make_ready_future<std::shared_ptr<rpc::RRefHandle>>(handle_);
  if (ended_) {
    return make_ready_future<std::shared_ptr<rpc::RRefHandle>>(Error(Errc::shut_down, "this role has ended"));
  }
  return waiting_.emplace_back().future();
}

void RoleHost::begin() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  idle_ = false;
  caf::anon_send(actor_, RoleEvent{role_event::Begin{}});
}

void RoleHost::construct(caf::actor actor) {
  WorkerCore::of(*worker_).executor().post([self = shared_from_this(), actor = std::move(actor)] {
    auto context = std::make_shared<RoleContext>(self->state_);
    RRefId id;
    {
      const std::lock_guard lock(self->mutex_);
      if (self->handle_) id = self->handle_->rref();
    }
    self->state_->reporter->send(run::Making{});
    auto role = rpc::run_user_code(self->state_->facts.worker, self->definition_.name, [&] {
      return self->definition_.make(context, self->config_, id, WorkerCore::of(*self->worker_).executor());
    });
    caf::anon_send(actor, RoleEvent{role_event::Constructed{
                              std::make_shared<Result<std::shared_ptr<rpc::HostedObject>>>(std::move(role))}});
  });
}

void RoleHost::constructed(Result<std::shared_ptr<rpc::HostedObject>> role, caf::actor actor) {
  std::shared_ptr<rpc::RRefHandle> handle;
  {
    const std::lock_guard lock(mutex_);
    handle = handle_;
  }
  if (!handle) return set_idle();
  WorkerCore::of(*worker_).rref_host().set_value(handle->rref(), role);
  if (!role) {
    state_->log.error("the constructor failed: " + role.error().message());
    state_->reporter->send(run::Failed{role.error().at(state_->facts.worker)});
    return set_idle();
  }
  state_->reporter->send(run::Made{});
  if (!definition_.run) return set_idle();
  WorkerCore::of(*worker_).executor().post([self = shared_from_this(), object = *std::move(role),
                                            actor = std::move(actor)] {
    object->strand().run([self, object, actor] {
      auto outcome = rpc::run_user_code(self->state_->facts.worker, self->definition_.name + ".run",
                                        [&] { return self->definition_.run(*object, self->state_->stop.get_token()); });
      caf::anon_send(actor, RoleEvent{role_event::Returned{std::make_shared<Result<void>>(std::move(outcome))}});
    });
  });
}

void RoleHost::returned(Result<void> outcome) {
  if (!outcome) state_->log.error("run() returned an error: " + outcome.error().message());
  state_->reporter->send(run::Returned{outcome ? Error() : outcome.error().at(state_->facts.worker)});
  set_idle();
}

void RoleHost::set_idle() {
  const std::lock_guard lock(mutex_);
  idle_ = true;
  idle_changed_.notify_all();
}

bool RoleHost::wait_until_idle(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  return idle_changed_.wait_until(lock, deadline, [this] { return idle_; });
}

void RoleHost::end() {
  std::shared_ptr<rpc::RRefHandle> handle;
  std::vector<Promise<std::shared_ptr<rpc::RRefHandle>>> waiting;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    waiting.swap(waiting_);
    handle.swap(handle_);
    if (actor_) caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = nullptr;
  }
  for (auto& promise : waiting) promise.set(Error(Errc::shut_down, "this role has ended"));
  const std::lock_guard lock(state_->mutex);
  state_->self.reset();
}

}  // namespace caftan::actors

#include "rref/rref_handles.hpp"

#include <caf/send.hpp>

#include "rref/rref_host.hpp"

namespace caftan::actors {

HandleBase::HandleBase(RRefHost& host, std::weak_ptr<rpc::Caller> caller, rpc::SharedRRef shared, Peer owner,
                       bool confirmed)
    : host_(host),
      caller_(std::move(caller)),
      shared_(std::move(shared)),
      owner_(std::move(owner)),
      has_outcome_(confirmed) {}

bool HandleBase::confirmed_by_owner() const noexcept {
  const base::LockGuard lock(mutex_);
  return has_outcome_ && !error_;
}

std::optional<Error> HandleBase::refused() const {
  const base::LockGuard lock(mutex_);
  return error_;
}

void HandleBase::confirm(Result<void> outcome) {
  std::vector<std::function<void()>> waiters;
  {
    const base::LockGuard lock(mutex_);
    if (!outcome && !error_) error_ = outcome.error();
    has_outcome_ = true;
    waiters.swap(waiters_);
  }
  for (const auto& waiter : waiters) waiter();
}

bool HandleBase::has_outcome_or(std::function<void()> waiter) {
  const base::LockGuard lock(mutex_);
  if (has_outcome_) return true;
  waiters_.push_back(std::move(waiter));
  return false;
}

UserHandle::~UserHandle() {
  if (const auto alive = caller(); alive && actor_) {
    host_.handle_let_go(fork());
    caf::anon_send(actor_, UserEvent{user_event::HandleDropped{}});
  }
}

std::optional<rpc::PeerSession> UserHandle::owner_session() const {
  const base::LockGuard lock(mutex_);
  return session_;
}

void UserHandle::bind(const rpc::PeerSession& session) {
  const base::LockGuard lock(mutex_);
  session_ = session;
}

Future<void> UserHandle::created() {
  if (!shared().is_creators()) {
    return make_ready_future<void>(Error(
        Errc::unsupported, "RRef " + to_string(rref()) + " came from another worker: only its creator and its owner, " +
                               owner().name() + ", learn of its creation"));
  }
  auto promise = std::make_shared<Promise<void>>(caller_);
  Future<void> created = promise->future();
  const auto resolve = [promise, self = shared_from_this()] {
    const rpc::NoUserCode reading;  // an actor confirms the handle: continuations must not run on its thread
    const auto error = self->refused();
    promise->set(error ? Result<void>(*error) : Result<void>());
  };
  if (has_outcome_or(resolve)) resolve();
  return created;
}

Future<std::shared_ptr<rpc::HostedObject>> UserHandle::local_value() {
  Promise<std::shared_ptr<rpc::HostedObject>> promise(caller_);
  auto future = promise.future();
  const auto alive = caller();
  promise.set(Error(Errc::not_owner, alive ? alive->name() : std::string(),
                    "RRef " + to_string(rref()) + " (fork " + to_string(fork()) + ") is owned by " + owner().name() +
                        ": only there is local_value() possible, use to_here()"));
  return future;
}

OwnerHandle::~OwnerHandle() {
  if (const auto alive = caller())
    host_.table().send_to_owner(rref(), OwnerEvent{owner_event::Released{rpc::Use::hold}});
}

std::optional<Error> OwnerHandle::failed() const {
  if (auto refused = this->refused()) return refused;
  return value_error_ ? value_error_->get() : std::nullopt;
}

Future<void> OwnerHandle::created() {
  return local_value().then([](const Result<std::shared_ptr<rpc::HostedObject>>& value) -> Result<void> {
    if (!value) return value.error();
    return {};
  });
}

namespace {

/// Takes the value out to a future, for local_value().
class TakeValue final : public ValueJob {
 public:
  TakeValue(std::weak_ptr<rpc::Caller> caller, const WorkerLife& life) : promise_(std::move(caller)), life_(life) {}
  Future<std::shared_ptr<rpc::HostedObject>> future() { return promise_.future(); }
  rpc::Use use() const noexcept override { return rpc::Use::fetch; }
  WorkerLife caller() const noexcept override { return life_; }
  void run(Result<std::shared_ptr<rpc::HostedObject>> value, base::Task done) override {
    promise_.set(std::move(value));
    done();
  }

 private:
  Promise<std::shared_ptr<rpc::HostedObject>> promise_;
  WorkerLife life_;  // of the worker that owns the value
};

}  // namespace

Future<std::shared_ptr<rpc::HostedObject>> OwnerHandle::local_value() {
  if (const auto alive = caller()) {
    auto job = std::make_shared<TakeValue>(caller_, host_.life());
    auto future = job->future();
    host_.with_value(rref(), std::move(job));
    return future;
  }
  return make_ready_future<std::shared_ptr<rpc::HostedObject>>(
      Error(Errc::shut_down, "the worker of this RRef has ended"));
}

}  // namespace caftan::actors

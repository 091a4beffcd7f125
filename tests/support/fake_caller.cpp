#include "fake_caller.hpp"

#include <algorithm>
#include <cstring>

#include "caftan/rpc/call_hook.hpp"

namespace caftan {
Worker::Worker(test::FakeCaller& fake) : CallSite(fake.weak_from_this()), fake_(fake) {}
const std::string& Worker::name() const { return fake_.name(); }
}  // namespace caftan

namespace caftan::test {

namespace {

class FakePeer final : public rpc::PeerRecord {
 public:
  FakePeer(WorkerId id, std::string name) : id_(id), name_(std::move(name)) {}
  WorkerId id() const noexcept override { return id_; }
  const std::string& name() const noexcept override { return name_; }

 private:
  const WorkerId id_;
  const std::string name_;
};

class FakeHandle final : public rpc::RRefHandle {
 public:
  FakeHandle(std::shared_ptr<FakeValue> value, FakeCaller& caller, std::uint64_t fork)
      : value_(std::move(value)), caller_(caller.weak_from_this()), here_(caller.peer()), fork_(fork) {}

  RRefId rref() const noexcept override { return value_->id; }
  ForkId fork() const noexcept override { return is_owner() ? ForkId() : ForkId{here_.id(), {1}, fork_}; }
  const Peer& owner() const noexcept override { return value_->owner; }
  rpc::TypeKey type() const noexcept override { return value_->type; }
  bool is_owner() const noexcept override { return here_.id() == value_->owner.id(); }
  bool confirmed_by_owner() const noexcept override { return true; }
  std::optional<Error> failed() const override {
    if (value_->outcome && !*value_->outcome) return value_->outcome->error();
    return std::nullopt;
  }
  Future<void> created() override {
    return value_->get(caller_).then([](Result<std::shared_ptr<rpc::HostedObject>> value) -> Result<void> {
      if (!value) return value.error();
      return {};
    });
  }
  Future<std::shared_ptr<rpc::HostedObject>> local_value() override {
    if (is_owner()) return value_->get(caller_);
    return make_ready_future<std::shared_ptr<rpc::HostedObject>>(
        Error(Errc::not_owner, "RRef " + to_string(rref()) + ", fork " + to_string(fork()) + ": " + here_.name() +
                                   " is not its owner, " + value_->owner.name() + " is"));
  }
  std::shared_ptr<rpc::Caller> caller() const noexcept override { return caller_.lock(); }
  const std::shared_ptr<FakeValue>& value() const { return value_; }

 private:
  std::shared_ptr<FakeValue> value_;
  std::weak_ptr<rpc::Caller> caller_;
  Peer here_;
  std::uint64_t fork_;
};

}  // namespace

class FakeResponder final : public rpc::ResponderSink {
 public:
  FakeResponder(FakeCaller& callee, FakeCaller& caller, std::uint64_t call)
      : callee_(callee.weak_from_this()), caller_(caller.weak_from_this()), call_(call) {}
  void answer(Result<rpc::OutReply>&& reply) noexcept override {
    const auto callee = std::static_pointer_cast<FakeCaller>(callee_.lock());
    const auto caller = std::static_pointer_cast<FakeCaller>(caller_.lock());
    if (!callee || !caller) return;
    callee->serving_.erase({caller->id(), call_});
    Result<rpc::InPayload> arrived = Error();
    if (reply) {
      arrived = callee->carry(*caller, std::move(reply->body), std::move(reply->tensors), reply->rrefs,
                              reply->of_object ? tensor::SharedMemory::copy : tensor::SharedMemory::reference);
    } else {
      arrived = reply.error();
    }
    if (arrived && caller->tamper_reply_) caller->tamper_reply_(*arrived);
    callee->executor().post(
        [caller, call = call_, arrived = std::move(arrived)]() mutable { caller->finish(call, std::move(arrived)); });
  }

 private:
  std::weak_ptr<rpc::Caller> callee_;
  std::weak_ptr<rpc::Caller> caller_;
  std::uint64_t call_;
};

void FakeValue::set(Result<std::shared_ptr<rpc::HostedObject>> result) {
  outcome = std::move(result);
  while (!waiting.empty()) {
    auto promise = std::move(waiting.front());
    waiting.pop_front();
    promise.set(*outcome);
  }
}

Future<std::shared_ptr<rpc::HostedObject>> FakeValue::get(const std::weak_ptr<rpc::Caller>& caller) {
  Promise<std::shared_ptr<rpc::HostedObject>> promise(caller);
  auto future = promise.future();
  if (outcome) {
    promise.set(*outcome);
  } else {
    waiting.push_back(std::move(promise));
  }
  return future;
}

FakeCaller::FakeCaller(FakeJob& job, WorkerId id, std::string name, Registry registry)
    : job_(job),
      id_(id),
      name_(std::move(name)),
      registry_(std::move(registry)),
      dispatcher_(*this),
      peer_(std::make_shared<FakePeer>(id, name_)) {}

base::Executor& FakeCaller::executor() noexcept { return job_.executor; }

Result<Peer> FakeCaller::find_peer(std::string_view name) {
  for (const auto& worker : job_.workers_) {
    if (worker && worker->name() == name) return worker->peer_;
  }
  return Error(Errc::unknown_worker, "no worker is called " + std::string(name));
}

Result<Peer> FakeCaller::find_peer(WorkerId id) {
  if (id.value < job_.workers_.size() && job_.workers_[id.value]) return job_.workers_[id.value]->peer_;
  return Error(Errc::unknown_worker, "no worker has the number " + std::to_string(id.value));
}

bool FakeCaller::knows(const rpc::PeerRecord& peer) const noexcept {
  return std::any_of(job_.workers_.begin(), job_.workers_.end(),
                     [&](const auto& worker) { return worker && worker->peer_.record().get() == &peer; });
}

Result<rpc::InPayload> FakeCaller::carry(FakeCaller& to, wire::Bytes body, std::vector<at::Tensor> tensors,
                                         const rpc::RRefHandles& rrefs, tensor::SharedMemory shared) {
  rpc::InPayload payload;
  auto owned = std::make_shared<wire::Bytes>(std::move(body));
  payload.body = *owned;
  payload.owner = std::move(owned);
  Result<tensor::EncodedTensors> encoded = tensor::encode_tensors(tensors, {}, shared);
  if (!encoded) return encoded.error();
  Result<tensor::TensorLayout> layout = tensor::TensorLayout::parse(encoded->table, {});
  if (!layout) return layout.error();
  wire::BlockPool pool;
  std::vector<wire::Block> blocks;
  for (const wire::Segment& segment : encoded->segments) {
    Result<wire::Block> block = pool.take(segment.size);
    if (!block) return block.error();
    if (segment.size > 0) std::memcpy(block->data(), segment.data, segment.size);
    blocks.push_back(*std::move(block));
  }
  auto decoded = layout->build(std::move(blocks));
  if (!decoded) return decoded.error();
  for (tensor::DecodedTensor& tensor : *decoded) payload.tensors.push_back(std::move(tensor.tensor));
  for (const auto& handle : rrefs) {
    const auto& value = static_cast<FakeHandle&>(*handle).value();
    payload.rrefs.push_back(std::make_shared<FakeHandle>(value, to, ++last_rref_));
  }
  return payload;
}

rpc::CallToken FakeCaller::submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions&,
                                  std::shared_ptr<rpc::ReplySink> sink) {
  if (tamper_) tamper_(request);
  const std::shared_ptr<FakeCaller> to = job_.workers_[peer.id().value];
  const wire::ByteView body = request.whole_body();
  Result<rpc::InPayload> arrived =
      to && !to->down_ && !down_ ? carry(*to, wire::Bytes(body.begin(), body.end()), request.tensors, request.rrefs)
                                 : Result<rpc::InPayload>(Error(Errc::peer_down, peer.name(), "it is down"));
  if (!arrived) {
    if (hook_) hook_->on_unsent({request.hook_ticket});
    sink->on_reply(arrived.error());
    return {};
  }
  const std::uint64_t call = ++last_call_;
  pending_[call] = {std::move(sink), request.keep, request.hook_ticket, peer.id()};
  if (request.deadline != base::kNever) {
    job_.executor.post_at(request.deadline, [self = weak_from_this(), call, what = std::string(request.what)] {
      const auto alive = std::static_pointer_cast<FakeCaller>(self.lock());
      if (alive) alive->finish(call, Error(Errc::timeout, what + ": no answer in time"));
    });
  }
  CallInfo info;
  info.caller = peer_;
  info.call = {call};
  info.deadline = request.deadline;
  info.trace = request.trace;
  info.grad_mode = request.grad_mode;
  wire::Bytes chain;
  rpc::encode_held(request.held, chain);
  info.held = *rpc::decode_held(chain);
  const auto cancel = std::make_shared<CancelFlag>();
  info.cancel = cancel;
  to->serving_[{id_, call}] = cancel;
  last_ = std::move(request);
  job_.executor.post([self = std::static_pointer_cast<FakeCaller>(shared_from_this()), to, kind = last_.kind,
                      target = last_.target, payload = *std::move(arrived), info = std::move(info)]() mutable {
    to->serve(*self, kind, target, std::move(payload), std::move(info));
  });
  return {{call}, peer.id(), 1};
}

Result<void> FakeCaller::tell(const Peer& peer, rpc::OutRequest&& request, const CallOptions&) {
  const std::shared_ptr<FakeCaller> to = job_.workers_[peer.id().value];
  if (!to || to->down_ || down_) return Error(Errc::peer_down, peer.name(), "it is down");
  const wire::ByteView body = request.whole_body();
  auto arrived = carry(*to, wire::Bytes(body.begin(), body.end()), request.tensors, request.rrefs);
  if (!arrived) return arrived.error();
  CallInfo info;
  info.caller = peer_;
  info.grad_mode = request.grad_mode;
  last_ = std::move(request);
  job_.executor.post([self = std::static_pointer_cast<FakeCaller>(shared_from_this()), to, kind = last_.kind,
                      target = last_.target, payload = *std::move(arrived), info = std::move(info)]() mutable {
    to->serve(*self, kind, target, std::move(payload), std::move(info));
  });
  return {};
}

Future<rpc::Contributions> FakeCaller::gather(rpc::GatherRequest&&, const CallOptions&) {
  return make_ready_future<rpc::Contributions>(Error(Errc::unsupported, name_, "a fake job has no rounds"));
}

void FakeCaller::serve(FakeCaller& from, wire::FrameKind kind, RRefId target, rpc::InPayload payload, CallInfo info) {
  rpc::Responder responder(std::make_shared<FakeResponder>(*this, from, info.call.value));
  if (down_) return;
  if (kind == wire::FrameKind::call) {
    return dispatcher_.call(std::move(payload), std::move(info), std::move(responder));
  }
  if (kind == wire::FrameKind::op) return dispatcher_.op(std::move(payload), std::move(info), std::move(responder));
  const auto value = job_.values[target].lock();
  if (!value) return responder.fail(Error(Errc::rref_deleted, name_, "no value " + to_string(target)));
  value->get(weak_from_this())
      .then([this, kind, payload = std::move(payload), info = std::move(info),
             responder = std::move(responder)](Result<std::shared_ptr<rpc::HostedObject>> object) mutable {
        if (!object) return responder.fail(object.error());
        if (kind == wire::FrameKind::fetch) {
          dispatcher_.fetch(*std::move(object), std::move(payload), std::move(info), std::move(responder));
        } else {
          dispatcher_.method(*std::move(object), std::move(payload), std::move(info), std::move(responder));
        }
      })
      .forget();
}

void FakeCaller::finish(std::uint64_t call, Result<rpc::InPayload> reply) {
  auto found = pending_.extract(call);
  if (!found) return;
  Pending& pending = found.mapped();
  if (hook_ && reply) {
    const Result<void> received = hook_->on_reply_received({pending.hook_ticket}, *reply);
    if (!received) reply = received.error();
  } else if (hook_) {
    hook_->on_reply_dropped({pending.hook_ticket}, reply.error());
  }
  pending.sink->on_reply(std::move(reply));
}

void FakeCaller::cancel(const rpc::CallToken& token) noexcept {
  const auto found = pending_.find(token.call.value);
  if (found == pending_.end()) return;
  if (const auto& to = job_.workers_[found->second.to.value]) {
    const auto serving = to->serving_.find({id_, token.call.value});
    if (serving != to->serving_.end()) serving->second->set();
  }
  finish(token.call.value, Error(Errc::cancelled, "cancelled by the caller"));
}

Result<std::shared_ptr<rpc::RRefHandle>> FakeCaller::create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                                   const CallOptions&, rpc::TypeKey type) {
  auto value = std::make_shared<FakeValue>();
  value->id = make_rref_id();
  value->owner = peer;
  value->type = type;
  job_.values[value->id] = value;
  const std::shared_ptr<FakeCaller> to = job_.workers_[peer.id().value];
  Result<rpc::InPayload> arrived = carry(*to, std::move(request.body), std::move(request.tensors), request.rrefs);
  if (!arrived) return arrived.error();
  CallInfo info;
  info.caller = peer_;
  info.deadline = request.deadline;
  info.held = request.held;
  info.grad_mode = request.grad_mode;
  const auto ticket = request.hook_ticket;
  auto self = std::static_pointer_cast<FakeCaller>(shared_from_this());
  const auto create = [self, to, value, ticket](std::shared_ptr<rpc::HostedObject> object, rpc::InPayload payload,
                                                CallInfo info) {
    to->dispatcher_.create(std::move(object), std::move(payload), std::move(info), value->id)
        .then([self, value, ticket](Result<std::shared_ptr<rpc::HostedObject>> made) {
          value->set(made);
          if (!self->hook_) return;
          rpc::InPayload empty;
          if (made) {
            (void)self->hook_->on_reply_received({ticket}, empty);
          } else {
            self->hook_->on_reply_dropped({ticket}, made.error());
          }
        })
        .forget();
  };
  job_.executor.post([this, self, to, create, value, target = request.target, payload = *std::move(arrived),
                      info = std::move(info)]() mutable {
    if (!target) return create(nullptr, std::move(payload), std::move(info));
    const auto object = job_.values[target].lock();
    if (!object) return value->set(Error(Errc::rref_deleted, "no value " + to_string(target)));
    object->get(weak_from_this())
        .then([create, value, payload = std::move(payload),
               info = std::move(info)](Result<std::shared_ptr<rpc::HostedObject>> on) mutable {
          if (!on) return value->set(on.error());
          create(*std::move(on), std::move(payload), std::move(info));
        })
        .forget();
  });
  return std::shared_ptr<rpc::RRefHandle>(std::make_shared<FakeHandle>(std::move(value), *this, ++last_rref_));
}

Result<std::shared_ptr<rpc::RRefHandle>> FakeCaller::create_local(std::shared_ptr<rpc::HostedObject> object) {
  auto value = std::make_shared<FakeValue>();
  value->id = object->id();
  value->owner = peer_;
  value->type = object->type().key;
  value->set(std::move(object));
  job_.values[value->id] = value;
  return std::shared_ptr<rpc::RRefHandle>(std::make_shared<FakeHandle>(std::move(value), *this, ++last_rref_));
}

void FakeCaller::on_unobserved_error(std::string_view what, const Error& error) noexcept {
  unobserved_.push_back(std::string(what) + ": " + std::string(to_string(error.code())));
}

void FakeCaller::go_down() {
  down_ = true;
  for (const auto& worker : job_.workers_) {
    if (!worker) continue;
    std::vector<std::uint64_t> lost;
    for (const auto& [call, pending] : worker->pending_) {
      if (worker.get() == this || pending.to == id_) lost.push_back(call);
    }
    for (const std::uint64_t call : lost) worker->finish(call, Error(Errc::peer_down, name_, "it is down"));
    if (worker->hook_) worker->hook_->on_peer_down({id_, {1}});
  }
}

FakeCaller& FakeJob::add(Registry registry) {
  const WorkerId id{static_cast<std::uint32_t>(workers_.size())};
  registry.freeze().value();
  auto worker = std::make_shared<FakeCaller>(*this, id, "worker" + std::to_string(id.value), std::move(registry));
  worker->make_worker();
  workers_.push_back(std::move(worker));
  return *workers_.back();
}

FakeJob::~FakeJob() { executor.advance(std::chrono::hours(24)); }

}  // namespace caftan::test

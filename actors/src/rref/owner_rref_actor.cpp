#include "rref/owner_rref_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "caftan/base/internal/overloaded.hpp"

namespace caftan::actors {

caf::behavior owner_rref_actor(OwnerRRefActor* self, OwnerRRefPorts* ports, RRefId id) {
  self->set_down_handler([self](const caf::down_msg& down) { self->state.on_down(down); });
  self->state.set_ports(*ports, id);
  return {[self](OwnerEvent& event) { self->state.on_event(event); }};
}

OwnerRRefState::~OwnerRRefState() {
  if (!ports_) return;
  const Error ended =
      ports_->leaving().value_or(Error(Errc::rref_deleted, "the actor of RRef " + to_string(id_) + " has ended"));
  ports_->owner_ending(id_);
  refuse_waiting(ended);
}

void OwnerRRefState::set_ports(OwnerRRefPorts& ports, RRefId id) {
  ports_ = &ports;
  id_ = id;
  if (const auto owner = ports.guarded_by()) table_.guard(*owner);
}

void OwnerRRefState::on_event(OwnerEvent& event) {
  using namespace owner_event;
  std::visit(base::Overloaded{
                 [this](CreatedBy& e) { perform(table_.created_by(e.fork, e.session), e.proxy); },
                 [this](CreatedHere&) { table_.created_here(); },
                 [this](ValueSet& e) { set_value(std::move(*e.value)); },
                 [this](ValueActor& e) { self_->link_to(e.actor); },
                 [this](HandedOver& e) { perform(table_.handed_over(e.fork, e.session), e.proxy); },
                 [this](NotHandedOver& e) { perform(table_.down(e.fork, e.session)); },
                 [this](PassedBack& e) {
                   auto held = table_.passed_back(e.fork, e.parent, e.session);
                   if (held) perform(std::move(*held));
                   e.reply(held ? Result<void>() : Result<void>(held.error()));
                 },
                 [this](Requested& e) {
                   perform(table_.requested(e.request.fork, e.request.parent, e.request.session), e.proxy);
                 },
                 [this](Job& e) { accept(std::move(e.job)); },
                 [this](Released& e) { perform(table_.released(e.use)); },
                 [this](Finish& e) {
                   // What waits for a value that will not come is answered before the actor goes.
                   refuse_waiting(e.reason);
                   // Not a normal exit, so that actors linked to this one end, too (L2).
                   self_->quit(caf::exit_reason::user_shutdown);
                 },
             },
             event.event);
}

void OwnerRRefState::on_down(const caf::down_msg& down) {
  const auto fork = by_proxy_.find(down.source.id());
  if (fork == by_proxy_.end()) return;  // the down of a fork that is not watched any more
  const ForkId id = fork->second;
  by_proxy_.erase(fork);
  const auto watched = watched_.find(id);
  const rpc::PeerSession session = watched->second.session;
  watched_.erase(watched);
  ports_->fork_ended(id_, id);
  perform(table_.down(id, session));
}

void OwnerRRefState::perform(rpc::OwnerActions actions, const caf::strong_actor_ptr& known) {
  for (rpc::OwnerAction& action : actions) {
    std::visit(base::Overloaded{
                   [this, &known](rpc::MonitorFork& a) {
                     auto proxy = known ? known : ports_->fork_proxy(a.fork, a.session);
                     by_proxy_[proxy->id()] = a.fork;
                     ports_->fork_counted(id_, {a.fork, a.session.peer.id, proxy->id()});
                     self_->monitor(caf::actor_cast<caf::actor>(proxy));
                     watched_[a.fork] = Watched{a.session, std::move(proxy)};
                   },
                   [this](rpc::DemonitorFork& a) {
                     const auto watched = watched_.find(a.fork);
                     if (watched == watched_.end()) return;
                     self_->demonitor(caf::actor_cast<caf::actor_addr>(watched->second.proxy));
                     by_proxy_.erase(watched->second.proxy->id());
                     watched_.erase(watched);
                     ports_->fork_ended(id_, a.fork);
                   },
                   [this](rpc::AnswerFork& a) { ports_->answer_fork(a.fork, a.session, a.code); },
                   [this](rpc::EndValue&) {
                     // No lookup finds this actor from now on; what was sent before comes ahead of Finish.
                     ports_->owner_ending(id_);
                     self_->send(self_, OwnerEvent{owner_event::Finish{Error(
                                            Errc::rref_deleted, "the value of RRef " + to_string(id_) + " is gone")}});
                   },
               },
               action);
  }
}

void OwnerRRefState::set_value(Result<std::shared_ptr<rpc::HostedObject>> value) {
  if (value_) return;
  value_ = std::move(value);
  ports_->value_known(id_, *value_);
  for (const auto& job : std::exchange(waiting_, {})) start(job);
  perform(table_.creation_finished());
}

void OwnerRRefState::accept(std::shared_ptr<ValueJob> job) {
  if (const auto allowed = table_.may_use(job->caller()); !allowed) return job->run(allowed.error(), [] {});
  if (const auto acquired = table_.acquired(job->use()); !acquired) {
    job->run(acquired.error(), [] {});
    return;
  }
  if (value_) {
    start(job);
  } else {
    waiting_.push_back(std::move(job));
  }
}

void OwnerRRefState::refuse_waiting(const Error& reason) {
  for (const auto& job : std::exchange(waiting_, {})) job->run(reason, [] {});
}

/// Hands the value to the job on a runner: the job may run user code for as long as it likes.
void OwnerRRefState::start(const std::shared_ptr<ValueJob>& job) {
  const auto done = [self = caf::actor_cast<caf::actor>(self_), use = job->use()] {
    caf::anon_send(self, OwnerEvent{owner_event::Released{use}});
  };
  if (*value_) {
    if (!ordered_ && job->keeps_order()) ordered_ = std::make_shared<OrderedJobs>(ports_->executor(), **value_);
    if (ordered_ && ordered_->push(job, base::Task(done))) return;
    ports_->executor().post([job, object = **value_, done]() mutable { job->run(std::move(object), done); });
  } else {
    ports_->executor().post([job, error = value_->error(), done]() mutable { job->run(std::move(error), done); });
  }
}

}  // namespace caftan::actors

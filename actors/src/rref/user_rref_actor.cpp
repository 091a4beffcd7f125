#include "rref/user_rref_actor.hpp"

#include <caf/actor_cast.hpp>

#include "caftan/base/internal/overloaded.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

caf::behavior user_rref_actor(UserRRefActor* self, UserRRefPorts* ports, rpc::UserFork fork,
                              const ForkRequested& request, const WorkerLife& owner, caf::strong_actor_ptr parent) {
  self->set_exit_handler([self](const caf::exit_msg& exit) { self->state.on_exit_message(exit); });
  self->state.start(*ports, std::move(fork), request, owner, std::move(parent));
  return {
      [self](UserEvent& event) { self->state.on_event(event); },
      [self](const ForkAnswered& reply) { self->state.on_reply(reply); },
      [self](const ForkAccepted& accepted) { self->state.on_accepted(accepted); },
  };
}

UserRRefState::~UserRRefState() {
  if (!fork_) return;
  ports_->user_confirmed(fork_->id(), Error(Errc::rref_deleted, "the actor of the reference has ended"));
  ports_->user_ending(fork_->id());
}

void UserRRefState::start(UserRRefPorts& ports, rpc::UserFork fork, const ForkRequested& request,
                          const WorkerLife& owner, caf::strong_actor_ptr parent) {
  ports_ = &ports;
  fork_ = std::move(fork);
  request_ = request;
  owner_ = owner;
  parent_ = std::move(parent);
  if (parent_) remote::ActorExchange::link_silently(*self_, parent_);
  perform(fork_->start());
}

void UserRRefState::on_reply(const ForkAnswered& reply) {
  perform(fork_->answered(reply.code == Errc::ok ? Result<void>()
                                                 : Result<void>(Error(reply.code, "the owner refused the reference"))));
}

void UserRRefState::on_accepted(const ForkAccepted& accepted) {
  const auto child = children_.find(accepted.child);
  if (child != children_.end()) perform(fork_->child_accepted(accepted.child, child->second.first));
}

void UserRRefState::on_event(UserEvent& event) {
  using namespace user_event;
  std::visit(base::Overloaded{
                 [this](CreationAnswered& e) { perform(fork_->creation_answered(*e.reply)); },
                 [this](ChildHandedOver& e) { perform(fork_->child_handed_over(e.child, e.session), e.proxy); },
                 [this](ChildNotHandedOver& e) { perform(fork_->child_exited(e.child, e.session)); },
                 [this](OwnerLost& e) {
                   perform(fork_->owner_lost(e.session));
                   // Handles that were usable until now report it too (RR-10).
                   if (const auto usable = fork_->may_use(); fork_->state() == rpc::UserFork::State::failed) {
                     ports_->user_confirmed(fork_->id(), usable);
                   }
                 },
                 [this](SessionOpened&) {
                   if (fork_->state() == rpc::UserFork::State::awaiting && !fork_->owner()) request_fork();
                 },
                 [this](Deadline&) { perform(fork_->deadline()); },
                 [this](HandleDropped&) { perform(fork_->handle_dropped()); },
                 [this](Finish& e) {
                   ports_->user_confirmed(fork_->id(), e.reason);
                   self_->quit();
                 },
             },
             event.event);
}

void UserRRefState::on_exit_message(const caf::exit_msg& exit) {
  if (parent_ && exit.source.id() == parent_->id()) {
    parent_ = nullptr;
    fork_->parent_exited();
    return;
  }
  for (const auto& [child, link] : children_) {
    if (link.second->id() != exit.source.id()) continue;
    const ForkId id = child;
    const rpc::PeerSession session = link.first;
    children_.erase(id);
    perform(fork_->child_exited(id, session));
    return;
  }
  // An exit that names the actor itself as its source was sent by hand, and ends exactly this fork. All other exits are
  // ignored: that of a parent or child which was unlinked before its exit arrived, or that of an actor which must not
  // end this fork.
  if (exit.source == self_->address()) self_->quit(exit.reason);
}

void UserRRefState::request_fork() {
  // Read before the request is sent: if the owner's session comes in between, send_fork_request finds it.
  const bool start_is_over = ports_->start_is_over();
  const auto self = caf::actor_cast<caf::strong_actor_ptr>(self_);
  if (const auto session = ports_->send_fork_request(self, request_, owner_)) return fork_->request_sent(*session);
  // While this worker starts, the owner's session may still come (SessionOpened). After the start a missing session is
  // lost for good, so there is nothing to wait for (RR-11).
  if (start_is_over) perform(fork_->deadline());
}

void UserRRefState::perform(rpc::UserActions actions, const caf::strong_actor_ptr& known) {
  for (rpc::UserAction& action : actions) {
    std::visit(base::Overloaded{
                   [this](rpc::SendForkRequest&) { request_fork(); },
                   [this](rpc::SendAccept& a) {
                     if (!parent_) return;
                     self_->send(caf::actor_cast<caf::actor>(parent_), ForkAccepted{a.fork});
                     remote::ActorExchange::unlink_silently(*self_, parent_);
                     parent_ = nullptr;
                   },
                   [this, &known](rpc::LinkChild& a) {
                     children_[a.child] = {a.session, known};
                     remote::ActorExchange::link_silently(*self_, known);
                   },
                   [this](rpc::UnlinkChild& a) {
                     const auto child = children_.find(a.child);
                     if (child == children_.end()) return;
                     remote::ActorExchange::unlink_silently(*self_, child->second.second);
                     children_.erase(child);
                   },
                   [this](rpc::ForkConfirmed&) { ports_->user_confirmed(fork_->id(), {}); },
                   [this](rpc::ForkRefused& a) { ports_->user_confirmed(fork_->id(), a.error); },
                   [this](rpc::EndFork&) { self_->quit(); },
               },
               action);
  }
}

}  // namespace caftan::actors

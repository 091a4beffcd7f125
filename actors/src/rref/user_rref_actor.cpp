#include "rref/user_rref_actor.hpp"

#include "caftan/base/overloaded.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"
#include "rref/rref_host.hpp"

namespace caftan::actors {

UserRRefActor::UserRRefActor(caf::actor_config& config, RRefHost& host, rpc::UserFork fork, ForkRequested request,
                             WorkerLife owner, caf::strong_actor_ptr parent)
    : caf::event_based_actor(config),
      host_(host),
      fork_(std::move(fork)),
      request_(request),
      owner_(owner),
      parent_(std::move(parent)) {
  set_exit_handler([this](const caf::exit_msg& exit) { on_exit_message(exit); });
}

void UserRRefActor::on_exit() {
  // Runs however the actor ends, also by `kill`, which no handler sees: what waits for it or counts it must learn it.
  host_.user_confirmed(fork_.id(), Error(Errc::rref_deleted, "the actor of the reference has ended"));
  host_.user_ending(fork_.id());
}

caf::behavior UserRRefActor::make_behavior() {
  if (parent_) remote::ActorExchange::link_silently(*this, parent_);
  perform(fork_.start());
  return {
      [this](UserEvent& event) { on_event(event); },
      [this](const ForkAnswered& answer) {
        perform(fork_.answered(answer.code == Errc::ok
                                   ? Result<void>()
                                   : Result<void>(Error(answer.code, "the owner refused the reference"))));
      },
      [this](const ForkAccepted& accepted) {
        const auto child = children_.find(accepted.child);
        if (child != children_.end()) perform(fork_.child_accepted(accepted.child, child->second.first));
      },
  };
}

void UserRRefActor::on_event(UserEvent& event) {
  using namespace user_event;
  std::visit(Overloaded{
                 [this](CreationAnswered& e) { perform(fork_.creation_answered(*e.answer)); },
                 [this](ChildHandedOver& e) { perform(fork_.child_handed_over(e.child, e.session), e.proxy); },
                 [this](ChildNotHandedOver& e) { perform(fork_.child_exited(e.child, e.session)); },
                 [this](OwnerLost& e) {
                   perform(fork_.owner_lost(e.session));
                   // Handles that were usable until now report it too (RR-10).
                   if (const auto usable = fork_.may_use(); fork_.state() == rpc::UserFork::State::failed) {
                     host_.user_confirmed(fork_.id(), usable);
                   }
                 },
                 [this](SessionOpened&) {
                   if (fork_.state() == rpc::UserFork::State::awaiting && !fork_.owner()) request_fork();
                 },
                 [this](Deadline&) { perform(fork_.deadline()); },
                 [this](HandleDropped&) { perform(fork_.handle_dropped()); },
                 [this](Finish& e) {
                   host_.user_confirmed(fork_.id(), e.reason);
                   quit();
                 },
             },
             event.event);
}

void UserRRefActor::on_exit_message(const caf::exit_msg& exit) {
  if (parent_ && exit.source.id() == parent_->id()) {
    parent_ = nullptr;
    fork_.parent_exited();
    return;
  }
  for (const auto& [child, link] : children_) {
    if (link.second->id() != exit.source.id()) continue;
    const ForkId id = child;
    const rpc::PeerSession session = link.first;
    children_.erase(id);
    perform(fork_.child_exited(id, session));
    return;
  }
  // An exit by hand, for which CAF names the actor itself, ends exactly this fork. Any other exit is of a parent or
  // child that was unlinked while its exit was on the way, or of an actor that must not end this one.
  if (exit.source == address()) quit(exit.reason);
}

void UserRRefActor::request_fork() {
  // Asked first: a session that comes in between is found below.
  const bool start_is_over = host_.ports().start_is_over();
  if (const auto session = host_.send_fork_request(*this, request_, owner_)) return fork_.request_sent(*session);
  // While this worker starts, the owner may come yet (SessionOpened); afterwards there is none to wait for (RR-11).
  if (start_is_over) perform(fork_.deadline());
}

void UserRRefActor::perform(rpc::UserActions actions, const caf::strong_actor_ptr& known) {
  for (rpc::UserAction& action : actions) {
    std::visit(Overloaded{
                   [this](rpc::SendForkRequest&) { request_fork(); },
                   [this](rpc::SendAccept& a) {
                     if (!parent_) return;
                     send(caf::actor_cast<caf::actor>(parent_), ForkAccepted{a.fork});
                     remote::ActorExchange::unlink_silently(*this, parent_);
                     parent_ = nullptr;
                   },
                   [this, &known](rpc::LinkChild& a) {
                     children_[a.child] = {a.session, known};
                     remote::ActorExchange::link_silently(*this, known);
                   },
                   [this](rpc::UnlinkChild& a) {
                     const auto child = children_.find(a.child);
                     if (child == children_.end()) return;
                     remote::ActorExchange::unlink_silently(*this, child->second.second);
                     children_.erase(child);
                   },
                   [this](rpc::ForkConfirmed&) { host_.user_confirmed(fork_.id(), {}); },
                   [this](rpc::ForkRefused& a) { host_.user_confirmed(fork_.id(), a.error); },
                   [this](rpc::EndFork&) { quit(); },
               },
               action);
  }
}

}  // namespace caftan::actors

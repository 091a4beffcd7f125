/// Two sides of one session, near and far, with the messages of distributed autograd and no worker behind either.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <caf/event_based_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "exchange_side.hpp"

namespace caftan::actors {

/// Finds one actor by every name.
class OneNamedActor final : public remote::NamedActors {
 public:
  caf::actor actor;
  caf::strong_actor_ptr find_named(const transport::Session&, const remote::Address&) override {
    return caf::actor_cast<caf::strong_actor_ptr>(actor);
  }
  caf::strong_actor_ptr stand_in(const remote::Address&) override { return nullptr; }
};

struct ExchangePair {
  /// @param far_takes  the limits that the far side has announced
  explicit ExchangePair(transport::SteppedExecutor& executor, const net::Limits& far_takes = {}) {
    auto [a, b] = transport::make_loopback_pair(executor);
    near = std::make_unique<remote::ExchangeSide>(executor, WorkerId{0}, WorkerId{1}, std::move(a),
                                                  transport::SessionOptions(), messages(), far_takes);
    far = std::make_unique<remote::ExchangeSide>(executor, WorkerId{1}, WorkerId{0}, std::move(b),
                                                 transport::SessionOptions(), messages());
    far->host.set_named_actors(&far_names);
    near->session->start();
    far->session->start();
  }

  /// Returns the proxy of the far side's actor of that name.
  caf::strong_actor_ptr proxy(const remote::Address& name) const {
    return remote::ActorExchange::of(*near->session).proxy(name);
  }
  WorkerLife far_life() const { return near->session->peer().life; }

  OneNamedActor far_names;  ///< names of the far side, all of which mean the actor that gets what the near side sends
  std::unique_ptr<remote::ExchangeSide> near, far;

 private:
  static remote::MessageRegistry messages() {
    remote::MessageRegistry registry;
    registry.add<PassEnvelope>("autograd.pass");
    registry.add<GradientMessage>("autograd.gradient");
    return registry;
  }
};

/// Keeps the messages of one type that it gets.
template <class Message>
class Recorder final : public caf::event_based_actor {
 public:
  Recorder(caf::actor_config& config, std::vector<Message>& got) : caf::event_based_actor(config), got_(got) {}
  caf::behavior make_behavior() override {
    return {[this](Message& message) { got_.push_back(std::move(message)); }};
  }

 private:
  std::vector<Message>& got_;
};

}  // namespace caftan::actors

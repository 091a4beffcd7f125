/// One worker's side of a session with actors, without a worker.
#pragma once

#include <memory>
#include <utility>

#include "caftan/remote/internal/actor_exchange.hpp"
#include "caftan/remote/internal/actor_host.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "session_side.hpp"

namespace caftan::remote {

/// The actors of one side: made before the session, gone after it.
struct ActorsOfSide {
  ActorsOfSide(transport::PollingExecutor& executor, MessageRegistry registry, WorkerId self)
      : messages(std::move(registry)), host(executor, messages, {self, Incarnation{self.value + 1}}) {}

  const MessageRegistry messages;
  ActorHost host;
};

class ExchangeSide : public ActorsOfSide, public transport::SessionSide {
 public:
  ExchangeSide(transport::SteppedExecutor& executor, WorkerId self, WorkerId peer,
               std::shared_ptr<transport::Channel> channel, const transport::SessionOptions& options,
               MessageRegistry registry, const net::Limits& peer_takes = {})
      : ActorsOfSide(executor, std::move(registry), self),
        SessionSide(executor, peer, std::move(channel), options, peer_takes,
                    [this](transport::Session& session) { ActorExchange::attach(session, host); }) {}
};

}  // namespace caftan::remote

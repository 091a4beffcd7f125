// The two sides of the handshake that the tests, the corpus and the fuzz target share: fixed names, secret and nonces.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "caftan/net/internal/handshake.hpp"

namespace caftan::net {

/// Returns 32 bytes of a fixed sequence; each call another.
inline NonceSource make_nonces(std::uint64_t seed) {
  return [seed]() mutable -> Result<Nonce> {
    Nonce nonce;
    for (std::size_t i = 0; i < nonce.size(); ++i) {
      nonce[i] = static_cast<std::byte>(mix64(seed * 64 + i + 1));
    }
    ++seed;
    return nonce;
  };
}

inline HandshakeOptions make_side(std::string name, std::uint32_t id, std::uint64_t seed) {
  HandshakeOptions options;
  options.self.versions = {1, 2};
  options.self.features = 0b111;
  options.self.cluster = "cartpole";
  options.self.name = std::move(name);
  options.self.id = WorkerId{id};
  options.self.incarnation = Incarnation{1000 + id};
  options.self.limits.segments = 4096;
  options.self.connection = 1;
  options.self.address = "unix:/tmp/" + options.self.name;
  options.secret = Secret("correct horse battery staple");
  options.nonce = make_nonces(seed);
  return options;
}

inline HandshakeOptions make_client_side() { return make_side("observer0", 1, 1); }
inline HandshakeOptions make_server_side() { return make_side("agent", 0, 1000); }

/// Both sides of a handshake, connected with each other; messages are delivered whole.
struct Conversation {
  Handshake client;
  Handshake server;
  wire::Bytes to_server;  ///< all that the client sent
  wire::Bytes to_client;

  Conversation(HandshakeOptions client_options, HandshakeOptions server_options, std::string expected_peer = {})
      : client(*Handshake::client(std::move(client_options), std::move(expected_peer))),
        server(*Handshake::server(std::move(server_options))) {}

  /// Runs until neither side has bytes to send. All bytes are kept for replays.
  void run() {
    wire::Bytes next = client.start();
    while (!next.empty()) {
      wire::append(to_server, next);
      const wire::Bytes answer = server.feed(next).send;
      wire::append(to_client, answer);
      next = client.feed(answer).send;
    }
  }
};

}  // namespace caftan::net

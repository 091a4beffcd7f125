// Feeds arbitrary bytes to one side of a handshake. The first byte says which side (bit 0: 1 = client) and in pieces of
// how many bytes (the other bits; 0 = all at once).
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "caftan/net/internal/handshake.hpp"
#include "handshake_sides.hpp"

namespace {

using namespace caftan;
using net::Handshake;

void require(bool holds) {
  if (!holds) std::abort();
}

Handshake make_fresh(bool is_client) {
  Handshake side =
      is_client ? *Handshake::client(net::make_client_side()) : *Handshake::server(net::make_server_side());
  side.start();
  return side;
}

struct Outcome {
  std::size_t consumed = 0;
  wire::Bytes sent;
  Handshake::State state = Handshake::State::hello;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome feed_in_pieces(Handshake& side, wire::ByteView in, std::size_t piece) {
  Outcome outcome;
  while (outcome.consumed < in.size()) {
    const wire::ByteView part = in.subspan(outcome.consumed, std::min(piece, in.size() - outcome.consumed));
    const auto step = side.feed(part);
    require(step.consumed <= part.size());
    outcome.consumed += step.consumed;
    wire::append(outcome.sent, step.send);
    outcome.state = step.state;
    if (step.state == Handshake::State::done || step.state == Handshake::State::failed) break;
    require(step.consumed == part.size());
  }
  // For a handshake that failed, the number of consumed bytes depends on the pieces, so it is not compared.
  if (outcome.state == Handshake::State::failed) outcome.consumed = 0;
  outcome.error = side.error().message();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool is_client = (data[0] & 1) != 0;
  const std::size_t piece = data[0] >> 1 == 0 ? size : data[0] >> 1;
  const wire::ByteView in(reinterpret_cast<const std::byte*>(data) + 1, size - 1);

  Handshake side = make_fresh(is_client);
  const Outcome outcome = feed_in_pieces(side, in, piece);
  // HS-2: one side sends at most a hello and a reject; HS-1: it takes at most three messages.
  require(outcome.sent.size() <= 2 * net::kMaxHandshakeMessage);
  require(outcome.consumed <= 3 * net::kMaxHandshakeMessage);
  // HS-3: a peer that does not know the secret can finish a handshake only by repeating recorded bytes, one for one.
  if (outcome.state == Handshake::State::done) {
    const auto was_said = [&](std::uint64_t client_features, std::uint32_t ring) {
      net::HandshakeOptions client = net::make_client_side();
      client.self.features = client_features;
      client.self.ring = ring;
      net::Conversation talk(std::move(client), net::make_server_side());
      talk.run();
      const wire::Bytes& said = is_client ? talk.to_client : talk.to_server;
      return said.size() == outcome.consumed && std::equal(said.begin(), said.end(), in.begin());
    };
    // The corpus has the hello of an older client, too, and those of ones that take rings, and what is lent.
    const std::uint64_t usual = net::make_client_side().self.features;
    const std::uint64_t sharing = usual | net::kSharesMemory;
    require(was_said(usual, 0) || was_said(0b110, 0) || was_said(sharing, 64 * 1024) ||
            was_said(sharing | net::kTakesLent, 64 * 1024));
  }
  require((outcome.state == Handshake::State::failed) == (side.error().code() != Errc::ok));

  // HS-8: the pieces in which bytes arrive do not matter.
  Handshake whole = make_fresh(is_client);
  require(in.empty() || feed_in_pieces(whole, in, in.size()) == outcome);
  return 0;
}

/// `Handshake`: one side of the exchange with which each connection of two workers begins: who they are, which versions
/// they speak, and proof that both know the cluster's secret. Bytes go in, bytes come out, and at last a peer or an
/// error. Messages, states and invariants HS-1 to HS-15: docs/protocols/handshake.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/net/internal/secret.hpp"
#include "caftan/net/limits.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::net {

inline constexpr std::size_t kMaxHandshakeMessage = 1024;  ///< bytes with the header
inline constexpr std::size_t kMaxName = 64;                ///< bytes of a cluster's or worker's name
inline constexpr std::size_t kMaxAddress = 255;            ///< bytes
inline constexpr std::size_t kMaxSettings = 255;           ///< bytes
inline constexpr std::size_t kMaxRejectText = 200;         ///< bytes

/// Feature bit: the hello says how many tensor segments of one message the sender takes.
inline constexpr std::uint64_t kSaysSegments = 1;
inline constexpr std::uint32_t kUnsaidSegments = 4096;  ///< how many segments a peer takes whose hello does not say it
/// Feature bit: the section `error_kinds` and the error code user_error are understood.
inline constexpr std::uint64_t kKnowsErrorKinds = 2;
/// Feature bit: the section `grad_mode` is understood.
inline constexpr std::uint64_t kKnowsGradMode = 4;
/// Feature bit: the section `depth` is understood.
inline constexpr std::uint64_t kKnowsDepth = 8;
/// Feature bit: the message `leave.report` between root actors is understood.
inline constexpr std::uint64_t kKnowsLeaveReport = 16;
/// Feature bit: the message `run.returned` between root actors is understood.
inline constexpr std::uint64_t kKnowsRunReturned = 32;
/// Feature bit: this side takes rings in shared memory, and the hello says of how many bytes.
inline constexpr std::uint64_t kSharesMemory = 64;
/// Feature bit: this side reads tensors out of the other's memory, where the kernel lets it: the section `places` and
/// the frame `taken` are understood.
inline constexpr std::uint64_t kTakesLent = 128;
/// Feature bit: a call or method without an id has no reply, and the frame `ended` is understood.
inline constexpr std::uint64_t kKnowsTell = 512;
/// Feature bit: this side takes the stream of the session over UCX.
inline constexpr std::uint64_t kUsesUcx = 1024;

struct VersionRange {
  std::uint16_t min = 1;
  std::uint16_t max = 1;
  bool operator==(const VersionRange&) const = default;
};

/// What the connection is for.
enum class Purpose : std::uint8_t {
  session = 1,  ///< a session of its own
  // Reserved: a worker of this version refuses connections for these purposes.
  bulk = 2,   ///< one more connection for tensor bytes of the session with the same number
  probe = 3,  ///< only the handshake; both sides close after it
};

/// What a side says about itself.
struct Introduction {
  VersionRange versions;
  std::uint64_t features = 0;  ///< bits it can use
  std::string cluster;         ///< 1 to kMaxName bytes, no control characters
  std::string name;            ///< the worker's, 1 to kMaxName bytes, no control characters
  WorkerId id;
  Incarnation incarnation;  ///< not zero
  Limits limits;            ///< what this side takes: the other side never sends more
  Purpose purpose = Purpose::session;
  std::uint64_t connection = 0;  ///< number of the session between these two incarnations; the client counts
  std::string address;           ///< where this side listens, up to kMaxAddress bytes; empty = it does not listen
  /// A text that the owners of both sides compare, up to kMaxSettings bytes, no control characters; empty = nothing to
  /// compare.
  std::string settings;
  /// With kSharesMemory: bytes of the largest ring that this side takes. Else 0.
  std::uint32_t ring = 0;
  bool operator==(const Introduction&) const = default;
};

/// What the peer has said of itself in a handshake that succeeded: all of it was proven with the secret.
struct PeerInfo : Introduction {
  std::uint16_t version = 0;          ///< the highest one both speak
  std::uint64_t agreed_features = 0;  ///< bits both can use
  /// The names for which its certificate holds; nothing where it has shown none. Proven by TLS, not said by the peer.
  std::optional<std::vector<std::string>> certified;
  /// With kUsesUcx agreed: bytes that only the two sides of this handshake know (HS-15). Else zeros.
  Proof channel_key{};
};

struct HandshakeOptions {
  Introduction self;
  std::uint64_t required_features = 0;  ///< bits of self.features that the peer must have
  Secret secret;
  bool allow_no_secret = false;  ///< for connections that something else protects: TLS, a socket pair, tests
  NonceSource nonce = random_nonce;
  /// Asked once, after the peer has proven the secret: whether the job has this name, whether the id belongs to it,
  /// whether the incarnation is no duplicate. An error is sent to the peer. Default: every member of the cluster is
  /// accepted.
  std::function<Result<void>(const PeerInfo&)> accept;
};

/// One side of one handshake. Allocates nothing for bytes that are not complete and checked.
/// Threads: none of its own and no lock; the owner of the connection calls it.
class Handshake {
 public:
  enum class State : std::uint8_t {
    hello,    ///< waits for the peer's hello
    proof,    ///< server: waits for the client's proof
    welcome,  ///< client: waits for the server's verdict
    done,
    failed,
  };

  struct Step {
    std::size_t consumed = 0;  ///< bytes taken from the input; the rest belongs to the session
    wire::Bytes send;          ///< to be written in any case: after a failure it has the reason, for the peer
    State state = State::hello;
  };

  /// Makes the side that connected. @param expected_peer  the name it dialled; empty = any member
  /// Errors: invalid_config (a field of `self` out of its range, a required feature it lacks, no secret), io_error
  /// (no nonce).
  static Result<Handshake> client(HandshakeOptions options, std::string expected_peer = {});
  /// Makes the side that accepted. Errors: as client.
  static Result<Handshake> server(HandshakeOptions options);

  /// Makes the proofs of this handshake hold only for the TLS connection that carries it (TS-5). Call it once, before
  /// `start` and `feed`. @param certified  PeerInfo::certified
  void bind(const TlsBinding& binding, std::optional<std::vector<std::string>> certified);

  /// Returns the first bytes to send: the client's hello; nothing for a server. Call it once.
  wire::Bytes start();

  /// Takes bytes of the peer, in pieces of any size. After done or failed nothing more is consumed.
  Step feed(wire::ByteView in);

  /// Ends a handshake that is not finished when its deadline passes, and returns its error: timeout, naming what did
  /// not arrive. A handshake that has ended does not change. @param limit  the time it had, for the text
  const Error& expired(base::Duration limit);

  /// Ends a handshake whose connection was closed by the peer, and returns its error: peer_down, naming what did not
  /// arrive. A handshake that has ended does not change.
  const Error& closed();

  State state() const noexcept { return state_; }
  /// Precondition: done.
  const PeerInfo& peer() const noexcept { return peer_; }
  /// Errors: malformed_payload (bytes that are no handshake), protocol_mismatch, wrong_cluster, not_authenticated,
  /// unknown_worker (not the peer that was dialled), timeout, peer_down, io_error, or what `accept` answered here or at
  /// the peer. Precondition: failed.
  const Error& error() const noexcept { return error_; }

 private:
  enum class Role : std::uint8_t { client, server };

  Handshake(Role role, HandshakeOptions options, std::string expected_peer, Nonce nonce);
  static Result<Handshake> make(Role role, HandshakeOptions options, std::string expected_peer);

  std::size_t fill(wire::ByteView in);
  bool speaks_tls() const noexcept;
  Result<std::size_t> message_size() const;
  Result<void> on_message(wire::ByteView message, wire::Bytes& send);
  Result<void> on_hello(wire::ByteView message, wire::Bytes& send);
  Result<void> answer_hello(wire::Bytes& send);
  Result<void> check_server_proof(wire::ByteView message, wire::Bytes& send);
  Result<void> check_client_proof(wire::ByteView payload, wire::Bytes& send);
  Error on_reject(wire::ByteView payload);
  Result<void> agree();
  Result<void> accept_peer() const;
  Error refuse(Error error, wire::Bytes& send) const;
  Error refuse_unproven(Error error, wire::Bytes& send) const;
  Result<Proof> proof_of(Role role) const;
  Result<void> make_channel_key();
  const Error& fail(Error error);
  void forget();

  Role role_;
  State state_ = State::hello;
  HandshakeOptions options_;
  std::string expected_peer_;
  Nonce nonce_;
  bool is_bound_ = false;
  wire::Bytes transcript_;  ///< the binding and both hellos as sent, at most 2 KiB; empty once finished
  std::array<std::byte, kMaxHandshakeMessage> buffer_;
  std::size_t filled_ = 0;
  PeerInfo peer_;
  Error error_;
};

}  // namespace caftan::net

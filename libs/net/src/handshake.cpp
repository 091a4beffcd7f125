#include "caftan/net/internal/handshake.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "caftan/base/internal/rounded_duration.hpp"
#include "handshake_codec.hpp"
#include "in_quotes.hpp"

namespace caftan::net {

namespace {

using handshake::Kind;

// Both labels have the same length, so that a label and its transcript never equal the other label and another
// transcript.
constexpr std::string_view kServerLabel = "caftan server";
constexpr std::string_view kClientLabel = "caftan client";
constexpr std::string_view kServerTlsLabel = "caftan server tls";  // likewise, inside of TLS
constexpr std::string_view kClientTlsLabel = "caftan client tls";
constexpr std::string_view kChannelLabel = "caftan channel";
constexpr std::byte kTlsRecord{0x16};  // the first byte of a client that speaks TLS
constexpr std::string_view kOneSidedTls =
    "the client speaks TLS, the server does not: tls.mode must be the same in both files";

std::string range_text(VersionRange range) {
  return std::to_string(range.min) + (range.min == range.max ? std::string() : " to " + std::to_string(range.max));
}

bool overlap(VersionRange a, VersionRange b) noexcept { return a.min <= b.max && b.min <= a.max; }

Error invalid(std::string text) { return Error(Errc::invalid_config, std::move(text)); }

Result<void> check_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= kMaxName && handshake::is_printable(name)) return {};
  return invalid("the " + std::string(what) + "'s name must have 1 to " + std::to_string(kMaxName) +
                 " bytes and no control characters");
}

Result<void> check_options(const HandshakeOptions& options) {
  const Introduction& self = options.self;
  if (self.versions.min == 0 || self.versions.min > self.versions.max) return invalid("no valid range of versions");
  if (auto name = check_name("cluster", self.cluster); !name) return name;
  if (auto name = check_name("worker", self.name); !name) return name;
  if (self.address.size() > kMaxAddress || !handshake::is_printable(self.address)) {
    return invalid("a listen address has at most " + std::to_string(kMaxAddress) + " bytes");
  }
  if (self.settings.size() > kMaxSettings || !handshake::is_printable(self.settings)) {
    return invalid("the digest of the settings has at most " + std::to_string(kMaxSettings) + " bytes");
  }
  if (self.incarnation.value == 0) return invalid("the incarnation of worker " + in_quotes(self.name) + " is zero");
  if (self.limits.message == 0 || self.limits.send_queue == 0) return invalid("a limit of zero bytes");
  if (self.limits.segments == 0) return invalid("a limit of zero segments");
  if ((options.required_features & ~self.features) != 0) return invalid("a feature is required but not offered");
  if (options.secret.empty() && !options.allow_no_secret) {
    return invalid("no secret, and connections without one are not allowed");
  }
  if (!options.nonce) return invalid("no source of nonces");
  return {};
}

}  // namespace

Result<Handshake> Handshake::make(Role role, HandshakeOptions options, std::string expected_peer) {
  if (auto valid = check_options(options); !valid) return valid.error();
  auto nonce = options.nonce();
  if (!nonce) return nonce.error();
  return Handshake(role, std::move(options), std::move(expected_peer), *nonce);
}

Result<Handshake> Handshake::client(HandshakeOptions options, std::string expected_peer) {
  return make(Role::client, std::move(options), std::move(expected_peer));
}

Result<Handshake> Handshake::server(HandshakeOptions options) { return make(Role::server, std::move(options), {}); }

Handshake::Handshake(Role role, HandshakeOptions options, std::string expected_peer, Nonce nonce)
    : role_(role), options_(std::move(options)), expected_peer_(std::move(expected_peer)), nonce_(nonce) {}

void Handshake::bind(const TlsBinding& binding, std::optional<std::vector<std::string>> certified) {
  is_bound_ = true;
  transcript_.assign(binding.begin(), binding.end());
  peer_.certified = std::move(certified);
}

wire::Bytes Handshake::start() {
  if (role_ == Role::server) return {};
  wire::Bytes hello = handshake::encode_hello(Kind::client_hello, {options_.self, nonce_}, 0);
  wire::append(transcript_, hello);
  return hello;
}

Handshake::Step Handshake::feed(wire::ByteView in) {
  Step step;
  while (state_ != State::done && state_ != State::failed && step.consumed < in.size()) {
    step.consumed += fill(in.subspan(step.consumed));
    const auto size = message_size();
    if (!size) {
      fail(speaks_tls() ? refuse(Error(Errc::protocol_mismatch, std::string(kOneSidedTls)), step.send) : size.error());
      break;
    }
    if (*size == 0 || filled_ < *size) continue;
    filled_ = 0;
    auto taken = on_message(wire::ByteView(buffer_).first(*size), step.send);
    if (!taken) fail(taken.error());
  }
  if (state_ == State::done) forget();
  step.state = state_;
  return step;
}

/// Returns whether the bytes of a client begin as TLS does.
bool Handshake::speaks_tls() const noexcept {
  return role_ == Role::server && state_ == State::hello && filled_ > 0 && buffer_[0] == kTlsRecord;
}

// Takes no byte beyond the message that is being read (HS-1): first its header, then what the header announces.
std::size_t Handshake::fill(wire::ByteView in) {
  const auto size = message_size();  // never an error here: feed() has ended the handshake for a message of a bad size
  const std::size_t wanted = size && *size != 0 ? *size : handshake::kHeaderSize;
  const std::size_t taken = std::min(in.size(), wanted - filled_);
  std::memcpy(buffer_.data() + filled_, in.data(), taken);
  filled_ += taken;
  return taken;
}

Result<std::size_t> Handshake::message_size() const {
  return handshake::message_size(wire::ByteView(buffer_).first(filled_));
}

Result<void> Handshake::on_message(wire::ByteView message, wire::Bytes& send) {
  const Kind kind = handshake::kind_of(message);
  const wire::ByteView payload = handshake::payload_of(message);
  if (kind == Kind::reject) return on_reject(payload);
  const Kind hello = role_ == Role::server ? Kind::client_hello : Kind::server_hello;
  if (state_ == State::hello && kind == hello) return on_hello(message, send);
  if (state_ == State::proof && kind == Kind::client_proof) return check_client_proof(payload, send);
  if (state_ == State::welcome && kind == Kind::welcome) {
    state_ = State::done;
    return make_channel_key();
  }
  return Error(Errc::malformed_payload,
               "handshake: a message of kind " + std::to_string(static_cast<unsigned>(kind)) + " out of turn");
}

Result<void> Handshake::on_hello(wire::ByteView message, wire::Bytes& send) {
  wire::ByteView payload = handshake::payload_of(message);
  // HS-6: another version's hello is read no further than its range.
  const auto versions = handshake::decode_versions(payload);
  if (!versions) return versions.error();
  if (!overlap(*versions, options_.self.versions)) {
    const bool is_server = role_ == Role::server;
    return refuse(
        Error(Errc::protocol_mismatch,
              "the server speaks protocol version " + range_text(is_server ? options_.self.versions : *versions) +
                  ", the client " + range_text(is_server ? *versions : options_.self.versions)),
        send);
  }
  if (role_ == Role::client) payload = payload.first(payload.size() - handshake::kProofSize);
  auto hello = handshake::decode_hello(payload);
  if (!hello) return hello.error();
  static_cast<Introduction&>(peer_) = std::move(hello->introduction);
  if (auto agreed = agree(); !agreed) return refuse_unproven(agreed.error(), send);
  if (equal_in_constant_time(hello->nonce, nonce_)) {
    return refuse(
        Error(Errc::not_authenticated,
              "the nonce of the " + std::string(role_ == Role::server ? "client" : "server") + " is an echo of ours"),
        send);
  }
  if (role_ == Role::client) return check_server_proof(message, send);
  wire::append(transcript_, message);
  return answer_hello(send);
}

Result<void> Handshake::agree() {
  const Introduction& self = options_.self;
  const Introduction& client = role_ == Role::client ? self : peer_;
  const Introduction& server = role_ == Role::client ? peer_ : self;
  if (peer_.cluster != self.cluster) {
    return Error(Errc::wrong_cluster, "the server belongs to cluster " + in_quotes(server.cluster) +
                                          ", the client to " + in_quotes(client.cluster));
  }
  peer_.version = std::min(peer_.versions.max, self.versions.max);
  peer_.agreed_features = peer_.features & self.features;
  if (const std::uint64_t lacking = options_.required_features & ~peer_.agreed_features; lacking != 0) {
    const bool is_client = role_ == Role::client;
    return Error(Errc::protocol_mismatch, std::string(is_client ? "the client" : "the server") +
                                              " needs feature bits " + std::to_string(lacking) + ", which the " +
                                              (is_client ? "server" : "client") + " does not have");
  }
  // The client decides what the connection is for; the server's hello has to repeat it.
  if (role_ == Role::client && (peer_.purpose != self.purpose || peer_.connection != self.connection)) {
    return Error(Errc::protocol_mismatch, "the server answers for another connection than the client asked for");
  }
  return {};
}

Result<void> Handshake::answer_hello(wire::Bytes& send) {
  handshake::Hello hello{options_.self, nonce_};
  hello.introduction.purpose = peer_.purpose;
  hello.introduction.connection = peer_.connection;
  const wire::Bytes message = handshake::encode_hello(Kind::server_hello, hello, handshake::kProofSize);
  wire::append(transcript_, message);
  const auto proof = proof_of(Role::server);
  if (!proof) return proof.error();
  wire::append(transcript_, *proof);
  wire::append(send, message);
  wire::append(send, *proof);
  state_ = State::proof;
  return {};
}

Result<void> Handshake::check_server_proof(wire::ByteView message, wire::Bytes& send) {
  wire::append(transcript_, message.first(message.size() - handshake::kProofSize));
  const auto expected = proof_of(Role::server);
  if (!expected) return expected.error();
  if (!equal_in_constant_time(*expected, message.last(handshake::kProofSize))) {
    return refuse(Error(Errc::not_authenticated, "server " + in_quotes(peer_.name) + " and client " +
                                                     in_quotes(options_.self.name) +
                                                     " have different secrets for cluster " + in_quotes(peer_.cluster)),
                  send);
  }
  if (auto accepted = accept_peer(); !accepted) return refuse(accepted.error(), send);
  wire::append(transcript_, message.last(handshake::kProofSize));
  const auto proof = proof_of(Role::client);
  if (!proof) return proof.error();
  wire::append(send, handshake::encode_proof(*proof));
  state_ = State::welcome;
  return {};
}

Result<void> Handshake::check_client_proof(wire::ByteView payload, wire::Bytes& send) {
  const auto expected = proof_of(Role::client);
  if (!expected) return expected.error();
  if (!equal_in_constant_time(*expected, payload)) {
    return refuse(
        Error(Errc::not_authenticated,
              "client " + in_quotes(peer_.name) + " does not prove the secret of cluster " + in_quotes(peer_.cluster)),
        send);
  }
  if (auto accepted = accept_peer(); !accepted) return refuse(accepted.error(), send);
  wire::append(send, handshake::encode_welcome());
  state_ = State::done;
  return make_channel_key();
}

/// Returns the proof of one side for the transcript up to now.
Result<Proof> Handshake::proof_of(Role role) const {
  if (is_bound_)
    return make_proof(options_.secret, role == Role::server ? kServerTlsLabel : kClientTlsLabel, transcript_);
  return make_proof(options_.secret, role == Role::server ? kServerLabel : kClientLabel, transcript_);
}

/// HS-15. Both sides have the same transcript now: the binding, both hellos and the server's proof.
Result<void> Handshake::make_channel_key() {
  if ((peer_.agreed_features & kUsesUcx) == 0) return {};
  const auto key = make_proof(options_.secret, kChannelLabel, transcript_);
  if (!key) return key.error();
  peer_.channel_key = *key;
  return {};
}

Result<void> Handshake::accept_peer() const {
  if (!expected_peer_.empty() && peer_.name != expected_peer_) {
    return Error(Errc::unknown_worker,
                 "the client dialled " + in_quotes(expected_peer_) + " and reached " + in_quotes(peer_.name));
  }
  return options_.accept ? options_.accept(peer_) : Result<void>();
}

Error Handshake::on_reject(wire::ByteView payload) {
  const auto reject = handshake::decode_reject(payload);
  if (!reject) return reject.error();
  return Error(reject->code,
               "refused by the " + std::string(role_ == Role::client ? "server: " : "client: ") + reject->text);
}

Error Handshake::refuse(Error error, wire::Bytes& send) const {
  wire::append(send, handshake::encode_reject(error));
  return error;
}

/// HS-13: the peer has proven nothing yet, so the reject contains no name but that which the peer itself has sent.
Error Handshake::refuse_unproven(Error error, wire::Bytes& send) const {
  if (error.code() != Errc::wrong_cluster) return refuse(std::move(error), send);
  const std::string side = role_ == Role::server ? "the server" : "the client";
  wire::append(send, handshake::encode_reject(Error(
                         Errc::wrong_cluster, side + " belongs to another cluster than " + in_quotes(peer_.cluster))));
  return error;
}

const Error& Handshake::fail(Error error) {
  state_ = State::failed;
  error_ = std::move(error);
  forget();
  return error_;
}

void Handshake::forget() {
  options_.secret = {};
  transcript_ = {};
}

namespace {

std::string_view missing_message(Handshake::State state) {
  switch (state) {
    case Handshake::State::proof:
      return "client's proof";
    case Handshake::State::welcome:
      return "server's welcome";
    default:
      return "hello";
  }
}

}  // namespace

const Error& Handshake::expired(base::Duration limit) {
  if (state_ == State::failed || state_ == State::done) return error_;
  return fail(Error(Errc::timeout, "handshake: no " + std::string(missing_message(state_)) + " within " +
                                       base::format_rounded(limit) + " (" + std::to_string(filled_) +
                                       " bytes of it came)"));
}

const Error& Handshake::closed() {
  if (state_ == State::failed || state_ == State::done) return error_;
  return fail(Error(Errc::peer_down, "handshake: the peer closed the connection before its " +
                                         std::string(missing_message(state_)) + " was complete (" +
                                         std::to_string(filled_) + " bytes of it came)"));
}

}  // namespace caftan::net

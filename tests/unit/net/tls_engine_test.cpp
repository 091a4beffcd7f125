// TLS of both sides in memory: TS-1 to TS-10 of docs/protocols/tls.md.
#include "caftan/net/internal/tls_engine.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "caftan/net/internal/tls_authority.hpp"
#include "folder.hpp"
#include "handshake_sides.hpp"

namespace caftan::net::tls_engine_test {
namespace {

using State = Handshake::State;
using namespace std::chrono_literals;

TlsKeys keys(const std::string& secret = "correct horse battery staple", const std::string& cluster = "cartpole") {
  TlsKeys made;
  made.cluster = cluster;
  made.secret = Secret(secret);
  return made;
}

wire::Bytes bytes_of(std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::string text_of(wire::ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Both sides of a TLS connection; what one sends the other reads, in pieces of `piece` bytes.
struct Wire {
  Wire(const TlsKeys& client_keys, const TlsKeys& server_keys, std::size_t piece = 1 << 20)
      : client(TlsEngine::client(client_keys).value()), server(TlsEngine::server(server_keys).value()), piece_(piece) {}

  void run() {
    for (bool moved = true; moved;) {
      moved = pass(client, server, to_server, server_error);
      moved = pass(server, client, to_client, client_error) || moved;
    }
    // A refusal of the client's certificate reaches a client that is open already.
    if (client.is_open() && !client_error) client_error = error_of(client);
    if (server.is_open() && !server_error) server_error = error_of(server);
  }

  TlsEngine client;
  TlsEngine server;
  wire::Bytes to_server;  // all cipher text
  wire::Bytes to_client;
  std::optional<Error> client_error;
  std::optional<Error> server_error;

 private:
  static std::optional<Error> error_of(TlsEngine& side) {
    std::byte none{};
    const auto got = side.read(&none, 0);
    return got ? std::nullopt : std::optional(got.error());
  }
  bool pass(TlsEngine& from, TlsEngine& to, wire::Bytes& all, std::optional<Error>& error) {
    const wire::Bytes bytes = from.take_outgoing();
    wire::append(all, bytes);
    for (std::size_t at = 0; at < bytes.size() && !error; at += piece_) {
      const auto fed = to.feed(wire::ByteView(bytes).subspan(at, std::min(piece_, bytes.size() - at)));
      if (!fed) error = fed.error();
    }
    return !bytes.empty();
  }
  const std::size_t piece_;
};

/// Sends `plain` from one side to the other and returns what arrives.
std::string carry(TlsEngine& from, TlsEngine& to, std::string_view plain) {
  EXPECT_TRUE(from.write(bytes_of(plain)));
  EXPECT_TRUE(to.feed(from.take_outgoing()));
  std::string got;
  std::byte buffer[1000];
  for (auto part = to.read(buffer, sizeof buffer); part && *part > 0; part = to.read(buffer, sizeof buffer)) {
    got += text_of({buffer, *part});
  }
  return got;
}

void expect_error(const std::optional<Error>& error, Errc code, const std::string& word) {
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), code) << error->message();
  EXPECT_NE(error->text().find(word), std::string::npos) << error->message();
}

/// The files of an authority and of what it has signed.
class Certificates {
 public:
  /// @param validity  of the authority
  explicit Certificates(const TlsValidity& validity = {}) : authority_(TlsAuthority::make(validity).value()) {
    folder_.write("authority", authority_.pair().certificate);
  }
  const TlsAuthority& authority() const { return authority_; }
  TlsKeys keys_of(const std::string& name, const TlsPair& pair) const {
    TlsKeys made = keys();
    made.files = {folder_.write(name + ".pem", pair.certificate), folder_.write(name + ".key", pair.key),
                  folder_ / "authority"};
    return made;
  }
  TlsKeys issue(const std::string& name, const TlsValidity& validity = {}) const {
    return keys_of(name, authority_.issue({name, "192.0.2.7"}, validity).value());
  }

 private:
  const test::Folder folder_;
  const TlsAuthority authority_;
};

TEST(TlsEngine, TS1_TS7_BothSidesReadWhatTheOtherWritesHoweverTheBytesAreCut) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    Wire wire(keys(), keys(), piece);
    wire.run();
    ASSERT_TRUE(wire.client.is_open() && wire.server.is_open()) << piece;
    EXPECT_EQ(wire.client.binding().value(), wire.server.binding().value());
    EXPECT_FALSE(wire.client.peer_names());
    const std::string plain(100'000, 'a');
    EXPECT_EQ(carry(wire.client, wire.server, plain), plain);
    EXPECT_EQ(carry(wire.server, wire.client, "a reply"), "a reply");
  }
}

TEST(TlsEngine, TS1_NeitherPlainTextNorTheClustersNameIsOnTheWire) {
  Wire wire(keys(), keys());
  wire.run();
  ASSERT_TRUE(wire.client.write(bytes_of("an argument of a call")));
  const std::string sent = text_of(wire.to_server) + text_of(wire.to_client) + text_of(wire.client.take_outgoing());
  EXPECT_EQ(sent.find("argument"), std::string::npos);
  EXPECT_EQ(sent.find("cartpole"), std::string::npos);
  EXPECT_EQ(sent.find("correct horse"), std::string::npos);
  EXPECT_NE(sent.find("caftan-1 "), std::string::npos);
}

TEST(TlsEngine, TS2_TheIdentityOfAKeyIsFixed) {
  Wire wire(keys(), keys());
  wire.run();
  EXPECT_NE(text_of(wire.to_server).find("caftan-1 4de6d3f1bff01fef9daec0a800e51cab"), std::string::npos)
      << text_of(wire.to_server).substr(text_of(wire.to_server).find("caftan-1 "), 41);
}

TEST(TlsEngine, TS2_AnotherSecretIsNamedAtBothSides) {
  Wire wire(keys(), keys("another secret of the job"));
  wire.run();
  for (const auto& error : {wire.client_error, wire.server_error}) {
    expect_error(error, Errc::not_authenticated, "different secrets for cluster 'cartpole'");
  }
}

TEST(TlsEngine, TS2_TheKeyOfAnotherClusterIsNamedAtBothSides) {
  Wire wire(keys(), keys("correct horse battery staple", "pipeline"));
  wire.run();
  expect_error(wire.client_error, Errc::wrong_cluster, "another cluster than 'cartpole'");
  expect_error(wire.server_error, Errc::wrong_cluster, "another cluster than 'pipeline'");
  EXPECT_EQ(text_of(wire.to_client), std::string("\x15\x03\x03\x00\x02\x02\x73", 7));  // golden: unknown_psk_identity
}

TEST(TlsEngine, TS2_WithoutASecretThereIsNoTls) {
  EXPECT_EQ(TlsEngine::client(keys("")).error().code(), Errc::invalid_config);
  EXPECT_EQ(TlsEngine::server(keys("")).error().code(), Errc::invalid_config);
}

TEST(TlsEngine, TS3_CertificatesOfOneAuthorityAgreeAndShowTheirNames) {
  const Certificates certificates;
  Wire wire(certificates.issue("node"), certificates.issue("head"));
  wire.run();
  ASSERT_TRUE(wire.client.is_open() && wire.server.is_open());
  EXPECT_EQ(wire.client.peer_names(), (std::vector<std::string>{"head", "192.0.2.7"}));
  EXPECT_EQ(wire.server.peer_names(), (std::vector<std::string>{"node", "192.0.2.7"}));
  EXPECT_EQ(carry(wire.client, wire.server, "hello"), "hello");
}

TEST(TlsEngine, TS3_ACertificateOfAnotherAuthorityIsRefusedAtBothSides) {
  const Certificates ours;
  const Certificates others;
  Wire wire(others.issue("node"), ours.issue("head"));
  wire.run();
  expect_error(wire.client_error, Errc::not_authenticated, "tls.authority");
  expect_error(wire.server_error, Errc::not_authenticated, "authority");
}

TEST(TlsEngine, TS3_ASelfSignedCertificateIsRefusedAtBothSides) {
  const Certificates ours;
  const TlsAuthority own = TlsAuthority::make().value();
  Wire wire(ours.issue("node"), ours.keys_of("self", own.pair()));
  wire.run();
  expect_error(wire.client_error, Errc::not_authenticated, "signed by itself");
  expect_error(wire.server_error, Errc::not_authenticated, "refuses");
}

TEST(TlsEngine, TS3_AnOwnCertificateThatIsNotValidNowIsRefusedBeforeTheFirstByte) {
  const Certificates certificates;
  const auto late = TlsEngine::client(certificates.issue("late", {-2h, -1h}));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::invalid_config);
  EXPECT_NE(late.error().text().find("late.pem has expired at 20"), std::string::npos) << late.error().text();
  const auto early = TlsEngine::server(certificates.issue("early", {1h, 2h}));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code(), Errc::invalid_config);
  EXPECT_NE(early.error().text().find("is not valid before 20"), std::string::npos) << early.error().text();
}

TEST(TlsEngine, TS3_AChainThatIsNotValidNowIsRefusedAtBothSides) {
  const Certificates past({-2h, -1h});
  Wire late(past.issue("node"), past.issue("head"));
  late.run();
  expect_error(late.client_error, Errc::not_authenticated,
               "the authority of the certificate of the server has expired");
  expect_error(late.server_error, Errc::not_authenticated, "has expired there");
  const Certificates to_come({1h, 2h});
  Wire early(to_come.issue("node"), to_come.issue("head"));
  early.run();
  expect_error(early.client_error, Errc::not_authenticated,
               "the authority of the certificate of the server is not valid");
  expect_error(early.server_error, Errc::not_authenticated, "not valid yet by the clock there");
}

TEST(TlsEngine, TS3_AKeyThatDoesNotFitItsCertificateAndBrokenFilesAreNamed) {
  const Certificates certificates;
  TlsPair pair = certificates.authority().issue({"head"}).value();
  pair.key = certificates.authority().issue({"node"}).value().key;
  const auto mixed = TlsEngine::server(certificates.keys_of("mixed", pair));
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code(), Errc::invalid_config);
  EXPECT_NE(mixed.error().text().find("is not the key of tls.certificate"), std::string::npos) << mixed.error().text();
  const auto broken = TlsEngine::server(certificates.keys_of("broken", {"no PEM", "no PEM"}));
  EXPECT_EQ(broken.error().code(), Errc::invalid_config);
  TlsKeys missing = certificates.issue("head");
  missing.files.key = "/nowhere/head.key";
  const auto none = TlsEngine::server(missing);
  EXPECT_EQ(none.error().code(), Errc::io_error);
  EXPECT_NE(none.error().text().find("tls.key /nowhere/head.key"), std::string::npos) << none.error().text();
}

TEST(TlsEngine, TS3_CertificatesOnOneSideOnlyAreRefusedAtBothSides) {
  const Certificates certificates;
  for (const bool client_has : {true, false}) {
    Wire wire(client_has ? certificates.issue("node") : keys(), client_has ? keys() : certificates.issue("head"));
    wire.run();
    expect_error(wire.client_error, Errc::not_authenticated, "[tls]");
    expect_error(wire.server_error, Errc::not_authenticated, "[tls]");
  }
}

/// Runs a handshake.
void shake_hands(Handshake& client, Handshake& server) {
  wire::Bytes next = client.start();
  while (!next.empty()) {
    const wire::Bytes answer = server.feed(next).send;
    next = client.feed(answer).send;
  }
}

TEST(TlsEngine, TS5_AProofOfAnotherConnectionIsRefused) {
  const Certificates certificates;
  // An attacker has a certificate, but not the secret. It ends the client's connection, dials the server, and passes
  // the handshake on.
  Wire first(certificates.issue("node"), certificates.issue("attacker"));
  Wire second(certificates.issue("attacker"), certificates.issue("head"));
  first.run();
  second.run();
  Handshake client = Handshake::client(make_client_side()).value();
  Handshake server = Handshake::server(make_server_side()).value();
  client.bind(first.client.binding().value(), {});
  server.bind(second.server.binding().value(), {});
  shake_hands(client, server);
  EXPECT_EQ(client.state(), State::failed);
  EXPECT_EQ(client.error().code(), Errc::not_authenticated);
  EXPECT_EQ(server.state(), State::failed);
  EXPECT_EQ(server.error().code(), Errc::not_authenticated);
}

TEST(TlsEngine, TS5_BothEndsOfOneConnectionAgree) {
  Wire wire(keys(), keys());
  wire.run();
  Handshake client = Handshake::client(make_client_side()).value();
  Handshake server = Handshake::server(make_server_side()).value();
  client.bind(wire.client.binding().value(), std::vector<std::string>{"agent"});
  server.bind(wire.server.binding().value(), std::vector<std::string>{"observer0"});
  shake_hands(client, server);
  ASSERT_EQ(client.state(), State::done) << client.error().message();
  ASSERT_EQ(server.state(), State::done) << server.error().message();
  EXPECT_EQ(server.peer().certified, std::vector<std::string>{"observer0"});
}

TEST(TlsEngine, TS5_ABoundSideAndAnUnboundOneDisagree) {
  Wire wire(keys(), keys());
  wire.run();
  Handshake client = Handshake::client(make_client_side()).value();
  Handshake server = Handshake::server(make_server_side()).value();
  client.bind(wire.client.binding().value(), {});
  shake_hands(client, server);
  EXPECT_EQ(client.error().code(), Errc::not_authenticated);
}

TEST(TlsEngine, TS6_AClientWithoutTlsAndTheServerNameIt) {
  TlsEngine server = TlsEngine::server(keys()).value();
  Handshake client = Handshake::client(make_client_side()).value();
  const auto fed = server.feed(client.start());
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code(), Errc::protocol_mismatch);
  EXPECT_NE(fed.error().text().find("tls.mode"), std::string::npos);
  client.feed(server.take_outgoing());
  ASSERT_EQ(client.state(), State::failed);
  EXPECT_EQ(client.error().code(), Errc::protocol_mismatch);
  EXPECT_NE(client.error().text().find("tls.mode"), std::string::npos) << client.error().text();
}

TEST(TlsEngine, TS6_AServerWithoutTlsAndTheClientNameIt) {
  TlsEngine client = TlsEngine::client(keys()).value();
  Handshake server = Handshake::server(make_server_side()).value();
  const auto step = server.feed(client.take_outgoing());
  ASSERT_EQ(step.state, State::failed);
  EXPECT_EQ(server.error().code(), Errc::protocol_mismatch);
  EXPECT_NE(server.error().text().find("tls.mode"), std::string::npos) << server.error().text();
  const auto fed = client.feed(step.send);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code(), Errc::protocol_mismatch);
  EXPECT_NE(fed.error().text().find("tls.mode"), std::string::npos) << fed.error().text();
}

TEST(TlsEngine, TS6_HttpAndRandomBytesAreMalformed) {
  const auto feed = [](std::string_view text) { return TlsEngine::server(keys()).value().feed(bytes_of(text)); };
  const auto http = feed("GET / HTTP/1.1\r\nHost: head\r\n\r\n");
  ASSERT_FALSE(http);
  EXPECT_EQ(http.error().code(), Errc::malformed_payload);
  EXPECT_NE(http.error().text().find("HTTP"), std::string::npos) << http.error().text();
  const auto proxy = feed("CONNECT head:1 HTTP/1.1\r\n\r\n");
  ASSERT_FALSE(proxy);
  EXPECT_EQ(proxy.error().code(), Errc::malformed_payload);
  const auto noise = feed(std::string(100, '\x7f'));
  ASSERT_FALSE(noise);
  EXPECT_EQ(noise.error().code(), Errc::malformed_payload);
}

TEST(TlsEngine, TS6_AnOlderTlsIsNamed) {
  // A hello of TLS 1.2: a version, 32 random bytes, no session, one suite, no compression, no extension.
  std::string hello("\x03\x03", 2);
  hello += std::string(32, 'r') + std::string("\x00\x00\x02\xc0\x2f\x01\x00", 7);
  std::string record("\x16\x03\x01\x00", 4);
  record += static_cast<char>(hello.size() + 4);
  record += std::string("\x01\x00\x00", 3) + static_cast<char>(hello.size()) + hello;
  TlsEngine server = TlsEngine::server(keys()).value();
  const auto fed = server.feed(bytes_of(record));
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code(), Errc::protocol_mismatch) << fed.error().text();
  EXPECT_NE(fed.error().text().find("TLS 1.3"), std::string::npos) << fed.error().text();
  TlsEngine client = TlsEngine::client(keys()).value();
  const auto alerted = client.feed(server.take_outgoing());  // the alert protocol_version
  ASSERT_FALSE(alerted);
  EXPECT_EQ(alerted.error().code(), Errc::protocol_mismatch) << alerted.error().text();
}

TEST(TlsEngine, TS8_AChangedByteEndsTheConnection) {
  Wire wire(keys(), keys());
  wire.run();
  ASSERT_TRUE(wire.client.write(bytes_of("some bytes of a frame")));
  const wire::Bytes sent = wire.client.take_outgoing();
  for (std::size_t at = 5; at < sent.size(); at += 3) {
    Wire fresh(keys(), keys());
    fresh.run();
    ASSERT_TRUE(fresh.client.write(bytes_of("some bytes of a frame")));
    wire::Bytes changed = fresh.client.take_outgoing();
    changed[at] ^= std::byte{1};
    ASSERT_TRUE(fresh.server.feed(changed));
    std::byte buffer[64];
    const auto got = fresh.server.read(buffer, sizeof buffer);
    ASSERT_FALSE(got) << at;
    EXPECT_EQ(got.error().code(), Errc::peer_down);
  }
}

TEST(TlsEngine, TS8_ARepeatedRecordEndsTheConnection) {
  Wire wire(keys(), keys());
  wire.run();
  ASSERT_TRUE(wire.client.write(bytes_of("once")));
  wire::Bytes twice = wire.client.take_outgoing();
  const wire::Bytes once = twice;
  wire::append(twice, once);
  ASSERT_TRUE(wire.server.feed(twice));
  std::byte buffer[64];
  EXPECT_EQ(wire.server.read(buffer, sizeof buffer).value(), 4U);
  EXPECT_EQ(wire.server.read(buffer, sizeof buffer).error().code(), Errc::peer_down);
}

TEST(TlsEngine, TS8_AnEndInGoodOrderAndACutDiffer) {
  Wire wire(keys(), keys());
  wire.run();
  EXPECT_NE(wire.server.closed().text().find("without TLS's own end"), std::string::npos);
  wire.client.close_write();
  ASSERT_TRUE(wire.server.feed(wire.client.take_outgoing()));
  std::byte buffer[64];
  const auto got = wire.server.read(buffer, sizeof buffer);
  EXPECT_EQ(got.error().code(), Errc::peer_down);
  EXPECT_TRUE(wire.server.has_ended());
}

TEST(TlsEngine, TS8_AConnectionThatEndsOrStopsInTheHandshakeIsNamed) {
  const TlsEngine client = TlsEngine::client(keys()).value();
  EXPECT_EQ(client.closed().code(), Errc::peer_down);
  EXPECT_EQ(client.expired(5s).code(), Errc::timeout);
  EXPECT_NE(client.expired(5s).text().find("within 5s"), std::string::npos) << client.expired(5s).text();
}

TEST(TlsEngine, TS9_RenewedFilesHoldForTheNextConnection) {
  const Certificates certificates;
  const TlsKeys node = certificates.issue("node");
  const TlsKeys head = certificates.issue("head");
  Wire before(node, head);
  before.run();
  (void)certificates.keys_of("head", certificates.authority().issue({"renewed"}).value());  // the same files
  Wire after(node, head);
  after.run();
  EXPECT_EQ(after.client.peer_names(), std::vector<std::string>{"renewed"});
  EXPECT_EQ(carry(before.client, before.server, "goes on"), "goes on");
}

TEST(TlsEngine, TS9_FilesThatHaveLainForLongAreReadAnewOnceTheyChange) {
  const Certificates certificates;
  const TlsKeys node = certificates.issue("node");
  const TlsKeys head = certificates.issue("head");
  const auto age = [&](std::chrono::seconds seconds) {
    const auto then = std::filesystem::file_time_type::clock::now() - seconds;
    for (const TlsKeys* keys : {&node, &head}) {
      for (const auto* file : {&keys->files.certificate, &keys->files.key, &keys->files.authority}) {
        std::filesystem::last_write_time(*file, then);
      }
    }
  };
  const auto names_of_head = [&] {
    Wire wire(node, head);
    wire.run();
    return wire.client.is_open() ? wire.client.peer_names() : std::nullopt;
  };
  using Names = std::vector<std::string>;
  age(60s);
  EXPECT_EQ(names_of_head(), (Names{"head", "192.0.2.7"}));
  EXPECT_EQ(names_of_head(), (Names{"head", "192.0.2.7"}));
  (void)certificates.keys_of("head", certificates.authority().issue({"renewed"}).value());
  age(30s);
  EXPECT_EQ(names_of_head(), Names{"renewed"});
  (void)certificates.keys_of("head", certificates.authority().issue({"again"}).value());
  EXPECT_EQ(names_of_head(), Names{"again"}) << "changed just now";
}

TEST(TlsEngine, TS9_AFileThatWasChangedJustNowMayChangeAgainAtTheSameTime) {
  const Certificates certificates;
  const TlsKeys node = certificates.issue("node");
  TlsKeys head = certificates.issue("head");
  std::uintmax_t size = 0;
  const auto later = std::filesystem::file_time_type::clock::now() + 60s;
  const auto expect_name = [&](const std::string& name) {
    do {  // the size of a signature is not always the same
      head = certificates.keys_of("head", certificates.authority().issue({name}).value());
    } while (size != 0 && std::filesystem::file_size(head.files.certificate) != size);
    size = std::filesystem::file_size(head.files.certificate);
    for (const auto* file : {&head.files.certificate, &head.files.key, &head.files.authority}) {
      std::filesystem::last_write_time(*file, later);
    }
    Wire wire(node, head);
    wire.run();
    ASSERT_TRUE(wire.client.is_open());
    EXPECT_EQ(wire.client.peer_names(), std::vector<std::string>{name});
  };
  expect_name("renewed");
  expect_name("another");
}

TEST(TlsEngine, TS10_TheSendingKeyIsRenewed) {
  Wire wire(keys(), keys());
  wire.run();
  ASSERT_TRUE(wire.client.write(bytes_of("0123456789")));
  const std::size_t plain_record = wire.client.take_outgoing().size();
  Wire renewed(keys(), keys());
  renewed.run();
  renewed.client.renew_key_after(15);
  EXPECT_EQ(carry(renewed.client, renewed.server, "0123456789"), "0123456789");
  ASSERT_TRUE(renewed.client.write(bytes_of("0123456789")));
  const wire::Bytes with_update = renewed.client.take_outgoing();
  EXPECT_GT(with_update.size(), plain_record);
  ASSERT_TRUE(renewed.server.feed(with_update));
  std::byte buffer[64];
  EXPECT_EQ(renewed.server.read(buffer, sizeof buffer).value(), 10U);
  EXPECT_EQ(carry(renewed.server, renewed.client, "a reply"), "a reply");
}

}  // namespace
}  // namespace caftan::net::tls_engine_test

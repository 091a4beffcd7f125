#include "caftan/net/internal/handshake.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "handshake_sides.hpp"

namespace caftan::net::handshake_test {
namespace {

using namespace std::chrono_literals;
using State = Handshake::State;

/// Both sides must have failed with this code, and both texts must contain all of `words`.
void expect_both_name(const Conversation& talk, Errc code, const std::vector<std::string>& words) {
  for (const Handshake* side : {&talk.client, &talk.server}) {
    ASSERT_EQ(side->state(), State::failed);
    EXPECT_EQ(side->error().code(), code) << side->error().message();
    for (const std::string& word : words) {
      EXPECT_NE(side->error().text().find(word), std::string::npos) << side->error().message();
    }
  }
}

TEST(Handshake, HS3_BothSidesLearnWhoThePeerIs) {
  HandshakeOptions client = make_client_side();
  HandshakeOptions server = make_server_side();
  client.self.features = 0b0110;
  server.self.versions = {2, 9};
  client.self.limits.message = 1000;
  client.self.limits.tensors = 2000;
  client.self.limits.send_queue = 3000;
  client.self.settings = "run=0123 roles.agent=4567";
  const Introduction client_self = client.self;
  Introduction server_self = server.self;
  Conversation talk(std::move(client), std::move(server), "agent");
  talk.run();
  ASSERT_EQ(talk.client.state(), State::done) << talk.client.error().message();
  ASSERT_EQ(talk.server.state(), State::done) << talk.server.error().message();
  EXPECT_EQ(static_cast<const Introduction&>(talk.server.peer()), client_self);
  EXPECT_EQ(static_cast<const Introduction&>(talk.client.peer()), server_self);
  for (const Handshake* side : {&talk.client, &talk.server}) {
    EXPECT_EQ(side->peer().version, 2);
    EXPECT_EQ(side->peer().agreed_features, 0b0110U);
  }
}

TEST(Handshake, HS3_TheServerTakesPurposeAndNumberFromTheClient) {
  HandshakeOptions client = make_client_side();
  client.self.purpose = Purpose::bulk;
  client.self.connection = 77;
  Conversation talk(std::move(client), make_server_side());
  talk.run();
  ASSERT_EQ(talk.server.state(), State::done);
  EXPECT_EQ(talk.server.peer().purpose, Purpose::bulk);
  EXPECT_EQ(talk.client.peer().connection, 77U);
}

TEST(Handshake, HS15_BothSidesHaveAKeyThatNoOtherHandshakeHas) {
  const auto keys_of = [](std::uint64_t client_features) {
    HandshakeOptions client = make_client_side();
    HandshakeOptions server = make_server_side();
    client.self.features = client_features;
    server.self.features = kUsesUcx;
    Conversation talk(std::move(client), std::move(server));
    talk.run();
    EXPECT_EQ(talk.client.state(), State::done);
    return std::pair(talk.client.peer().channel_key, talk.server.peer().channel_key);
  };
  const auto [client, server] = keys_of(kUsesUcx);
  EXPECT_EQ(client, server);
  EXPECT_NE(client, Proof{});
  const auto [other, same] = keys_of(kUsesUcx | 2);  // one bit of the transcript differs
  EXPECT_EQ(other, same);
  EXPECT_NE(other, client);
  EXPECT_EQ(keys_of(2), std::pair(Proof{}, Proof{}));
}

TEST(Handshake, HS1_BytesBehindItAreLeftToTheSession) {
  Conversation talk(make_client_side(), make_server_side());
  talk.run();
  Conversation again(make_client_side(), make_server_side());
  wire::Bytes in = talk.to_client;
  wire::append(in, wire::ByteView(talk.to_client).first(5));
  again.client.start();
  const auto step = again.client.feed(in);
  EXPECT_EQ(step.state, State::done);
  EXPECT_EQ(step.consumed, talk.to_client.size());
  EXPECT_EQ(again.client.feed(in).consumed, 0U);
  EXPECT_EQ(again.client.state(), State::done);
}

TEST(Handshake, HS8_AnySplittingOfTheBytesGivesTheSame) {
  Conversation talk(make_client_side(), make_server_side());
  talk.run();
  for (std::size_t piece = 1; piece < 60; ++piece) {
    Conversation again(make_client_side(), make_server_side());
    again.client.start();
    wire::Bytes sent;
    for (std::size_t at = 0; at < talk.to_server.size(); at += piece) {
      const auto in = wire::ByteView(talk.to_server).subspan(at, std::min(piece, talk.to_server.size() - at));
      const auto step = again.server.feed(in);
      EXPECT_EQ(step.consumed, in.size());
      wire::append(sent, step.send);
    }
    EXPECT_EQ(again.server.state(), State::done);
    EXPECT_EQ(sent, talk.to_client);
  }
}

TEST(Handshake, HS2_MessagesFitIntoOneKiB) {
  HandshakeOptions client = make_client_side();
  HandshakeOptions server = make_server_side();
  for (HandshakeOptions* side : {&client, &server}) {
    side->self.cluster.assign(kMaxName, 'c');
    side->self.name.assign(kMaxName, 'n');
    side->self.address.assign(kMaxAddress, 'a');
    side->self.settings.assign(kMaxSettings, 's');
  }
  Conversation talk(std::move(client), std::move(server));
  talk.run();
  EXPECT_EQ(talk.client.state(), State::done);
  EXPECT_LE(talk.to_server.size(), kMaxHandshakeMessage);
  EXPECT_LE(talk.to_client.size(), kMaxHandshakeMessage);
}

TEST(Handshake, HS4_WrongVersionNamesBothRangesAtBothSides) {
  for (const bool is_client_newer : {false, true}) {
    HandshakeOptions client = make_client_side();
    HandshakeOptions server = make_server_side();
    (is_client_newer ? client : server).self.versions = {3, 5};
    Conversation talk(std::move(client), std::move(server));
    talk.run();
    expect_both_name(talk, Errc::protocol_mismatch, {"1 to 2", "3 to 5"});
  }
}

TEST(Handshake, T17_HS13_AStrangerDoesNotLearnTheNameOfTheCluster) {
  HandshakeOptions client = make_client_side();
  client.self.cluster = "phold";
  Conversation talk(std::move(client), make_server_side());
  talk.run();
  expect_both_name(talk, Errc::wrong_cluster, {"\"phold\""});
  EXPECT_NE(talk.server.error().text().find("\"cartpole\""), std::string::npos) << "who refuses knows both";
  const std::string sent(reinterpret_cast<const char*>(talk.to_client.data()), talk.to_client.size());
  EXPECT_EQ(sent.find("cartpole"), std::string::npos);
  EXPECT_EQ(sent.find("agent"), std::string::npos);
}

TEST(Handshake, HS4_WrongSecretIsNamedAtBothSides) {
  HandshakeOptions client = make_client_side();
  client.secret = Secret("correct horse battery stapler");
  Conversation talk(std::move(client), make_server_side());
  talk.run();
  expect_both_name(talk, Errc::not_authenticated, {"\"agent\"", "\"observer0\"", "\"cartpole\""});
}

TEST(Handshake, HS4_ALackingFeatureIsNamedAtBothSides) {
  for (const bool is_client_lacking : {false, true}) {
    HandshakeOptions client = make_client_side();
    HandshakeOptions server = make_server_side();
    (is_client_lacking ? client : server).self.features = 0b001;
    (is_client_lacking ? server : client).required_features = 0b100;
    Conversation talk(std::move(client), std::move(server));
    talk.run();
    expect_both_name(talk, Errc::protocol_mismatch,
                     {is_client_lacking ? "the server needs feature bits 4" : "the client needs feature bits 4"});
    const std::string sent(reinterpret_cast<const char*>(talk.to_client.data()), talk.to_client.size());
    EXPECT_EQ(sent.find("agent") == std::string::npos, is_client_lacking) << "T17, HS-13";
  }
}

TEST(Handshake, T2_WI20_TheNumberOfSegmentsIsSaidWithItsFeatureBit) {
  for (const bool client_says : {false, true}) {
    HandshakeOptions client = make_client_side();
    HandshakeOptions server = make_server_side();
    client.self.limits.segments = 77;
    server.self.limits.segments = 1U << 20;
    if (!client_says) client.self.features = 0;  // an older build sends no number of segments
    Conversation talk(std::move(client), std::move(server));
    talk.run();
    ASSERT_EQ(talk.client.state(), State::done) << talk.client.error().message();
    ASSERT_EQ(talk.server.state(), State::done) << talk.server.error().message();
    EXPECT_EQ(talk.server.peer().limits.segments, client_says ? 77U : 4096U);
    EXPECT_EQ(talk.client.peer().limits.segments, 1U << 20);
  }
}

TEST(Handshake, HS4_AnotherPeerThanTheOneDialledIsNamedAtBothSides) {
  Conversation talk(make_client_side(), make_server_side(), "observer1");
  talk.run();
  expect_both_name(talk, Errc::unknown_worker, {"\"observer1\"", "\"agent\""});
}

TEST(Handshake, HS4_HS9_TheOwnersRefusalReachesBothSides) {
  for (const bool is_client_refusing : {false, true}) {
    HandshakeOptions client = make_client_side();
    HandshakeOptions server = make_server_side();
    (is_client_refusing ? client : server).accept = [](const PeerInfo& peer) -> Result<void> {
      return Error(Errc::duplicate_worker, peer.name + " is here already");
    };
    Conversation talk(std::move(client), std::move(server));
    talk.run();
    expect_both_name(talk, Errc::duplicate_worker, {"is here already"});
  }
}

TEST(Handshake, HS9_TheOwnerIsAskedOnlyAboutPeersThatProvedTheSecret) {
  int asked = 0;
  const auto count = [&asked](const PeerInfo&) {
    ++asked;
    return Result<void>();
  };
  for (const std::string_view secret : {"wrong", "correct horse battery staple"}) {
    HandshakeOptions client = make_client_side();
    HandshakeOptions server = make_server_side();
    client.secret = Secret(secret);
    client.accept = server.accept = count;
    Conversation talk(std::move(client), std::move(server));
    talk.run();
  }
  EXPECT_EQ(asked, 2);
}

TEST(Handshake, HS10_WithoutASecretOnlyIfBothAllowIt) {
  HandshakeOptions options = make_client_side();
  options.secret = {};
  EXPECT_EQ(Handshake::client(options).error().code(), Errc::invalid_config);
  EXPECT_EQ(Handshake::server(options).error().code(), Errc::invalid_config);
  options.allow_no_secret = true;
  HandshakeOptions server = make_server_side();
  Conversation refused(options, server);
  refused.run();
  EXPECT_EQ(refused.server.error().code(), Errc::not_authenticated);
  server.secret = {};
  server.allow_no_secret = true;
  Conversation talk(options, server);
  talk.run();
  EXPECT_EQ(talk.server.state(), State::done);
}

TEST(Handshake, HS11_TheDeadlineNamesWhatDidNotCome) {
  Conversation talk(make_client_side(), make_server_side());
  const wire::Bytes hello = talk.client.start();
  talk.server.feed(wire::ByteView(hello).first(20));
  EXPECT_EQ(talk.server.expired(5s).message(), "timeout: handshake: no hello within 5s (20 bytes of it came)");
  EXPECT_EQ(talk.server.state(), State::failed);
  EXPECT_EQ(talk.server.feed(wire::ByteView(hello).subspan(20)).consumed, 0U);
  EXPECT_EQ(talk.client.closed().code(), Errc::peer_down);
  EXPECT_EQ(talk.client.expired(5s).code(), Errc::peer_down) << "the first error stays";
}

TEST(Handshake, HS11_AFinishedHandshakeDoesNotExpire) {
  Conversation talk(make_client_side(), make_server_side());
  talk.run();
  EXPECT_EQ(talk.server.expired(5s).code(), Errc::ok);
  EXPECT_EQ(talk.server.closed().code(), Errc::ok);
  EXPECT_EQ(talk.server.state(), State::done);
}

TEST(Handshake, HS2_OptionsThatWouldNotFitAreRefusedBeforeTheFirstByte) {
  const std::vector<void (*)(HandshakeOptions&)> spoils = {
      [](HandshakeOptions& o) {
        o.self.versions = {0, 1};
      },
      [](HandshakeOptions& o) {
        o.self.versions = {2, 1};
      },
      [](HandshakeOptions& o) { o.self.cluster.clear(); },
      [](HandshakeOptions& o) { o.self.name.assign(kMaxName + 1, 'x'); },
      [](HandshakeOptions& o) { o.self.name = "a\nb"; },
      [](HandshakeOptions& o) { o.self.address.assign(kMaxAddress + 1, 'x'); },
      [](HandshakeOptions& o) { o.self.address = "a\x7f"; },
      [](HandshakeOptions& o) { o.self.settings.assign(kMaxSettings + 1, 'x'); },
      [](HandshakeOptions& o) { o.self.settings = "run=01\n"; },
      [](HandshakeOptions& o) { o.self.incarnation = {}; },
      [](HandshakeOptions& o) { o.self.limits.message = 0; },
      [](HandshakeOptions& o) { o.self.limits.send_queue = 0; },
      [](HandshakeOptions& o) { o.required_features = 1U << 20; },
      [](HandshakeOptions& o) { o.nonce = nullptr; },
  };
  for (const auto spoil : spoils) {
    HandshakeOptions options = make_client_side();
    spoil(options);
    const auto made = Handshake::client(options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Errc::invalid_config);
  }
  HandshakeOptions options = make_client_side();
  options.nonce = [] { return Result<Nonce>(Error(Errc::io_error, "no entropy")); };
  EXPECT_EQ(Handshake::server(options).error().code(), Errc::io_error);
}

TEST(Handshake, HS6_AHelloSaysASizeOfRingsOnlyWithTheFeatureForThem) {
  HandshakeOptions client = make_client_side();
  client.self.features |= kSharesMemory;
  client.self.ring = 64 * 1024;
  HandshakeOptions server = make_server_side();
  server.self.ring = 4096;  // not said: the server does not have the bit
  Conversation talk(std::move(client), std::move(server));
  talk.run();
  ASSERT_EQ(talk.server.state(), Handshake::State::done);
  ASSERT_EQ(talk.client.state(), Handshake::State::done);
  EXPECT_EQ(talk.server.peer().ring, 64U * 1024);
  EXPECT_EQ(talk.server.peer().agreed_features & kSharesMemory, 0U);
  EXPECT_EQ(talk.client.peer().ring, 0U);
}

TEST(Secret, HS3_ProofsAreHmacSha256) {
  // RFC 4231, test case 2, the data cut into label and transcript.
  const std::string_view data = "ya want for nothing?";
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  const auto proof = make_proof(Secret("Jefe"), "what do ", {bytes, data.size()});
  ASSERT_TRUE(proof);
  const std::vector<int> expected = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                                     0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                                     0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
  for (std::size_t i = 0; i < proof->size(); ++i) EXPECT_EQ(std::to_integer<int>((*proof)[i]), expected[i]);
  EXPECT_NE(*random_nonce(), *random_nonce());
}

TEST(Secret, OnlyEqualBytesOfEqualLengthAreEqual) {
  const std::vector<std::byte> proof(32, std::byte{7});
  EXPECT_TRUE(equal_in_constant_time(proof, proof));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}}) {
    const auto start = std::span(proof).first(size);
    EXPECT_FALSE(equal_in_constant_time(start, proof)) << size;
    EXPECT_FALSE(equal_in_constant_time(proof, start)) << size;
  }
  std::vector<std::byte> other = proof;
  other.back() = std::byte{8};
  EXPECT_FALSE(equal_in_constant_time(proof, other));
}

}  // namespace
}  // namespace caftan::net::handshake_test

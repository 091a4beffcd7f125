// What a peer can send before it is known (BI-3): each ends the handshake with a typed error and allocates nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "caftan/net/internal/handshake.hpp"
#include "handshake_sides.hpp"

namespace caftan::net::handshake_hostile_test {
namespace {

using State = Handshake::State;

constexpr std::size_t kHeader = 13;

wire::Bytes to_bytes(std::string_view text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  return wire::Bytes(from, from + text.size());
}

wire::Bytes make_message(std::uint8_t kind, std::uint32_t size, std::string_view payload) {
  std::string text("CAFTAN\0\1", 8);
  text += static_cast<char>(kind);
  for (int i = 0; i < 4; ++i) text += static_cast<char>(size >> (8 * i));
  return to_bytes(text + std::string(payload));
}

Conversation make_recorded() {
  Conversation talk(make_client_side(), make_server_side());
  talk.run();
  EXPECT_EQ(talk.server.state(), State::done);
  return talk;
}

/// Feeds a fresh side and expects it to fail with `code`, without a reply if `is_silent`.
Handshake expect_failure(Handshake side, wire::ByteView in, Errc code, bool is_silent) {
  side.start();
  const auto step = side.feed(in);
  EXPECT_EQ(step.state, State::failed);
  EXPECT_EQ(side.error().code(), code) << side.error().message();
  EXPECT_EQ(step.send.empty(), is_silent);
  EXPECT_LE(step.consumed, in.size());
  return side;
}

Handshake make_client() { return *Handshake::client(make_client_side()); }
Handshake make_server() { return *Handshake::server(make_server_side()); }

TEST(HandshakeHostile, HS5_BytesOfAnotherProtocolAreDroppedWithoutAnAnswer) {
  for (const std::string_view text : {"GET / HTTP/1.1\r\n\r\n", "X", "CAFTAN 1"}) {
    const Handshake side = expect_failure(make_server(), to_bytes(text), Errc::malformed_payload, true);
    EXPECT_NE(side.error().text().find("magic"), std::string::npos);
  }
}

TEST(HandshakeHostile, TS6_AClientOfTlsLearnsThatTheServerSpeaksNone) {
  (void)expect_failure(make_server(), to_bytes("\x16\x03\x01\x02"), Errc::protocol_mismatch, false);
}

TEST(HandshakeHostile, HS5_TheFirstWrongByteIsEnough) {
  Handshake server = make_server();
  EXPECT_EQ(server.feed(to_bytes("CAFT")).state, State::hello);
  EXPECT_EQ(server.feed(to_bytes("U")).state, State::failed);
}

TEST(HandshakeHostile, HS5_RandomBytesFail) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    wire::Bytes in(1 + random() % 3000);
    for (std::byte& byte : in) byte = static_cast<std::byte>(random());
    // Every second input begins with the magic number, a random kind and a random size, so that it gets past the check
    // of the magic number.
    if (round % 2 == 0 && in.size() >= 9) {
      const wire::Bytes start = make_message(static_cast<std::uint8_t>(random() % 7), random() % 1100, "");
      std::copy(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(std::min(start.size(), in.size())),
                in.begin());
    }
    for (Handshake side : {make_server(), make_client()}) {
      side.start();
      const auto step = side.feed(in);
      ASSERT_NE(step.state, State::done);
      ASSERT_LE(step.consumed, kMaxHandshakeMessage);
      if (step.state == State::failed) {
        ASSERT_NE(side.error().code(), Errc::ok);
      }
    }
  }
}

TEST(HandshakeHostile, HS2_AnnouncedSizesAreCheckedBeforeThePayloadIsRead) {
  for (const std::uint32_t size : {1012U, 1024U, 65536U, 0x7fffffffU, 0xffffffffU}) {
    for (std::uint8_t kind = 1; kind <= 5; ++kind) {
      expect_failure(make_server(), make_message(kind, size, ""), Errc::malformed_payload, true);
      expect_failure(make_client(), make_message(kind, size, ""), Errc::malformed_payload, true);
    }
  }
  // A reader that takes size and the bytes behind it for one number of 64 bits would find 2^64 - 1 here.
  expect_failure(make_server(), make_message(1, 0xffffffffU, "\xff\xff\xff\xff"), Errc::malformed_payload, true);
}

TEST(HandshakeHostile, HS2_UnknownKindsAndWrongSizesFail) {
  for (const int kind : {0, 6, 255}) {
    expect_failure(make_server(), make_message(static_cast<std::uint8_t>(kind), 0, ""), Errc::malformed_payload, true);
  }
  expect_failure(make_server(), make_message(1, 3, "abc"), Errc::malformed_payload, true);
  expect_failure(make_server(), make_message(3, 31, ""), Errc::malformed_payload, true);
  expect_failure(make_client(), make_message(4, 1, "x"), Errc::malformed_payload, true);
  expect_failure(make_client(), make_message(5, 3, std::string_view("\x01\x05x", 3)), Errc::malformed_payload, true);
  expect_failure(make_client(), make_message(5, 4, "\x05\x01xy"), Errc::malformed_payload, true);
}

TEST(HandshakeHostile, HS5_MessagesOutOfTurnFail) {
  const Conversation talk = make_recorded();
  expect_failure(make_server(), talk.to_client, Errc::malformed_payload, true);
  expect_failure(make_client(), talk.to_server, Errc::malformed_payload, true);
  expect_failure(make_client(), make_message(4, 0, ""), Errc::malformed_payload, true);
  expect_failure(make_server(), make_message(3, 32, std::string(32, 'x')), Errc::malformed_payload, true);
}

TEST(HandshakeHostile, HS11_EveryTruncationWaitsAndThenNamesWhatIsMissing) {
  const Conversation talk = make_recorded();
  for (std::size_t size = 0; size < talk.to_server.size(); ++size) {
    Handshake server = make_server();
    ASSERT_NE(server.feed(wire::ByteView(talk.to_server).first(size)).state, State::done);
    ASSERT_EQ(server.closed().code(), Errc::peer_down);
  }
  for (std::size_t size = 0; size < talk.to_client.size(); ++size) {
    Handshake client = make_client();
    client.start();
    ASSERT_NE(client.feed(wire::ByteView(talk.to_client).first(size)).state, State::done);
    ASSERT_EQ(client.closed().code(), Errc::peer_down);
  }
}

TEST(HandshakeHostile, HS3_EveryFlippedBitOfAnyByteFails) {
  const Conversation talk = make_recorded();
  for (std::size_t bit = 0; bit < talk.to_server.size() * 8; ++bit) {
    wire::Bytes in = talk.to_server;
    in[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Handshake server = make_server();
    ASSERT_NE(server.feed(in).state, State::done) << "bit " << bit;
  }
  for (std::size_t bit = 0; bit < talk.to_client.size() * 8; ++bit) {
    wire::Bytes in = talk.to_client;
    in[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Handshake client = make_client();
    client.start();
    ASSERT_NE(client.feed(in).state, State::done) << "bit " << bit;
  }
}

TEST(HandshakeHostile, HS3_AReplayedClientIsNotAuthenticated) {
  const Conversation talk = make_recorded();
  HandshakeOptions fresh = make_server_side();
  fresh.nonce = make_nonces(5000);
  const Handshake server = expect_failure(*Handshake::server(fresh), talk.to_server, Errc::not_authenticated, false);
  EXPECT_NE(server.error().text().find("\"observer0\""), std::string::npos);
}

TEST(HandshakeHostile, HS3_AReplayedServerIsNotAuthenticated) {
  const Conversation talk = make_recorded();
  HandshakeOptions fresh = make_client_side();
  fresh.nonce = make_nonces(5000);
  expect_failure(*Handshake::client(fresh), talk.to_client, Errc::not_authenticated, false);
}

TEST(HandshakeHostile, HS3_AMirrorIsNotAPeer) {
  Handshake client = make_client();
  wire::Bytes echo = client.start();
  expect_failure(std::move(client), echo, Errc::malformed_payload, true);

  // The client gets its own hello back, with the kind changed to that of a server's hello and zero bytes where a proof
  // would be.
  Handshake again = make_client();
  echo = again.start();
  echo[8] = std::byte{2};
  echo.resize(echo.size() + sizeof(Proof), std::byte{0});
  echo[9] = static_cast<std::byte>((echo.size() - kHeader) & 0xff);
  echo[10] = static_cast<std::byte>((echo.size() - kHeader) >> 8);
  const auto step = again.feed(echo);
  EXPECT_EQ(step.state, State::failed);
  EXPECT_EQ(again.error().code(), Errc::not_authenticated);
  EXPECT_NE(again.error().text().find("echo"), std::string::npos);
}

TEST(HandshakeHostile, HS3_AServerThatAnswersForAnotherConnectionFails) {
  Conversation talk(make_client_side(), make_server_side());
  const wire::Bytes hello = talk.client.start();
  wire::Bytes answer = talk.server.feed(hello).send;
  answer[kHeader + 12] = std::byte{2};  // the purpose
  EXPECT_EQ(talk.client.feed(answer).state, State::failed);
  EXPECT_EQ(talk.client.error().code(), Errc::protocol_mismatch);
}

TEST(HandshakeHostile, HS6_AHelloOfAnotherVersionIsReadNoFurtherThanItsRange) {
  const std::string hello("\x07\x00\x09\x00 whatever version 7 to 9 puts here", 38);
  const Handshake server = expect_failure(
      make_server(), make_message(1, static_cast<std::uint32_t>(hello.size()), hello), Errc::protocol_mismatch, false);
  EXPECT_NE(server.error().text().find("7 to 9"), std::string::npos);
}

TEST(HandshakeHostile, HS6_FieldsThatALaterVersionAppendsAreSkipped) {
  Handshake client = make_client();
  wire::Bytes hello = client.start();
  hello.resize(hello.size() + 40, std::byte{0x55});
  const std::size_t size = hello.size() - kHeader;
  hello[9] = static_cast<std::byte>(size & 0xff);
  hello[10] = static_cast<std::byte>(size >> 8);
  Handshake server = make_server();
  EXPECT_EQ(server.feed(hello).state, State::proof);
}

TEST(HandshakeHostile, HS6_AHelloWithoutSettingsIsOneThatSaysNothing) {
  HandshakeOptions older = make_client_side();
  older.self.features &= ~kSaysSegments;  // without this feature no field follows the settings
  Handshake client = *Handshake::client(std::move(older));
  wire::Bytes hello = client.start();
  hello.pop_back();  // their size, which is 0
  const std::size_t size = hello.size() - kHeader;
  hello[9] = static_cast<std::byte>(size & 0xff);
  hello[10] = static_cast<std::byte>(size >> 8);
  Handshake server = make_server();
  EXPECT_EQ(server.feed(hello).state, State::proof);
  EXPECT_EQ(server.peer().settings, "");
}

TEST(HandshakeHostile, HS7_ARejectIsCutCleanedAndNeverOpensAnything) {
  std::string text = "\x05\x0a";
  text += "bad\nline\x1b[";
  const Handshake client = expect_failure(make_client(), make_message(5, 12, text), Errc::unknown_worker, true);
  EXPECT_EQ(client.error().text(), "refused by the server: bad?line?[");

  const Handshake later =
      expect_failure(make_client(), make_message(5, 4, "\xfa\x02no"), Errc::protocol_mismatch, true);
  EXPECT_EQ(later.error().text(), "refused by the server: no (error code 250)");
  const Handshake zero =
      expect_failure(make_client(), make_message(5, 2, std::string_view("\0\0", 2)), Errc::protocol_mismatch, true);
  EXPECT_NE(zero.error().text().find("error code 0"), std::string::npos);

  HandshakeOptions server = make_server_side();
  server.accept = [](const PeerInfo&) { return Result<void>(Error(Errc::overloaded, std::string(5000, 'x'))); };
  Conversation talk(make_client_side(), server);
  talk.run();
  EXPECT_EQ(talk.client.error().code(), Errc::overloaded);
  EXPECT_EQ(talk.client.error().text().size(), std::string("refused by the server: ").size() + kMaxRejectText);
}

TEST(HandshakeHostile, HS2_FieldsOutOfTheirRangeFail) {
  const wire::Bytes good = make_client().start();
  const auto expect_malformed = [&](std::size_t at, std::vector<int> bytes) {
    wire::Bytes hello = good;
    for (std::size_t i = 0; i < bytes.size(); ++i) hello[kHeader + at + i] = static_cast<std::byte>(bytes[i]);
    expect_failure(make_server(), hello, Errc::malformed_payload, true);
  };
  expect_malformed(0, {0, 0});                     // lowest version
  expect_malformed(0, {9, 0, 1, 0});               // lowest above highest
  expect_malformed(12, {0});                       // purpose
  expect_malformed(12, {4});                       //
  expect_malformed(17, {0, 0, 0, 0, 0, 0, 0, 0});  // incarnation
  expect_malformed(33, {0, 0, 0, 0, 0, 0, 0, 0});  // message limit
  expect_malformed(49, {0, 0, 0, 0, 0, 0, 0, 0});  // window
  expect_malformed(89, {0});                       // cluster: empty
  expect_malformed(89, {255});                     // cluster: beyond the end
  expect_malformed(90, {'\n'});                    // cluster: a control character
}

TEST(HandshakeHostile, HS2_ControlCharactersInAddressOrSettingsFail) {
  for (const std::string what : {"address", "settings"}) {
    HandshakeOptions options = make_client_side();
    (what == "address" ? options.self.address : options.self.settings) = "~";
    wire::Bytes hello = Handshake::client(options).value().start();
    const auto at = std::find(hello.begin() + kHeader + 89, hello.end(), std::byte{'~'});
    ASSERT_NE(at, hello.end());
    *at = std::byte{'\n'};
    const Handshake server = expect_failure(make_server(), hello, Errc::malformed_payload, true);
    EXPECT_EQ(server.error().text(), "handshake: an address or settings have control characters");
  }
}

}  // namespace
}  // namespace caftan::net::handshake_hostile_test

// The corpus of the fuzz target is made here and kept in the tree; so it also guards the layout of the handshake.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "caftan/net/internal/handshake.hpp"
#include "handshake_sides.hpp"

namespace caftan::net::handshake_corpus_test {
namespace {

enum Side : char { to_server = 0, to_client = 1 };

std::string make_input(Side side, int piece, wire::ByteView bytes) {
  std::string input(1, static_cast<char>(side | piece << 1));
  return input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::map<std::string, std::string> make_corpus() {
  std::map<std::string, std::string> corpus;
  Conversation good(make_client_side(), make_server_side());
  good.run();
  corpus["accepted_to_server"] = make_input(to_server, 0, good.to_server);
  corpus["accepted_to_client"] = make_input(to_client, 0, good.to_client);
  corpus["accepted_to_server_in_pieces"] = make_input(to_server, 7, good.to_server);
  corpus["client_hello_alone"] = make_input(to_server, 0, Handshake::client(make_client_side())->start());

  HandshakeOptions older = make_client_side();
  older.self.features = 0b110;  // without kSaysSegments
  Conversation mixed(std::move(older), make_server_side());
  mixed.run();
  corpus["accepted_to_server_without_segments"] = make_input(to_server, 0, mixed.to_server);

  HandshakeOptions sharing = make_client_side();
  sharing.self.features |= kSharesMemory;
  sharing.self.ring = 64 * 1024;
  Conversation shared(std::move(sharing), make_server_side());
  shared.run();
  corpus["accepted_to_server_with_ring"] = make_input(to_server, 0, shared.to_server);

  HandshakeOptions taking = make_client_side();
  taking.self.features |= kSharesMemory | kTakesLent;
  taking.self.ring = 64 * 1024;
  Conversation lending(std::move(taking), make_server_side());
  lending.run();
  corpus["accepted_to_server_that_takes_lent"] = make_input(to_server, 0, lending.to_server);

  HandshakeOptions other_secret = make_client_side();
  other_secret.secret = Secret("wrong");
  Conversation refused(std::move(other_secret), make_server_side());
  refused.run();
  corpus["wrong_secret_to_server"] = make_input(to_server, 0, refused.to_server);

  HandshakeOptions other_cluster = make_client_side();
  other_cluster.self.cluster = "phold";
  Conversation stranger(std::move(other_cluster), make_server_side());
  stranger.run();
  corpus["wrong_cluster_to_client"] = make_input(to_client, 0, stranger.to_client);
  return corpus;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// With CAFTAN_UPDATE_CORPUS=1 the files are written instead; a change of the layout, other than a field behind the last
// one, also needs a new protocol version.
TEST(HandshakeCorpus, HS6_TheStoredTranscriptsAreThoseThisVersionSpeaks) {
  for (const auto& [name, input] : make_corpus()) {
    const std::string path = std::string(CAFTAN_CORPUS) + "/" + name;
    if (std::getenv("CAFTAN_UPDATE_CORPUS")) std::ofstream(path, std::ios::binary) << input;
    EXPECT_EQ(read_file(path), input) << name;
  }
}

TEST(HandshakeCorpus, HS8_TheStoredTranscriptsOpenBothSides) {
  const std::string server_input = read_file(std::string(CAFTAN_CORPUS) + "/accepted_to_server");
  const std::string client_input = read_file(std::string(CAFTAN_CORPUS) + "/accepted_to_client");
  Conversation talk(make_client_side(), make_server_side());
  talk.client.start();
  const auto view = [](const std::string& input) {
    return wire::ByteView(reinterpret_cast<const std::byte*>(input.data()) + 1, input.size() - 1);
  };
  ASSERT_GT(server_input.size(), 1U);
  ASSERT_GT(client_input.size(), 1U);
  EXPECT_EQ(talk.server.feed(view(server_input)).state, Handshake::State::done);
  EXPECT_EQ(talk.client.feed(view(client_input)).state, Handshake::State::done);
}

}  // namespace
}  // namespace caftan::net::handshake_corpus_test

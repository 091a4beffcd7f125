// The files of `caftan certs` are such as TLS takes.
#include "certs/certs.hpp"

#include <gtest/gtest.h>

#include "caftan/net/internal/tls_engine.hpp"
#include "folder.hpp"

namespace caftan::certs::certs_test {
namespace {

TEST(Certs, TheFilesOfTwoHostsAgree) {
  const test::Folder folder;
  const Wish wish = parse(std::vector<std::string>{folder / "tls", "--hosts", "head,192.0.2.11"}).value();
  ASSERT_TRUE(write(wish));
  const auto keys = [&](const std::string& host) {
    net::TlsKeys made;
    made.cluster = "test";
    made.files = {wish.folder / (host + ".pem"), wish.folder / (host + ".key"), wish.folder / "authority.pem"};
    return made;
  };
  auto client = net::TlsEngine::client(keys("192.0.2.11")).value();
  auto server = net::TlsEngine::server(keys("head")).value();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(server.feed(client.take_outgoing()));
    ASSERT_TRUE(client.feed(server.take_outgoing()));
  }
  ASSERT_TRUE(client.is_open() && server.is_open());
  EXPECT_EQ(client.peer_names(), std::vector<std::string>{"head"});
  EXPECT_EQ(server.peer_names(), std::vector<std::string>{"192.0.2.11"});
  EXPECT_EQ(std::filesystem::status(wish.folder / "head.key").permissions() & std::filesystem::perms(077),
            std::filesystem::perms::none);
}

TEST(Certs, NothingIsOverwritten) {
  const test::Folder folder;
  const auto again = write({.folder = folder.path(), .hosts = {"head"}});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().text().find("exists, and nothing is overwritten"), std::string::npos);
}

TEST(Certs, WordsThatAreWrongAreNamed) {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{}, Words{"tls"}, Words{"tls", "--hosts"}, Words{"tls", "--hosts", "a,,b"}, Words{"tls", "--hosts", "a,a"},
        Words{"tls", "--hosts", "../a"}, Words{"a", "b"}, Words{"tls", "--host", "a"}}) {
    const auto wish = parse(words);
    ASSERT_FALSE(wish);
    EXPECT_EQ(wish.error().code(), Errc::invalid_config);
  }
}

}  // namespace
}  // namespace caftan::certs::certs_test

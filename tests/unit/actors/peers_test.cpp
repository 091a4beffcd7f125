#include "worker/peers.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace caftan::test::peers_test {
namespace {

constexpr std::uint32_t kPeers = 1000;
constexpr WorkerLife life_of(std::uint32_t peer) { return {{peer}, {100 + peer}}; }

/// A session with each of many peers, and two more with the peer 500.
std::map<rpc::PeerSession, std::shared_ptr<int>> make_sessions() {
  std::map<rpc::PeerSession, std::shared_ptr<int>> sessions;
  for (std::uint32_t peer = 0; peer < kPeers; ++peer) sessions[{life_of(peer), 1}] = std::make_shared<int>(1);
  for (const int connection : {2, 3}) {
    sessions[{life_of(500), static_cast<std::uint64_t>(connection)}] = std::make_shared<int>(connection);
  }
  return sessions;
}

TEST(Peers, SE24_LooksOnlyAtTheSessionsOfTheLifeThatLostOne) {
  const auto sessions = make_sessions();
  int looks = 0;
  const auto find = [&](const WorkerLife& peer, int first_usable) {
    looks = 0;
    return actors::first_session_with(sessions, peer,
                                      [&](int connection) { return ++looks, connection >= first_usable; });
  };
  const auto other = find(life_of(500), 2);
  ASSERT_TRUE(other);
  EXPECT_EQ(*other, 2);
  EXPECT_EQ(looks, 2);
  EXPECT_FALSE(find(life_of(500), 4));
  EXPECT_EQ(looks, 3);
  EXPECT_FALSE(find(life_of(kPeers - 1), 2));
  EXPECT_EQ(looks, 1);
  EXPECT_FALSE(find({{500}, {7}}, 1)) << "another life of the peer";
  EXPECT_EQ(looks, 0);
}

}  // namespace
}  // namespace caftan::test::peers_test

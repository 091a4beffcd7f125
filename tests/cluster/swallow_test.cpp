// References are counted by the actors' monitors: when the network drops the frames that end a monitor, references
// leak, and these tests detect the leak.
#include <gtest/gtest.h>

#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "rref_roles.hpp"

namespace caftan::test::swallow_test {
namespace {

class Swallowed : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  /// worker0 shares a value of worker1 with worker2, then all handles are dropped. Returns the references that are
  /// left.
  std::string share_and_drop() {
    {
      RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
      RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
      shelf.rpc_sync<&Shelf::put>(r);
      EXPECT_EQ(shelf.rpc_sync<&Shelf::read_all>(), 3);
    }
    cluster_.run_until_idle();
    return live(cluster_, 3);
  }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_rref_registry};
  testing::Network& net_ = cluster_.network();
};
INSTANTIATE_TEST_SUITE_P(Seeds, Swallowed, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Swallowed, NothingIsLeftWhenNothingIsSwallowed) {
  EXPECT_EQ(share_and_drop(), "0/0 0/0 0/0");
  EXPECT_GT(net_.count(wire::FrameKind::down), 0U);
}

TEST_P(Swallowed, RR7_WithoutDownsAndExitsTheValuesLeak) {
  net_.filter_all([](const testing::Frame& frame) {
    return frame.header.kind != wire::FrameKind::down && frame.header.kind != wire::FrameKind::exit;
  });
  share_and_drop();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 1U);
  EXPECT_EQ(cluster_[2].counters().owner_rrefs, 1U);
}

TEST_P(Swallowed, RR5_WithoutAcceptTheParentStaysPinned) {
  const std::uint64_t accept = remote::MessageRegistry::id_of("rref.accept");
  net_.filter_all([accept](const testing::Frame& frame) {
    constexpr std::size_t kAddresses = 2 * (1 + 4 + 8 + 8);
    if (frame.header.kind != wire::FrameKind::actor_message) return true;
    std::uint64_t id = 0;
    std::memcpy(&id, frame.payload().data() + kAddresses, sizeof id);
    return id != accept;
  });
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
    shelf.rpc_sync<&Shelf::put>(r);
  }
  cluster_.run_until_idle();
  // worker0 has dropped its handle of the reference, but its fork lives until the child's acceptance has come.
  EXPECT_EQ(cluster_[0].counters().user_rrefs, 2U);
  EXPECT_EQ(shelf.rpc_sync<&Shelf::read_all>(), 3);
  // The child fork at worker2 ends; its exit frees the parent fork at worker0 (L1).
  shelf.rpc_sync<&Shelf::clear>();
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[0].counters().user_rrefs, 1U);
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U);
}

}  // namespace
}  // namespace caftan::test::swallow_test

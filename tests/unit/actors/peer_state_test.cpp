// Which session calls to a member use.
#include "worker/peer_state.hpp"

#include <gtest/gtest.h>

#include "session_side.hpp"

namespace caftan::actors::peer_state_test {
namespace {

TEST(PeerState, TheEndOfAnEarlierLifeLeavesTheSessionOfTheNextOne) {
  transport::SteppedExecutor executor(1);
  const auto connect = [&executor] {
    return transport::SessionSide(executor, WorkerId{1}, transport::make_loopback_pair(executor).first,
                                  transport::SessionOptions());
  };
  const transport::SessionSide earlier = connect();
  const transport::SessionSide next = connect();
  PeerState peer(WorkerId{1}, "b");
  peer.set_session(next.session);
  peer.replace_session(*earlier.session, nullptr);
  EXPECT_EQ(peer.session(), next.session);
  peer.replace_session(*next.session, earlier.session);
  EXPECT_EQ(peer.session(), earlier.session);
}

}  // namespace
}  // namespace caftan::actors::peer_state_test

// The root actor of a worker: what peers send it before they know any other actor.
#include "worker/root_actor.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "exchange_pair.hpp"
#include "service/member_ports.hpp"

namespace caftan::actors::root_actor_test {
namespace {

constexpr ForkId kFork{WorkerId{1}, Incarnation{2}, 4};

/// Keeps what the root actor passes on.
class ScriptedWorker final : public RootPorts, public LeavePorts, public ForkRequestPorts {
 public:
  void on_view(const transport::Session&, const net::View& view) override { views.push_back(view.revision); }
  void on_met(transport::Session&) override { ++met; }
  void on_report(const transport::Session&, const net::LeaveReport& report) override { rounds.push_back(report.round); }
  void on_returned(const transport::Session& from) override { returned.push_back(from.peer().life.id.value); }
  void on_lost(const PeerLost& peer) override { lost.push_back(peer.session->peer().life.id.value); }
  bool on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                         const caf::strong_actor_ptr& child) override {
    EXPECT_TRUE(child);
    requests.emplace_back(message.fork, asker);
    return parks;
  }
  void asker_gone(const ForkId& fork, const rpc::PeerSession& session) override { gone.emplace_back(fork, session); }

  bool parks = true;
  int met = 0;
  std::vector<std::uint64_t> views;
  std::vector<std::uint64_t> rounds;
  std::vector<std::uint32_t> returned;
  std::vector<std::uint32_t> lost;
  std::vector<std::pair<ForkId, rpc::PeerSession>> requests;
  std::vector<std::pair<ForkId, rpc::PeerSession>> gone;
};

class RootActorTest : public ::testing::Test {
 protected:
  RootActorTest() {
    actor_ = pair_.near->host.spawn(root_actor, &worker_, &worker_, &worker_);
    sender_ = pair_.proxy(remote::Address::of(kFork));
  }
  ~RootActorTest() override {
    sender_ = nullptr;
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    executor_.run();
  }

  template <class Message>
  void receive(Message message) {
    caf::actor_cast<caf::strong_actor_ptr>(actor_)->enqueue(sender_, caf::make_message_id(),
                                                            caf::make_message(std::move(message)), nullptr);
    executor_.run();
  }
  void lose_the_session() {
    pair_.near->session->abort(Error(Errc::peer_down, "cut"));
    executor_.run();
  }

  transport::SteppedExecutor executor_{1};
  ExchangePair pair_{executor_};
  ScriptedWorker worker_;
  caf::strong_actor_ptr sender_;
  caf::actor actor_;
};

TEST_F(RootActorTest, PassesOnViewsAndReports) {
  receive(net::View{3, {}});
  receive(net::Met{});
  receive(net::LeaveReport{1, 2, 3});
  receive(net::RunReturned{});
  receive(PeerLost{pair_.near->session, Error(Errc::peer_down, "cut")});
  EXPECT_EQ(worker_.views, std::vector<std::uint64_t>{3});
  EXPECT_EQ(worker_.met, 1);
  EXPECT_EQ(worker_.rounds, std::vector<std::uint64_t>{2});
  EXPECT_EQ(worker_.returned, std::vector<std::uint32_t>{pair_.near->session->peer().life.id.value});
  EXPECT_EQ(worker_.lost, std::vector<std::uint32_t>{pair_.near->session->peer().life.id.value});
}

TEST_F(RootActorTest, AMessageWithoutASessionIsDropped) {
  sender_ = nullptr;
  receive(net::View{3, {}});
  receive(net::Met{});
  receive(net::LeaveReport{1, 2, 3});
  receive(net::RunReturned{});
  receive(ForkRequested{{}, {}, kFork, {}});
  EXPECT_TRUE(worker_.views.empty());
  EXPECT_TRUE(worker_.rounds.empty());
  EXPECT_TRUE(worker_.returned.empty());
  EXPECT_EQ(worker_.met, 0);
  EXPECT_TRUE(worker_.requests.empty());
}

TEST_F(RootActorTest, RR9_AParkedRequestGoesWithItsAsker) {
  const rpc::PeerSession asker = peer_session(*pair_.near->session);
  receive(ForkRequested{{}, {}, kFork, {}});
  ASSERT_EQ(worker_.requests.size(), 1U);
  EXPECT_EQ(worker_.requests[0].second, asker);
  EXPECT_TRUE(worker_.gone.empty());
  lose_the_session();
  ASSERT_EQ(worker_.gone.size(), 1U);
  EXPECT_EQ(worker_.gone[0], std::make_pair(kFork, asker));
}

TEST_F(RootActorTest, ARequestThatWasTakenIsNotWatched) {
  worker_.parks = false;
  receive(ForkRequested{{}, {}, kFork, {}});
  lose_the_session();
  EXPECT_EQ(worker_.requests.size(), 1U);
  EXPECT_TRUE(worker_.gone.empty());
}

TEST_F(RootActorTest, NoExitButThatOfItsWorkerEndsIt) {
  caf::anon_send_exit(actor_, caf::exit_reason::remote_link_unreachable);
  receive(net::Met{});
  EXPECT_EQ(worker_.met, 1);
  caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  receive(net::Met{});
  EXPECT_EQ(worker_.met, 1);
}

}  // namespace
}  // namespace caftan::actors::root_actor_test

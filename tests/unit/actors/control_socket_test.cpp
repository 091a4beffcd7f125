// What the launcher and its worker processes say to each other arrives whole, and an end is noticed.
#include "launch/control_socket.hpp"

#include <gtest/gtest.h>

#include <variant>

namespace caftan::actors::control_socket_test {
namespace {

TEST(ControlSocket, CarriesEventsAndCommandsWhole) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const run::PeerLost lost{std::string(30000, 'x'), Error(Errc::peer_down, "observer-0", "gone")};
  ASSERT_TRUE(pair->first.send(run::Event{.worker = 3, .body = lost}));
  const auto event = pair->second.receive_event();
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->worker, 3U);
  const auto* const received = std::get_if<run::PeerLost>(&(*event)->body);
  ASSERT_NE(received, nullptr);
  EXPECT_EQ(received->peer, lost.peer);
  EXPECT_EQ(received->error.message(), lost.error.message());
  ASSERT_TRUE(pair->second.send(run::Assign{.workers = {1, 2}, .secret = "s"}));
  const auto command = pair->first.receive_command();
  ASSERT_TRUE(command);
  const auto* const assigned = std::get_if<run::Assign>(&*command);
  ASSERT_NE(assigned, nullptr);
  EXPECT_EQ(assigned->workers, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(assigned->secret, "s");
}

TEST(ControlSocket, APacketThatIsLongerThanTheReaderTakesIsNotSent) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const auto sent = pair->first.send(run::Event{.body = run::Report{std::string(128 * 1024, 'x')}});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::limit_exceeded);
  const auto nothing = pair->second.receive_event();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
}

TEST(ControlSocket, RN5_SaysWhenTheOtherSideIsGone) {
  auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const auto nothing = pair->first.receive_event();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  { const ControlSocket gone = std::move(pair->second); }
  EXPECT_EQ(pair->first.receive_event().error().code(), Errc::peer_down);
  EXPECT_EQ(pair->first.receive_command().error().code(), Errc::peer_down);
  EXPECT_EQ(pair->first.send(run::Stop{}).error().code(), Errc::peer_down);
}

TEST(ControlSocket, RN1_ASignOfLifeNeverWaitsForRoom) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  Result<void> sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = pair->first.offer({.body = run::Alive{}});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::overloaded);
}

TEST(ControlSocket, ACommandThatDoesNotComeInTimeIsNoError) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const auto nothing = pair->first.receive_command(base::TimePoint{});
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  ASSERT_TRUE(pair->second.send(run::Leave{}));
  const auto command = pair->first.receive_command(base::kNever);
  ASSERT_TRUE(command && *command);
  EXPECT_TRUE(std::holds_alternative<run::Leave>(**command));
}

TEST(ControlSocket, DoesNotWaitForALauncherThatDoesNotRead) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  Result<void> sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = pair->first.send(run::Stop{});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::overloaded);
}

}  // namespace
}  // namespace caftan::actors::control_socket_test

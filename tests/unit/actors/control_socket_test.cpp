// What the launcher and its worker processes say to each other arrives whole, and an end is noticed.
#include "launch/control_socket.hpp"

#include <gtest/gtest.h>

namespace caftan::actors {
namespace {

TEST(ControlSocket, CarriesEventsAndCommandsWhole) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const RunEvent sent{.kind = RunEventKind::returned,
                      .worker = 3,
                      .done = -1,
                      .total = 2,
                      .text = std::string(30000, 'x'),
                      .values = {{"reward", 1.5}},
                      .error = Error(Errc::peer_down, "observer-0", "gone")};
  ASSERT_TRUE(pair->first.send(sent));
  const auto event = pair->second.receive_event();
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->text, sent.text);
  EXPECT_EQ((*event)->values, sent.values);
  EXPECT_EQ((*event)->error.message(), sent.error.message());
  ASSERT_TRUE(pair->second.send(RunCommand{.kind = RunCommandKind::assign, .workers = {1, 2}, .secret = "s"}));
  const auto command = pair->first.receive_command();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->workers, (std::vector<std::uint32_t>{1, 2}));
}

TEST(ControlSocket, APacketThatIsLongerThanTheReaderTakesIsNotSent) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const auto sent = pair->first.send(RunEvent{.kind = RunEventKind::returned, .text = std::string(128 * 1024, 'x')});
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
  EXPECT_EQ(pair->first.send(RunCommand{}).error().code(), Errc::peer_down);
}

TEST(ControlSocket, RN1_ASignOfLifeNeverWaitsForRoom) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  Result<void> sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = pair->first.offer({.kind = RunEventKind::alive});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::overloaded);
}

TEST(ControlSocket, ACommandThatDoesNotComeInTimeIsNoError) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  const auto nothing = pair->first.receive_command(TimePoint{});
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  ASSERT_TRUE(pair->second.send(RunCommand{.kind = RunCommandKind::leave}));
  const auto command = pair->first.receive_command(kNever);
  ASSERT_TRUE(command && *command);
  EXPECT_EQ((*command)->kind, RunCommandKind::leave);
}

TEST(ControlSocket, DoesNotWaitForALauncherThatListensToNobody) {
  const auto pair = ControlSocket::make_pair();
  ASSERT_TRUE(pair);
  Result<void> sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = pair->first.send(RunCommand{});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::overloaded);
}

}  // namespace
}  // namespace caftan::actors

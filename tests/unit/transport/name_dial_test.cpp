// SE-39: a name in an address is looked up beside the runners, and all of its addresses are tried.
#include "channels/name_dial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "caftan/transport/threaded_executor.hpp"

namespace caftan::transport::name_dial_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Names = Result<std::vector<std::string>>;

/// A kind whose addresses end as their text says: "down", "late", "refused".
void dial_nowhere(PollingExecutor&, const std::string& address, net::HandshakeOptions, const std::string& peer,
                  HandshakeIoOptions, HandshakeDone done) {
  const Errc code = address.starts_with("down")   ? Errc::peer_down
                    : address.starts_with("late") ? Errc::timeout
                                                  : Errc::not_authenticated;
  done(Error(code, peer + " at " + address));
}

ChannelKind kind_with(Names (*look_up)(const std::string& address)) {
  ChannelKind kind{};
  kind.dial = dial_nowhere;
  kind.look_up = look_up;
  return kind;
}

Error outcome(const ChannelKind& kind) {
  std::promise<Error> ended;
  ThreadedExecutor executor({.runners = 1});
  dial_by_name(executor, kind, "fake:name", {}, "echo", {},
               [&](const Result<Accepted>& result) { ended.set_value(result.error()); });
  return ended.get_future().get();
}

TEST(NameDial, SE39_EachAddressIsTriedAndAllFailuresAreNamed) {
  const Error error = outcome(kind_with([](const std::string&) -> Names {
    return std::vector<std::string>{"down:1", "late:2", "down:3"};
  }));
  EXPECT_EQ(error.code(), Errc::peer_down);
  EXPECT_THAT(error.text(),
              AllOf(HasSubstr("none of the 3 addresses of fake:name answers"), HasSubstr("echo at down:1"),
                    HasSubstr("echo at late:2"), HasSubstr("echo at down:3")));
}

TEST(NameDial, SE39_AnAddressThatAnswersEndsTheTries) {
  const Error error = outcome(kind_with([](const std::string&) -> Names {
    return std::vector<std::string>{"down:1", "refused:2", "down:3"};
  }));
  EXPECT_EQ(error.code(), Errc::not_authenticated);
  EXPECT_EQ(error.text(), "echo at refused:2");
}

TEST(NameDial, SE39_AnUnknownNameIsAPeerThatIsNotThereYet) {
  const Error error =
      outcome(kind_with([](const std::string&) -> Names { return Error(Errc::peer_down, "unknown as yet"); }));
  EXPECT_EQ(error.code(), Errc::peer_down);
  EXPECT_EQ(error.text(), "unknown as yet");
}

std::promise<void>& name_service() {
  static std::promise<void> promise;
  return promise;
}

TEST(NameDial, SE39_NoRunnerWaitsForTheNameServiceAndTheEndOfTheExecutorNeither) {
  const ChannelKind kind = kind_with([](const std::string&) -> Names {
    name_service().get_future().wait();
    return std::vector<std::string>{"down:1"};
  });
  {
    ThreadedExecutor executor({.runners = 1});
    dial_by_name(executor, kind, "fake:name", {}, "echo", {}, [](const Result<Accepted>&) { ADD_FAILURE(); });
    std::promise<void> ran;
    executor.post([&ran] { ran.set_value(); });
    ran.get_future().wait();
  }
  name_service().set_value();
}

TEST(NameDial, SE39_OnlyNamesOfTcpAreLookedUp) {
  ThreadedExecutor executor({.runners = 1});
  for (const char* const address : {"tcp:localhost:1", "tcp:127.0.0.1:1", "tcp:[::1]:1"}) {
    std::promise<Error> ended;
    dial(executor, address, {}, "echo", {}, [&](const Result<Accepted>& result) { ended.set_value(result.error()); });
    EXPECT_NE(ended.get_future().get().code(), Errc::ok) << address;
  }
}

}  // namespace
}  // namespace caftan::transport::name_dial_test

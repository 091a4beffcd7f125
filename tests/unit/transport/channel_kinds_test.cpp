// What can be said of an address before a connection is made: for which kind of channel it is, and whether a worker can
// be reached there.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caftan/transport/internal/endpoint.hpp"

namespace caftan::transport::channel_kinds_test {
namespace {

TEST(ChannelKinds, AnUnknownFormIsRefusedWithTheKnownOnes) {
  for (const std::string& address : std::vector<std::string>{"pipe:1", "tcp:", "tcp:host", "ucx:host", "/path", ""}) {
    const auto checked = check_address(address);
    ASSERT_FALSE(checked) << address;
    EXPECT_EQ(checked.error().code(), Errc::invalid_config);
    EXPECT_EQ(checked.error().text(),
              "'" + address + "' is no address: use shm:/path or unix:/path or tcp:host:port or ucx:host:port");
  }
}

TEST(ChannelKinds, EachKindJudgesItsOwnAddresses) {
  EXPECT_TRUE(check_address("unix:/run/a"));
  EXPECT_TRUE(check_address("shm:/run/a"));
  EXPECT_EQ(check_address("shm:").error().text(), "'shm:': the path of a Unix socket has 1 to 107 bytes");
  EXPECT_TRUE(check_address("tcp:[::1]:0"));
  EXPECT_EQ(check_address("unix:").error().text(), "'unix:': the path of a Unix socket has 1 to 107 bytes");
  EXPECT_TRUE(check_address("ucx:[::1]:0"));
  EXPECT_EQ(check_address("tcp:host:65536").error().text(), "'tcp:host:65536': a port is a number from 0 to 65535");
}

TEST(ChannelKinds, AnAddressLeadsSomewhereUnlessItsPortIsChosenLater) {
  EXPECT_TRUE(is_dialable("unix:/run/a"));
  EXPECT_TRUE(is_dialable("shm:/run/a"));
  EXPECT_TRUE(is_dialable("tcp:127.0.0.1:29500"));
  EXPECT_FALSE(is_dialable("tcp:127.0.0.1:0"));
  EXPECT_TRUE(is_dialable("ucx:127.0.0.1:29500"));
  EXPECT_FALSE(is_dialable("ucx:127.0.0.1:0"));
  EXPECT_FALSE(is_dialable(""));
}

TEST(ChannelKinds, OnlyHostAndPortReachBeyondTheHost) {
  EXPECT_FALSE(is_beyond_loopback("unix:/run/a"));
  EXPECT_FALSE(is_beyond_loopback("shm:/run/a"));
  EXPECT_FALSE(is_beyond_loopback("tcp:127.0.0.1:0"));
  EXPECT_FALSE(is_beyond_loopback("tcp:[::1]:0"));
  EXPECT_TRUE(is_beyond_loopback("tcp:192.0.2.1:0"));
  EXPECT_FALSE(is_beyond_loopback("ucx:127.0.0.1:0"));
  EXPECT_TRUE(is_beyond_loopback("ucx:192.0.2.1:0"));
  EXPECT_FALSE(is_beyond_loopback(""));
}

}  // namespace
}  // namespace caftan::transport::channel_kinds_test

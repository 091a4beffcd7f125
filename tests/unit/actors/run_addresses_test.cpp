// RN-10: the folder of sockets of a run is removed once each worker has a session with every other, or at the end of
// the run.
#include "launch/run_addresses.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "caftan/transport/internal/endpoint.hpp"

namespace caftan::actors::run_addresses_test {
namespace {

/// Addresses of a run over Unix sockets. The first removal of their folder has failed, because the folder has an entry
/// that the run has not made.
class RunAddressesTest : public ::testing::Test {
 protected:
  RunAddressesTest() {
    app::Plan plan;
    plan.workers.resize(1);
    plan.workers[0].name = "agent";
    addresses_.emplace(RunAddresses::make(app::Application(), plan).value());
    const std::string address = addresses_->addresses_for(plan, WorkerId{0}, {}).front().address;
    folder_ = std::filesystem::path(address.substr(address.find(':') + 1)).parent_path();
    std::filesystem::create_directory(in_the_way());
    addresses_->remove_sockets();
  }
  std::filesystem::path in_the_way() const { return folder_ / "in the way"; }

  std::optional<RunAddresses> addresses_;
  std::filesystem::path folder_;
};

TEST_F(RunAddressesTest, K8_RN10_AFolderThatCouldNotBeRemovedIsRemovedByTheNextTry) {
  EXPECT_TRUE(std::filesystem::exists(folder_));
  std::filesystem::remove(in_the_way());
  addresses_->remove_sockets();
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(RunAddressesTest, K8_RN10_AFolderThatCouldNotBeRemovedIsRemovedAtTheEnd) {
  std::filesystem::remove(in_the_way());
  addresses_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST(LoopbackWarning, AFirstHostThatOthersCannotReachIsNamed) {
  app::Application application;
  application.run.placement = app::Placement::hosts;
  application.hosts.resize(2);
  application.hosts[0].name = "head";
  application.hosts[1].name = "node";
  const auto warning = [&](const std::string& first, const std::string& second) {
    application.hosts[0].address = first;
    application.hosts[1].address = second;
    return loopback_warning(application);
  };
  const std::string like_a_name = "2130706433";  // 127.0.0.1, as a name of /etc/hosts may lead there
  EXPECT_NE(
      warning(like_a_name, "192.0.2.7").find("hosts.head.address, '2130706433', is an address of this machine alone"),
      std::string::npos);
  EXPECT_EQ(warning("192.0.2.6", "192.0.2.7"), "");
  EXPECT_EQ(warning("127.0.0.1", "192.0.2.7"), "") << "as it was written";
  EXPECT_EQ(warning(like_a_name, "127.0.0.1"), "") << "all on one machine";
  EXPECT_EQ(warning(like_a_name, like_a_name), "");
}

TEST(AboutChannel, WithSeveralHostsItSaysWhyWorkersOfOneTalkOverTcp) {
  app::Application application;
  app::Plan plan;
  plan.workers.resize(3);
  plan.workers[0].host = plan.workers[1].host = "head";
  plan.workers[2].host = "node1";
  application.run.placement = app::Placement::hosts;
  EXPECT_EQ(about_channel(application, plan), "also between workers of one host: no shm, no unix with placement hosts");
  plan.workers[1].host = "node2";
  EXPECT_EQ(about_channel(application, plan), "");
  application.run.placement = app::Placement::one_process;
  EXPECT_EQ(about_channel(application, plan), "");
}

TEST(Addresses, NameTheKindOfChannelThatTheFileChoosesAndTheMachineHas) {
  app::Application application;
  app::Plan plan;
  plan.workers.resize(2);
  plan.workers[1].id = WorkerId{1};
  application.cluster.channel = app::ChannelChoice::ucx;
  const bool there = transport::check_machine("ucx").has_value();
  const auto addresses = RunAddresses::make(application, plan).value();
  EXPECT_STREQ(addresses.channel(), there ? "ucx" : "shm");
  if (there) {
    EXPECT_EQ(addresses.addresses_for(plan, WorkerId{1}, {})[0].address, "ucx:127.0.0.1:0");
    EXPECT_EQ(addresses.addresses_for(plan, WorkerId{1}, {})[1].address, "ucx:127.0.0.1:0");
  }
  application.run.placement = app::Placement::hosts;
  EXPECT_STREQ(channel_between_hosts(application).facts->name, there ? "ucx" : "tcp");
  EXPECT_EQ(channel_between_hosts(application).why_not.empty(), there);
  application.cluster.channel = app::ChannelChoice::automatic;
  EXPECT_STREQ(channel_between_hosts(application).facts->name, "tcp");
}

TEST(AboutChannel, WhatAMachineLacksComesBehindWhyItIsNotAnotherKind) {
  const HostChannel lacking{&app::kChannels[1], "no shm: a", "b"};
  EXPECT_EQ(lacking.about(), "no shm: a; b");
  EXPECT_EQ((HostChannel{&app::kChannels[1], "", "b"}.about()), "b");
  EXPECT_EQ((HostChannel{&app::kChannels[1], "", ""}.about()), "");
}

}  // namespace
}  // namespace caftan::actors::run_addresses_test

// RN-10: the folder of sockets of a run goes once all have met, or with the run.
#include "launch/run_addresses.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace caftan::actors {
namespace {

/// A world over Unix sockets, in whose folder is something that was made while it was being removed.
class RunAddressesTest : public testing::Test {
 protected:
  RunAddressesTest() {
    app::Plan plan;
    plan.workers.resize(1);
    plan.workers[0].name = "agent";
    addresses_.emplace(RunAddresses::make(app::Application(), plan).value());
    const std::string address = addresses_->addresses_for(plan, WorkerId{0}, {}).front().address;
    folder_ = std::filesystem::path(address.substr(std::string("unix:").size())).parent_path();
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

}  // namespace
}  // namespace caftan::actors

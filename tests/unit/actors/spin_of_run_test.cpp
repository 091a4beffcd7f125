// What cluster.spin does on a machine, and what a run says of it.
#include "role/spin_of_run.hpp"

#include <gtest/gtest.h>

namespace caftan::test::spin_of_run_test {
namespace {

using namespace std::chrono_literals;
using actors::spin_of_run;

constexpr transport::Cores kTwoCores{.machine = 2, .mask = 2, .granted = {}};

class SpinOfRun : public ::testing::Test {
 protected:
  SpinOfRun() {
    application_.run.placement = app::Placement::processes;
    application_.cluster.channel = app::ChannelChoice::shared_memory;
    plan_.workers.resize(2);
  }
  actors::SpinOfRun get() const { return spin_of_run(application_, plan_, "", kTwoCores); }

  app::Application application_;
  app::Plan plan_;
};

TEST_F(SpinOfRun, SP5_ByDefaultItIsAsTheCoresAllow) {
  EXPECT_EQ(get().options, transport::spin_budget(kTwoCores, 2).options);
  EXPECT_EQ(get().options.threads, 1U);
  EXPECT_EQ(get().text, "auto");
  plan_.workers.resize(3);
  EXPECT_EQ(get().options, transport::SpinOptions());
  EXPECT_EQ(get().text, "off (3 workers share 2 cores)");
  plan_.workers.back().host = "another";
  EXPECT_EQ(get().text, "auto") << "workers of other hosts have cores of their own";
}

TEST_F(SpinOfRun, SP4_AsTheFileSays) {
  application_.cluster.spin = "20us";
  EXPECT_EQ(get().options.longest, 20us);
  EXPECT_FALSE(get().options.learns);
  EXPECT_EQ(get().text, "20us");
  application_.cluster.spin = "off";
  EXPECT_EQ(get().options, transport::SpinOptions());
  EXPECT_EQ(get().text, "off");
}

TEST_F(SpinOfRun, SP3_WithoutRingsThereIsNothingToSay) {
  application_.cluster.channel = app::ChannelChoice::unix_socket;
  EXPECT_EQ(get().options, transport::SpinOptions());
  EXPECT_EQ(get().text, "");
  application_.cluster.channel = app::ChannelChoice::shared_memory;
  application_.run.placement = app::Placement::one_process;
  EXPECT_EQ(get().text, "");
}

}  // namespace
}  // namespace caftan::test::spin_of_run_test

// Runs over UCX: docs/protocols/ucx.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>

#include "caftan/transport/internal/endpoint.hpp"
#include "command.hpp"
#include "free_port.hpp"
#include "lines.hpp"
#include "programs.hpp"

namespace caftan::test::ucx_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kUcx = "cluster.channel=ucx";
const std::string kProcesses = "run.placement=processes";

std::string maps_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class Ucx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto there = transport::check_machine("ucx"); !there) GTEST_SKIP() << there.error().text();
  }
  Folder folder_;
};

TEST_F(Ucx, ARunHasTheFingerprintOfOtherChannels) {
  for (const char* const file : {"cartpole.test.toml", "parameter_server.test.toml", "phold.test.toml"}) {
    const std::string path = kConfigs + "/" + file;
    const Finished over_ucx = run_to_end(folder_, kCaftan, {"run", path, kUcx, kProcesses});
    ASSERT_EQ(over_ucx.code, 0) << over_ucx.err;
    const Finished over_shm = run_to_end(folder_, kCaftan, {"run", path, kProcesses});
    ASSERT_EQ(over_shm.code, 0) << over_shm.err;
    const std::string fingerprint = line_with(over_ucx.out, "fingerprint sha256:");
    EXPECT_NE(fingerprint, "");
    EXPECT_EQ(fingerprint, line_with(over_shm.out, "fingerprint sha256:"));
  }
}

TEST_F(Ucx, UX6_AKilledWorkerEndsTheRunAndIsNamed) {
  Command command(folder_, kTicking,
                  {"run", folder_.write("t.toml", ticking_file("", "[cluster]\nchannel = \"ucx\"\n"))});
  ASSERT_TRUE(command.wait_for_line("tick 3")) << command.err();
  EXPECT_THAT(maps_of(command.worker("ticker")), HasSubstr("libucp"));
  ::kill(command.worker("echo-1"), SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(), HasSubstr("was killed by signal 9"));
  EXPECT_TRUE(command.nothing_is_left(std::chrono::seconds(4)));
}

TEST_F(Ucx, UX1_ARunOverAnotherChannelLoadsNothingOfIt) {
  Command command(folder_, kTicking, {"run", folder_.write("t.toml", ticking_file(""))});
  ASSERT_TRUE(command.wait_for_line("tick 3")) << command.err();
  EXPECT_THAT(maps_of(command.worker("ticker")), Not(HasSubstr("libucp")));
  ::kill(command.pid(), SIGINT);
  EXPECT_EQ(command.wait(), 130);
}

TEST_F(Ucx, WithoutAUsableDeviceTheNextKindIsUsedAndThePlanSaysWhy) {
  ::setenv("UCX_TLS", "none-of-these", 1);
  const Finished plan = run_to_end(folder_, kCaftan, {"plan", kConfigs + "/phold.test.toml", kUcx});
  ::unsetenv("UCX_TLS");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("channel here: shm, no ucx: UCX does not start: "));
  EXPECT_THAT(plan.out, HasSubstr("UCX_TLS and UCX_NET_DEVICES choose its transports and devices"));
}

/// A run of two hosts of this machine, each with a launcher of its own.
class UcxHosts : public Ucx {
 protected:
  void SetUp() override {
    Ucx::SetUp();
    FreePort port;
    folder_.write("s", "our shared secret\n");
    folder_.write(
        "t.toml",
        "caftan = 1\n[run]\nname = \"ticking\"\nplacement = \"hosts\"\nstart_timeout = \"30s\"\n"
        "[roles.ticker]\ntype = \"ticker\"\nhosts = [\"head\"]\n[roles.ticker.config]\nrounds = 20\n"
        "[roles.ticker.uses]\nechoes = \"echo\"\n[roles.echo]\ntype = \"echo\"\nreplicas = 2\nhosts = [\"node\"]\n"
        "[cluster]\nsecret_file = \"s\"\nchannel = \"ucx\"\n[hosts.head]\naddress = \"127.0.0.1:" +
            port.number() + "\"\n[hosts.node]\naddress = \"127.0.0.1\"\n[tls]\nmode = \"on\"\n");
    port.release();
  }
  /// Runs to the end. @param tls  UCX_TLS of the node, null: as here
  void run(const char* tls) {
    Command head(folder_, kTicking, {"run", "t.toml", "--host", "head"});
    if (tls) ::setenv("UCX_TLS", tls, 1);
    Command node(folder_, kTicking, {"run", "t.toml", "--host", "node"});
    if (tls) ::unsetenv("UCX_TLS");
    EXPECT_EQ(head.wait(), 0) << head.err();
    EXPECT_EQ(node.wait(), 0) << node.err();
    EXPECT_THAT(head.out(), HasSubstr("tick 20\n"));
    log_ = folder_.read(head.run_directory() + "/log/ticker.log");
  }
  std::string log_;
};

TEST_F(UcxHosts, UX8_BetweenHostsItCarriesCipherText) {
  run(nullptr);
  EXPECT_THAT(log_, HasSubstr("over ucx+tls"));
}

TEST_F(UcxHosts, AHostWithoutADeviceIsReachedOverTcp) {
  run("none-of-these");
  EXPECT_THAT(log_, HasSubstr("over tcp+tls"));
  EXPECT_THAT(log_, HasSubstr("not over ucx: echo-0 does not offer UCX"));
}

}  // namespace
}  // namespace caftan::test::ucx_test

// Findings about hosts, the secret, cores and data (BI-1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "as_nobody.hpp"
#include "caftan/app/internal/plan.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::placement_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kRoles = R"(caftan = 1
[roles.server]
type = "parameter_server.server"
config.model = "small"
[roles.trainer]
type = "parameter_server.trainer"
replicas = 2
uses.server = "server"
)";

std::string check(const std::string& rest, std::vector<std::string> overrides = {}) {
  return load(std::string(kRoles) + rest, std::move(overrides)).diagnostics.render(false);
}

std::string one(const std::string& line) {
  return line + "error: 1 error; " + (line.starts_with("command line: ") ? "the command line" : "app.toml") +
         " is not valid\n";
}

TEST(Hosts, BI1_PlacementNeedsHostsAndASecret) {
  EXPECT_EQ(check("[run]\nplacement = \"hosts\"\n"),
            one("app.toml:10:13: error: placement = \"hosts\" needs [hosts.NAME] with an address and "
                "cluster.secret_file\n"));
  EXPECT_EQ(check("[run]\nplacement = \"hosts\"\n[hosts.head]\naddress = \"127.0.0.1:29500\"\n"),
            one("app.toml:10:13: error: placement = \"hosts\" needs cluster.secret_file; make one: (umask 077; openssl "
                "rand -hex 32 > cluster.secret), copy it to every host, and name it there\n"));
}

TEST(Hosts, LN3_ALauncherGivesTheAddressesThatTheFileLeavesOut) {
  const std::string hosts =
      "[run]\nplacement = \"hosts\"\n[cluster]\nsecret_file = \"none\"\n[hosts.head]\n[hosts.node]\n";
  for (const char* const launcher : {"auto", "variables", "mpi", "slurm"}) {
    EXPECT_THAT(check(hosts, {"roles.trainer.hosts=[\"node\"]", "run.launcher=" + std::string(launcher)}),
                AllOf(Not(HasSubstr("error")), HasSubstr("\"none\" does not exist")));
  }
  for (const char* const launcher : {"none", "ssh"}) {
    EXPECT_THAT(check(hosts, {"roles.trainer.hosts=[\"node\"]", "run.launcher=" + std::string(launcher)}),
                AllOf(HasSubstr("app.toml:13:1: error: missing key 'address' in [hosts.head]\n"),
                      HasSubstr("app.toml:14:1: error: missing key 'address' in [hosts.node]\n")));
  }
}

TEST(Hosts, LN3_WithoutHostsEachWorkerIsOne) {
  const LoadedApplication loaded = load(
      std::string(kRoles) + "[run]\nplacement = \"hosts\"\nlauncher = \"slurm\"\n[cluster]\nsecret_file = \"none\"\n");
  EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(false);
  std::string hosts;
  for (const PlannedWorker& worker : make_plan(loaded.application).workers) {
    hosts += worker.name + " on " + worker.host + " by " + worker.channel + "\n";
  }
  EXPECT_EQ(hosts, "server on slot-0 by tcp+tls\ntrainer-0 on slot-1 by tcp+tls\ntrainer-1 on slot-2 by tcp+tls\n");
  EXPECT_EQ(meeting_place(loaded.application), "the address that the launcher gives (host 'slot-0')");
}

TEST(Hosts, LN14_AnInterfaceGivesTheAddressOfAnotherHostThanTheFirst) {
  const std::string hosts =
      "[run]\nplacement = \"hosts\"\n[cluster]\nsecret_file = \"none\"\n[hosts.head]\naddress = \"192.0.2.1:29500\"\n"
      "interface = \"ib0\"\n[hosts.node]\ninterface = \"ib1\"\n";
  const std::vector<std::string> roles{"roles.trainer.hosts=[\"node\"]"};
  const LoadedApplication loaded = load(std::string(kRoles) + hosts, roles);
  EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(false);
  EXPECT_EQ(loaded.application.hosts[1].interface, "ib1");
  EXPECT_THAT(check(hosts, {roles[0], "run.launcher=ssh"}),
              HasSubstr("app.toml:17:13: error: interface of another host cannot be looked up with run.launcher = "
                        "\"ssh\""));
  EXPECT_THAT(
      check("[run]\nplacement = \"hosts\"\n[cluster]\nsecret_file = \"none\"\n[hosts.head]\ninterface = \"ib0\"\n"),
      HasSubstr("error: missing key 'address' in [hosts.head]"));
}

TEST(Hosts, LN2_ALauncherIsNotReadInOtherPlacements) {
  EXPECT_EQ(check("[run]\nlauncher = \"slurm\"\n"),
            "app.toml:10:12: warning: launcher is not read: only run.placement = \"hosts\" has a launcher\n");
}

TEST(Hosts, BI1_ListeningBeyondLoopbackNeedsASecret) {
  EXPECT_EQ(check("[run]\nplacement = \"hosts\"\n[hosts.head]\naddress = \"192.0.2.10:29500\"\n"),
            one("app.toml:12:11: error: host 'head' listens beyond loopback, that needs cluster.secret_file; make one: "
                "(umask 077; openssl rand -hex 32 > cluster.secret), copy it to every host, and name it there\n"));
}

TEST(Hosts, BI1_AddressesThatDoNotParse) {
  EXPECT_EQ(check("[hosts.head]\naddress = \"192.0.2.10\"\n[hosts.a]\naddress = \"192.0.2.300\"\n[hosts.b]\naddress = "
                  "\"\"\n[hosts.c]\naddress = \"node:0\"\n[hosts.d]\n[hosts.e]\naddress = 5\n",
                  {"roles.trainer.hosts=[\"a\", \"b\"]"}),
            "app.toml:10:11: error: address of the first host must be host:port, is \"192.0.2.10\"\n"
            "app.toml:12:11: error: address must be host:port for the first host, host for the others, is "
            "\"192.0.2.300\"\n"
            "app.toml:14:11: error: address must be host:port for the first host, host for the others, is \"\"\n"
            "app.toml:15:1: warning: no role runs on host 'c'\n"
            "app.toml:16:11: error: address must be host:port for the first host, host for the others, is \"node:0\"\n"
            "app.toml:17:1: error: missing key 'address' in [hosts.d]\n"
            "app.toml:17:1: warning: no role runs on host 'd'\n"
            "app.toml:18:1: warning: no role runs on host 'e'\n"
            "app.toml:19:11: error: address must be a string, is the integer 5\n"
            "error: 6 errors; app.toml is not valid\n");
}

TEST(Hosts, BI1_ThePortIsTheFirstHosts) {
  EXPECT_EQ(check("[hosts.head]\naddress = \"192.0.2.10:29500\"\n[hosts.node1]\naddress = \"192.0.2.10:29500\"\n"
                  "[hosts.node2]\naddress = \"[2001:db8::1]:29500\"\n",
                  {"roles.trainer.hosts=[\"node1\", \"node2\"]"}),
            "app.toml:12:11: error: address \"192.0.2.10:29500\" is taken by host 'head' (line 9)\n"
            "app.toml:14:11: error: address must be a host without a port: only the first host, "
            "'head', has one, is "
            "\"[2001:db8::1]:29500\"\n"
            "error: 2 errors; app.toml is not valid\n");
}

TEST(Hosts, BI1_UnknownHostAndHostWithoutARole) {
  EXPECT_EQ(
      check("hosts = [\"head\", \"node2\"]\n[hosts.head]\naddress = \"192.0.2.10:29500\"\n[hosts.node1]\naddress = "
            "\"192.0.2.11\"\n"),
      "app.toml:9:18: error: no host 'node2' in [hosts]; did you mean 'node1'?\n"
      "app.toml:12:1: warning: no role runs on host 'node1'\n"
      "error: 1 error; app.toml is not valid\n");
  EXPECT_EQ(check("hosts = []\n"), one("app.toml:9:9: error: hosts must name at least one host\n"));
}

TEST(Hosts, BI1_UnixSocketsDoNotReachOtherHosts) {
  EXPECT_EQ(
      check("[cluster]\nchannel = \"unix\"\n[hosts.head]\naddress = \"127.0.0.1:29500\"\n", {"run.placement=hosts"}),
      "app.toml:10:11: error: channel = \"unix\" does not reach other hosts; use \"auto\", \"tcp\" or \"ucx\"\n"
      "command line: error: run.placement=hosts: placement = \"hosts\" needs cluster.secret_file; make one: (umask "
      "077; openssl rand -hex 32 > cluster.secret), copy it to every host, and name it there\n"
      "error: 2 errors; app.toml is not valid\n");
}

TEST(Hosts, F4_U8_WhatThePlacementDoesNotReadIsAWarning) {
  const std::string cluster = "[cluster]\nchannel = \"tcp\"\nsecret_file = \"nowhere\"\n";
  const std::string secret =
      "app.toml:11:15: warning: secret_file is not read: only run.placement = \"hosts\" needs a secret of the file\n";
  const std::string channel =
      "app.toml:10:11: warning: channel = \"tcp\" is not used: with run.placement = \"one_process\" workers talk "
      "within their process\n";
  EXPECT_EQ(check(cluster), secret);
  EXPECT_EQ(check(cluster, {"run.placement=one_process"}), channel + secret);
  EXPECT_EQ(check("[cluster]\nchannel = \"auto\"\n", {"run.placement=one_process"}), "");
  EXPECT_EQ(load(std::string(kRoles) + cluster, {"run.placement=one_process"}, LoadMode::run).diagnostics.render(false),
            channel + secret);
}

TEST(Hosts, F4_U8_KeysOfSharedMemoryAreReadWithItsChannelOnly) {
  const std::string keys = "shm_ring = \"128KiB\"\nspin = \"20us\"\n[limits]\nshared_memory = \"64MiB\"\n";
  const std::string why =
      " is not read: workers share memory only with run.placement = \"processes\" and cluster.channel = \"shm\"\n";
  const std::string warnings = "app.toml:11:12: warning: shm_ring" + why + "app.toml:12:8: warning: spin" + why +
                               "app.toml:14:17: warning: shared_memory" + why;
  EXPECT_EQ(check("[cluster]\nchannel = \"shm\"\n" + keys), "");
  EXPECT_EQ(check("[cluster]\nchannel = \"auto\"\n" + keys), warnings);
  EXPECT_EQ(check("[cluster]\nchannel = \"auto\"\n" + keys, {"run.placement=one_process"}), warnings);
  EXPECT_EQ(check("[cluster]\nchannel = \"auto\"\nshm_ring = \"64KiB\"\n"), "")
      << "the default, as a resolved file has it";
}

TEST(Spin, SP4_IsAutoOffOrADuration) {
  for (const char* spin : {"auto", "off", "1us", "50us", "1ms"}) {
    EXPECT_EQ(check("[cluster]\nchannel = \"shm\"\nspin = \"" + std::string(spin) + "\"\n"), "") << spin;
  }
  for (const std::string spin : {"always", "", "20", "0us", "999ns", "1001us"}) {
    EXPECT_EQ(check("[cluster]\nchannel = \"shm\"\nspin = \"" + spin + "\"\n"),
              "app.toml:11:8: error: spin must be \"auto\", \"off\" or a duration of 1us..1ms such as \"20us\", is \"" +
                  spin + "\"\nerror: 1 error; app.toml is not valid\n");
  }
  EXPECT_EQ(check("[cluster]\nchannel = \"shm\"\nspin = 20\n"),
            "app.toml:11:8: error: spin must be a string, is the integer 20\nerror: 1 error; app.toml is not valid\n");
  EXPECT_EQ(spin_choice("auto").value(), SpinChoice());
  EXPECT_EQ(spin_choice("off").value(), (SpinChoice{.off = true, .longest = {}}));
  EXPECT_EQ(spin_choice("20us").value().longest, base::Duration(20'000));
}

class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "caftan_secret_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    std::filesystem::remove(folder_ / "cluster.secret");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text, std::filesystem::perms perms) {
    std::ofstream(folder_ / "cluster.secret") << text;
    std::filesystem::permissions(folder_ / "cluster.secret", perms);
  }
  /// Returns the rendered errors and warnings, without the path of the folder.
  std::string check(LoadMode mode) {
    const std::string text = std::string(kRoles) +
                             "[run]\nplacement = \"hosts\"\n[cluster]\nsecret_file = \"cluster.secret\"\n[hosts.head]\n"
                             "address = \"192.0.2.10:29500\"\n";
    const LoadedApplication loaded = parse_application(text, folder_ / "app.toml", {}, make_types(), {.mode = mode});
    std::string found = loaded.diagnostics.render(false);
    for (std::size_t at; (at = found.find(folder_.string() + "/")) != std::string::npos;) {
      found.erase(at, folder_.string().size() + 1);
    }
    return found;
  }

  const std::string kFix =
      "; make one: (umask 077; openssl rand -hex 32 > cluster.secret), and copy it to every host\n";
  static constexpr auto kPrivate = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::path folder_;
};

TEST_F(SecretFile, BI1_MissingIsAWarningInCheckAndAnErrorInRun) {
  const std::string text =
      "secret_file \"cluster.secret\" does not exist; make one: (umask 077; openssl rand -hex 32 > cluster.secret), "
      "and copy it to every host\n";
  EXPECT_EQ(check(LoadMode::check), "app.toml:12:15: warning: " + text);
  EXPECT_EQ(check(LoadMode::run), one("app.toml:12:15: error: " + text));
}

TEST_F(SecretFile, BI1_UnreadableIsFoundByCheckToo) {
  write("secret", std::filesystem::perms::owner_write);
  const test::AsNobody nobody;
  if (!nobody.works()) GTEST_SKIP() << "root may read every file, and may not become another user here";
  // The user that AsNobody becomes may not write to the test's folder, either: that gives a second warning, so only a
  // part of the output is compared.
  EXPECT_THAT(check(LoadMode::check),
              HasSubstr("app.toml:12:15: warning: secret_file cluster.secret: Permission denied\n"));
}

TEST_F(SecretFile, BI1_EmptyOrReadableByOthers) {
  write("", kPrivate);
  EXPECT_EQ(check(LoadMode::run), one("app.toml:12:15: error: secret_file \"cluster.secret\" is empty" + kFix));
  write(" \n", kPrivate);
  EXPECT_EQ(check(LoadMode::check), "app.toml:12:15: warning: secret_file \"cluster.secret\" is empty" + kFix);
  write("secret", kPrivate | std::filesystem::perms::group_read);
  EXPECT_EQ(check(LoadMode::run),
            one("app.toml:12:15: error: secret_file \"cluster.secret\" can be read by others; chmod "
                "600 cluster.secret\n"));
  write(std::string(16, 's'), kPrivate);
  EXPECT_EQ(check(LoadMode::run), "");
}

TEST_F(SecretFile, K14_OneThatCanBeGuessedAndOneThatWouldBeCutAreRefused) {
  for (const std::string secret : {"s", "fifteen bytes.."}) {
    write(secret + "\n", kPrivate);
    EXPECT_THAT(check(LoadMode::run),
                AllOf(StartsWith("app.toml:12:15: error: secret_file \"cluster.secret\" holds a secret of " +
                                 std::to_string(secret.size()) + " byte"),
                      HasSubstr(", which can be guessed: it needs 16; make one: (umask 077; openssl rand")));
  }
  write(std::string(4096, 's') + "\r\n", kPrivate);
  EXPECT_EQ(check(LoadMode::run), "");
  for (const std::size_t size : {4097, 100'000}) {
    write(std::string(size, 's'), kPrivate);
    EXPECT_THAT(check(LoadMode::run), HasSubstr("holds more than a secret's 4096 bytes; make one"));
  }
}

TEST_F(SecretFile, K14_WhatOthersMayDoWithItIsSaidRight) {
  using std::filesystem::perms;
  write("secret", kPrivate | perms::group_write | perms::others_write);
  EXPECT_THAT(check(LoadMode::run), HasSubstr("\" can be written by others; chmod 600 cluster.secret\n"));
  write("secret", kPrivate | perms::group_read | perms::others_write);
  EXPECT_THAT(check(LoadMode::run), HasSubstr("\" can be read and written by others; chmod 600 cluster.secret\n"));
  write(std::string(16, 's'), kPrivate | perms::others_exec);
  EXPECT_EQ(check(LoadMode::run), "");
}

TEST(Cores, BI1_MoreThreadsThanCoresIsAWarningWithTheFix) {
  const auto check = [](std::vector<std::string> overrides, int cores, LoadMode mode) {
    return parse_application(kRoles, "app.toml", overrides, make_types(), {.mode = mode, .cores = cores})
        .diagnostics.render(false);
  };
  for (const LoadMode mode : {LoadMode::check, LoadMode::run}) {
    EXPECT_EQ(check({}, 2, mode), "") << "U13: nothing to mend where the file asks for one thread of each worker";
    EXPECT_EQ(check({"roles.trainer.torch_threads=4"}, 9, mode), "");
    EXPECT_EQ(check({"roles.trainer.torch_threads=4"}, 8, mode),
              "app.toml:5:1: warning: 3 workers x torch_threads are 9 threads on 8 cores; set torch_threads = 1 in "
              "[roles.trainer]\n");
    EXPECT_EQ(check({"roles.server.torch_threads=2", "roles.trainer.replicas=4"}, 4, mode),
              "app.toml:2:1: warning: 5 workers x torch_threads are 6 threads on 4 cores; set torch_threads = 1 in "
              "[roles.server]\n")
        << "that of several threads is named, although another has more";
  }
}

TEST(Cores, B8_WorkersOfOneProcessHaveOneNumberOfTorchThreads) {
  const auto check = [](const std::string& placement, const std::string& threads) {
    const std::vector<std::string> overrides{"run.placement=" + placement, "roles.trainer.torch_threads=" + threads};
    return parse_application(kRoles, "app.toml", overrides, make_types(), {.mode = LoadMode::check, .cores = 64})
        .diagnostics.render(false);
  };
  EXPECT_NE(check("one_process", "4").find("error: torch_threads is "), std::string::npos) << check("one_process", "4");
  EXPECT_EQ(check("one_process", "1"), "");
  EXPECT_EQ(check("processes", "4"), "");
}

TEST(OnLoss, BI1_AnotherValueIsRefusedWithTheNearestName) {
  EXPECT_EQ(check("", {"roles.trainer.on_loss=goon"}),
            one("command line: error: roles.trainer.on_loss=goon: on_loss must be fail | go_on, is \"goon\"; did "
                "you mean 'go_on'?\n"));
  EXPECT_EQ(check("", {"roles.server.on_loss=fail", "roles.trainer.on_loss=go_on"}), "");
}

TEST(OnLoss, RN18_RN19_WhereItChangesNothingIsAWarning) {
  EXPECT_EQ(check("", {"roles.server.on_loss=go_on", "run.placement=one_process"}),
            "command line: warning: roles.server.on_loss=go_on: on_loss = \"go_on\" is not used: with run.placement = "
            "\"one_process\" no worker is lost alone\n");
  EXPECT_EQ(check("", {"roles.trainer.on_loss=go_on", "roles.trainer.replicas=1"}),
            "command line: warning: roles.trainer.on_loss=go_on: on_loss = \"go_on\" changes nothing: 'trainer-0' is "
            "the only worker that drives the run, which fails without it\n");
  EXPECT_EQ(check("", {"roles.server.on_loss=go_on", "roles.trainer.replicas=1"}), "");
}

TEST(Data, BI1_MissingIsAWarningInCheckAndAnErrorInRun) {
  const std::vector<std::string> overrides{"roles.server.config.data=/dev/null/nowhere"};
  const std::string text =
      "roles.server.config.data=/dev/null/nowhere: role 'server': no data there; apt-get install "
      "dataset-fashion-mnist\n";
  EXPECT_EQ(load(kRoles, overrides, LoadMode::check).diagnostics.render(false), "command line: warning: " + text);
  EXPECT_EQ(load(kRoles, overrides, LoadMode::run).diagnostics.render(false), one("command line: error: " + text));
}

TEST(Data, BI1_TheCommandLineIsBlamedBeforeTheFileAndTheFileBeforeTheRole) {
  const auto check = [](const std::vector<std::string>& overrides) {
    return load(
               "caftan = 1\n[roles.trainer]\ntype = \"parameter_server.trainer\"\nuses.server = \"server\"\n"
               "[roles.server]\ntype = \"parameter_server.server\"\n[roles.server.config]\nmodel = \"huge\"\n"
               "[roles.server.config.optimizer]\ntype = \"adam\"\n",
               overrides)
        .diagnostics.render(false);
  };
  EXPECT_EQ(check({}), "app.toml:8:9: warning: role 'server': no room for 'server' of seed 1\n");
  EXPECT_EQ(
      check({"run.seed=7", "roles.server.config.optimizer.type=sgd"}),
      "command line: warning: roles.server.config.optimizer.type=sgd: role 'server': no room for 'server' of seed "
      "7\n");
  EXPECT_EQ(check({"roles.server.config.optimizer.type=sgd", "roles.server.config.model=huge"}),
            "command line: warning: roles.server.config.model=huge: role 'server': no room for 'server' of seed 1\n");
}

TEST(Data, BI1_MissingIsAWarningWhereTheRoleMayRunOnAnotherHost) {
  const LoadedApplication loaded =
      load(kRoles, {"roles.server.config.data=/dev/null/nowhere", "run.placement=hosts"}, LoadMode::run);
  EXPECT_NE(loaded.diagnostics.render(false).find("warning: roles.server.config.data=/dev/null/nowhere: role 'server'"),
            std::string::npos);
}

}  // namespace
}  // namespace caftan::app::testing::placement_test

// LN-1 to LN-6: processes that a launcher of a cluster has started find their hosts and each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <random>

#include "command.hpp"
#include "free_port.hpp"
#include "lines.hpp"
#include "programs.hpp"
#include "soak_size.hpp"

namespace caftan::test::launcher_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kMpirun = "/usr/bin/mpirun";

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A ticker and two echoes without [hosts]: three slots.
std::string slots_file(const std::string& launcher) {
  return "caftan = 1\n[run]\nname = \"ticking\"\nplacement = \"hosts\"\nlauncher = \"" + launcher +
         "\"\nstart_timeout = \"30s\"\n"
         "[roles.ticker]\ntype = \"ticker\"\n[roles.ticker.config]\nrounds = 20\n[roles.ticker.uses]\nechoes = "
         "\"echo\"\n[roles.echo]\ntype = \"echo\"\nreplicas = 2\n[cluster]\nsecret_file = \"s\"\n";
}

class Launched : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("s", "our shared secret\n"); }

  /// Returns the words that run t.toml with variables and further words.
  static Words with(const Words& variables, const Words& more = {}) {
    return variables + Words{kTicking, "run", "t.toml"} + more;
  }
  Words torchrun(int rank, int size = 3) const {
    return {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size), "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=" + port_.number()};
  }
  static Words slurm(int rank, int job) {
    return {"SLURM_JOB_ID=" + std::to_string(job), "SLURM_STEP_ID=0", "SLURM_PROCID=" + std::to_string(rank),
            "SLURM_NTASKS=3", "SLURM_STEP_NODELIST=localhost"};
  }

  const std::string env_ = "/usr/bin/env";
  Folder folder_;
  FreePort port_;
};

TEST_F(Launched, LN1_LN3_ByVariablesEachProcessIsOneWorker) {
  folder_.write("t.toml", slots_file("auto"));
  port_.release();
  Command first(folder_, env_, with(torchrun(0)));
  Command second(folder_, env_, with(torchrun(1)));
  Command third(folder_, env_, with(torchrun(2)));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(third.wait(), 0) << third.err();
  EXPECT_THAT(first.out(), HasSubstr("tick 20\n"));
}

TEST_F(Launched, LN1_LN3_OverIPv6) {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_v6 = ::bind(socket, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  ::close(socket);
  if (!has_v6) GTEST_SKIP() << "this machine has no IPv6";
  folder_.write("t.toml", slots_file("variables"));
  const auto rank = [&](int number) {
    Words variables = torchrun(number);
    variables[2] = "MASTER_ADDR=::1";
    return with(variables);
  };
  port_.release();
  Command first(folder_, env_, rank(0));
  Command second(folder_, env_, rank(1));
  Command third(folder_, env_, rank(2));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(third.wait(), 0) << third.err();
}

TEST_F(Launched, LN1_LN3_AHostOfTheFileForEachTaskOfSlurm) {
  folder_.write("t.toml", slots_file("slurm") + "[hosts.head]\n[hosts.node]\n");
  const Words more{"roles.echo.hosts=[\"node\"]", "cluster.heartbeat=1s"};
  const int job = ::getpid();  // the port follows from the number of the job
  const auto task = [&](int rank) {
    Words variables = slurm(rank, job);
    variables[3] = "SLURM_NTASKS=2";
    return with(variables + Words{"SLURM_STEP_RESV_PORTS=" + port_.number()}, more);
  };
  port_.release();
  Command first(folder_, env_, task(0));
  Command second(folder_, env_, task(1));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_THAT(folder_.read(second.run_directory() + "/summary.json"), HasSubstr("\"host\": \"node\""));
}

TEST_F(Launched, LN4_TooFewOrTooManyProcessesAreRefusedByAll) {
  folder_.write("t.toml", slots_file("variables"));
  for (const int size : {2, 4}) {
    for (const int rank : {0, 1}) {
      const Finished run = run_to_end(folder_, env_, with(torchrun(rank, size)));
      EXPECT_EQ(run.code, 2);
      EXPECT_THAT(run.err,
                  HasSubstr("error: the launcher variables has too " + std::string(size == 2 ? "few" : "many") +
                            " processes for the file: " + std::to_string(size) + " instead of 3"));
    }
  }
}

TEST_F(Launched, LN4_PlanSaysHowManyTheFileNeeds) {
  folder_.write("t.toml", slots_file("slurm"));
  const Finished here = run_to_end(folder_, env_, {"SLURM_JOB_ID=7", "SLURM_NTASKS=2", kTicking, "plan", "t.toml"});
  EXPECT_EQ(here.code, 0) << here.err;
  EXPECT_THAT(here.out,
              AllOf(HasSubstr("meeting at the address that the launcher gives (host 'slot-0')"),
                    HasSubstr("\nlauncher here: slurm, 2 processes, too few: the file needs 3 processes: srun "
                              "--ntasks=3\n")));
}

TEST_F(Launched, LN2_WithoutALauncherTheVariablesOfOneAreMissed) {
  folder_.write("t.toml", slots_file("auto"));
  const Finished run = run_to_end(folder_, env_, with({}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("no launcher has started this process"));
  const Finished role = run_to_end(folder_, env_, with({}, {"--role", "ticker"}));
  EXPECT_EQ(role.code, 2);
  EXPECT_THAT(role.err, HasSubstr("[hosts.slot-0] has no address: with --host and --role no launcher gives it one"));
}

TEST_F(Launched, LN2_TheVariablesOfALauncherAreNotReadUnlessTheFileAsks) {
  folder_.write("t.toml", ticking_file());
  port_.release();
  const Finished run = run_to_end(folder_, env_, with(torchrun(1), {"roles.ticker.config.rounds=20"}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("  ticker"));
}

TEST_F(Launched, LN3_AFirstHostThatHasNoNameIsNamed) {
  folder_.write("t.toml", slots_file("variables"));
  Words variables = torchrun(1);
  variables[2] = "MASTER_ADDR=no-such-host.invalid";
  const Finished run = run_to_end(folder_, env_, with(variables, {"run.start_timeout=1s"}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("the first host, 'no-such-host.invalid', cannot be reached from here: "));
}

TEST_F(Launched, LN6_ATaskEndsWithTheProcessThatStartedIt) {
  folder_.write("t.toml", slots_file("slurm") + "[hosts.head]\n");
  Words variables = slurm(0, 7);
  variables[3] = "SLURM_NTASKS=1";
  Words words =
      with(variables + Words{"SLURM_STEP_RESV_PORTS=" + port_.number()}, {"roles.ticker.config.rounds=100000000"});
  std::string line = "'" + env_ + "'";
  for (const std::string& word : words) line += " '" + word + "'";
  port_.release();
  Command launcher(folder_, "/bin/sh", {"-c", line + " & wait"});
  ASSERT_TRUE(launcher.wait_for_line("tick 20")) << launcher.err();
  launcher.signal(SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  EXPECT_THAT(launcher.err(), HasSubstr("interrupted"));
  EXPECT_TRUE(launcher.nothing_is_left(5s));
}

TEST_F(Launched, LN14_AHostListensAtTheAddressOfItsInterface) {
  folder_.write("t.toml", slots_file("none") + "[hosts.here]\naddress = \"127.0.0.1:" + port_.number() +
                              "\"\ninterface = \"lo\"\n[hosts.there]\ninterface = \"lo\"\n");
  const Words more{"roles.echo.hosts=[\"there\"]"};
  port_.release();
  Command first(folder_, env_, with({}, more + Words{"--host", "here"}));
  Command second(folder_, env_, with({}, more + Words{"--host", "there"}));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  const Finished other =
      run_to_end(folder_, env_, with({}, more + Words{"hosts.there.interface=none7", "--host", "there"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, ContainsRegex("\\[hosts.there\\] interface: \"none7\" is not here \\(interfaces: .*lo"));
}

class Mpi : public Launched {
 protected:
  void SetUp() override {
    Launched::SetUp();
    if (::access(kMpirun.c_str(), X_OK) != 0) GTEST_SKIP() << kMpirun << " is missing: install openmpi-bin";
  }
  Words mpirun(int processes, const Words& more = {}) const {
    return Words{"--allow-run-as-root", "--oversubscribe", "-n", std::to_string(processes)} + with({}, more);
  }
};

TEST_F(Mpi, LN1_MpirunStartsAProcessForEachWorker) {
  folder_.write("t.toml", slots_file("mpi"));
  const Finished run = run_to_end(folder_, kMpirun, mpirun(3));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tick 20\n"));
}

TEST_F(Mpi, LN1_ApplicationsHaveTheFingerprintOfOneCommand) {
  struct Case {
    const char* file;
    int workers;
  };
  for (const auto& [file, workers] : {Case{"cartpole", 3}, Case{"parameter_server", 3}, Case{"rnn_lm", 2}}) {
    const Words words{kCaftan, "run", kConfigs + "/" + file + ".test.toml", "run.deterministic=true"};
    const Finished by_mpirun =
        run_to_end(folder_, kMpirun,
                   Words{"--allow-run-as-root", "--oversubscribe", "-n", std::to_string(workers)} + words +
                       Words{"run.placement=hosts", "run.launcher=mpi", "cluster.secret_file=" + (folder_ / "s")});
    EXPECT_EQ(by_mpirun.code, 0) << by_mpirun.err;
    const Finished here = run_to_end(folder_, kCaftan, Words(words.begin() + 1, words.end()));
    EXPECT_EQ(here.code, 0) << here.err;
    const std::string fingerprint = line_with(by_mpirun.out, "fingerprint sha256:");
    EXPECT_NE(fingerprint, "") << file;
    EXPECT_EQ(fingerprint, line_with(here.out, "fingerprint sha256:")) << file;
  }
}

TEST_F(Mpi, LN4_MpirunWithTooFewProcesses) {
  folder_.write("t.toml", slots_file("auto"));
  const Finished run = run_to_end(folder_, kMpirun, mpirun(2));
  EXPECT_EQ(run.code, 2) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the launcher mpi has too few processes for the file: 2 instead of 3"));
}

class KilledMpirun : public Mpi, public ::testing::WithParamInterface<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Moments, KilledMpirun,
                         ::testing::Range<std::uint64_t>(0, soak_size("CAFTAN_LAUNCHER_MOMENTS", 2)));

TEST_P(KilledMpirun, LN6_NothingIsLeft) {
  folder_.write("t.toml", slots_file("mpi"));
  std::mt19937_64 random(GetParam());
  Command launcher(folder_, kMpirun, mpirun(3, {"roles.ticker.config.rounds=100000000"}));
  const std::string moment = random() % 4 == 0 ? "  echo" : "tick " + std::to_string(1 + random() % 200);
  ASSERT_TRUE(launcher.wait_for_line(moment)) << launcher.err();
  launcher.signal(SIGKILL);
  launcher.wait();
  EXPECT_TRUE(launcher.nothing_is_left(5s));
}

}  // namespace
}  // namespace caftan::test::launcher_test

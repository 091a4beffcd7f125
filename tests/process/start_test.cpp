// BI-2: a start that cannot succeed is over within the start time-out, and says why, at both sides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "caftan/transport/internal/endpoint.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "command.hpp"
#include "free_port.hpp"
#include "programs.hpp"

namespace caftan::test::start_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string hosts_file(const std::string& port, const std::string& name = "ticking", const std::string& secret = "s") {
  return "caftan = 1\n[run]\nname = \"" + name +
         "\"\nplacement = \"hosts\"\nstart_timeout = \"6s\"\n"
         "[roles.ticker]\ntype = \"ticker\"\n[roles.ticker.config]\nrounds = 20\n[roles.ticker.uses]\nechoes = "
         "\"echo\"\n"
         "[roles.echo]\ntype = \"echo\"\nreplicas = 2\n"
         "[cluster]\nsecret_file = \"" +
         secret + "\"\n[hosts.here]\naddress = \"127.0.0.1:" + port + "\"\n";
}

class Copies : public ::testing::Test {
 protected:
  /// What lists of processes show of the ticker's process.
  struct Shown {
    std::string words{};
    std::string thread{};
  };
  /// @param program  runs, and is interrupted
  Shown shown_by(const std::string& program, std::vector<std::string> words) {
    folder_.write("t.toml", ticking_file());
    for (const char* const word : {"run", "t.toml", "roles.ticker.config.rounds=100000000"}) words.emplace_back(word);
    Command command(folder_, program, words);
    EXPECT_TRUE(command.wait_for_line("tick 1")) << command.err();
    const std::filesystem::path process = "/proc/" + std::to_string(command.worker("ticker"));
    Shown shown{read(process / "cmdline"), read(process / "comm")};
    command.signal(SIGINT);
    EXPECT_EQ(command.wait(), 130) << command.err();
    EXPECT_TRUE(command.nothing_is_left(5s));
    return shown;
  }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    std::ranges::replace(text, '\0', ' ');
    return text;
  }
  Folder folder_;
};

TEST_F(Copies, RN24_AWorkerProcessIsACopyOfItsLauncherWithItsOwnName) {
  const Shown shown = shown_by(kTicking, {});
  EXPECT_THAT(shown.words, StartsWith(kTicking + " worker ticker "));
  EXPECT_EQ(shown.thread, "ticker\n");
}

TEST_F(Copies, RN24_AProgramWithAThreadIsStartedAgain) {
  const Shown shown = shown_by("/usr/bin/env", {"TICKING_THREAD=1", kTicking});
  EXPECT_EQ(shown.words, kTicking + " caftan-worker ticker ");
  EXPECT_EQ(shown.thread, "caftan_ticking\n");
}

class Hosts : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("s", "our shared secret\n"); }
  Folder folder_;
  FreePort port_;
};

TEST_F(Hosts, OneCommandForEachRoleRunsTheApplication) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "run.start_timeout=30s", "--role", "ticker"});
  Command first(folder_, kTicking, {"run", "t.toml", "run.start_timeout=30s", "--role", "echo", "--replica", "0"});
  Command second(folder_, kTicking, {"run", "t.toml", "run.start_timeout=30s", "--role", "echo", "--replica", "1"});
  EXPECT_EQ(ticker.wait(), 0) << ticker.err();
  EXPECT_THAT(ticker.out(), HasSubstr("tick 20\n"));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
}

/// Each host has a ticker and an echo; both tickers call both echoes.
TEST_F(Hosts, RN21_ADriverOnEachOfTwoHosts) {
  const auto ticker = [](const std::string& role, const std::string& host, const std::string& rounds) {
    return "[roles." + role + "]\ntype = \"ticker\"\nhosts = [\"" + host + "\"]\n[roles." + role +
           ".config]\nrounds = " + rounds + "\n[roles." + role + ".uses]\nechoes = \"echo\"\n";
  };
  folder_.write("t.toml", "caftan = 1\n[run]\nname = \"ticking\"\nplacement = \"hosts\"\nstart_timeout = \"30s\"\n" +
                              ticker("first", "here", "1") + ticker("second", "there", "1000") +
                              "[roles.echo]\ntype = \"echo\"\nreplicas = 2\nhosts = [\"here\", \"there\"]\n"
                              "[cluster]\nsecret_file = \"s\"\n[hosts.here]\naddress = \"127.0.0.1:" +
                              port_.number() + "\"\n[hosts.there]\naddress = \"127.0.0.1\"\n");
  port_.release();
  Command here(folder_, kTicking, {"run", "t.toml", "--host", "here"});
  Command there(folder_, kTicking, {"run", "t.toml", "--host", "there"});
  EXPECT_EQ(here.wait(), 0) << here.err();
  EXPECT_EQ(there.wait(), 0) << there.err();
  EXPECT_THAT(here.out(), HasSubstr("tick 1\n"));
  EXPECT_THAT(there.out(), HasSubstr("tick 1000\n")) << "the echo of the first host serves it to its end";
}

TEST_F(Hosts, K11_EachSideHearsThatTheOtherWasInterrupted) {
  for (const bool driver : {true, false}) {
    FreePort port;
    folder_.write("t.toml", hosts_file(port.number()));
    port.release();
    const std::vector<std::string> words{"run", "t.toml", "run.start_timeout=30s",
                                         "roles.ticker.config.rounds=100000000",
                                         "roles.ticker.config.ignore_stop=" + std::string(driver ? "false" : "true")};
    const auto with = [&](const std::string& role) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--role", role});
      return all;
    };
    Command ticker(folder_, kTicking, with("ticker"));
    Command echoes(folder_, kTicking, with("echo"));
    ASSERT_TRUE(ticker.wait_for_line("tick 20")) << ticker.err() << echoes.err();
    ASSERT_TRUE(echoes.wait_for_line("  echo-1")) << echoes.err();
    Command& interrupted = driver ? ticker : echoes;
    Command& other = driver ? echoes : ticker;
    interrupted.signal(SIGTERM);
    EXPECT_EQ(interrupted.wait(), 130) << interrupted.err();
    EXPECT_EQ(other.wait(), 1) << other.err();
    EXPECT_THAT(other.err(), HasSubstr("cancelled: the run was interrupted"));
  }
}

TEST_F(Hosts, K11_RN12_OneWhoseRoleDoesNotStopSaysWhyItEndsAllTheSame) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  const auto with = [](const std::string& role) {
    return std::vector<std::string>{"run",
                                    "t.toml",
                                    "run.start_timeout=30s",
                                    "run.stop_timeout=4s",
                                    "roles.ticker.config.rounds=100000000",
                                    "roles.ticker.config.ignore_stop=true",
                                    "roles.ticker.config.flood=true",
                                    "--role",
                                    role};
  };
  Command ticker(folder_, kTicking, with("ticker"));
  Command echoes(folder_, kTicking, with("echo"));
  ASSERT_TRUE(ticker.wait_for_line("tick 20")) << ticker.err() << echoes.err();
  ASSERT_TRUE(echoes.wait_for_line("  echo-1")) << echoes.err();
  ticker.signal(SIGTERM);
  EXPECT_EQ(ticker.wait(), 130) << ticker.err();
  EXPECT_THAT(ticker.err(),
              HasSubstr("ticker had not returned from run() within 4s (run.stop_timeout) and was killed"));
  EXPECT_EQ(echoes.wait(), 1) << echoes.err();
  EXPECT_THAT(echoes.err(), HasSubstr("cancelled: the run was interrupted"));
}

TEST_F(Hosts, K7b_AWorkerThatIsStartedTwiceGetsAnErrorAtOnceAndAtTheEnd) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  const auto with = [](std::initializer_list<std::string> more) {
    std::vector<std::string> words{"run", "t.toml", "roles.ticker.config.rounds=100000000"};
    words.insert(words.end(), more);
    return words;
  };
  Command ticker(folder_, kTicking, with({"run.start_timeout=30s", "--role", "ticker"}));
  Command echoes(folder_, kTicking, with({"run.start_timeout=30s", "--role", "echo"}));
  ASSERT_TRUE(ticker.wait_for_line("tick 20")) << ticker.err() << echoes.err();
  Command twin(folder_, kTicking, with({"run.start_timeout=5s", "--role", "echo", "--replica", "0"}));
  EXPECT_EQ(twin.wait(), 1) << twin.err();
  const std::string refusal = "ticker: refused by the server: another worker \"echo-0\" is connected \\(127.0.0.1:";
  EXPECT_THAT(twin.err(), ContainsRegex("warning: echo-0 was refused: duplicate_worker: " + refusal));
  EXPECT_THAT(twin.err(), ContainsRegex("error: echo-0: duplicate_worker: still refused after 5s: " + refusal));
  ticker.signal(SIGINT);
  EXPECT_EQ(ticker.wait(), 130) << ticker.err();
}

TEST_F(Hosts, BI2_APortInUseIsNamed) {
  folder_.write("t.toml", hosts_file(port_.number()));
  const Finished run = run_to_end(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: ticker: "), HasSubstr("127.0.0.1:" + port_.number()),
                             HasSubstr("Address already in use")));
}

TEST_F(Hosts, BI2_AWorkerThatNeverComesIsNamed) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command echo(folder_, kTicking, {"run", "t.toml", "--role", "echo", "--replica", "0"});
  EXPECT_EQ(ticker.wait(), 1);
  EXPECT_EQ(echo.wait(), 1);
  // The command that times out first leaves, so the other one may name that command's worker as missing, too.
  EXPECT_THAT(ticker.err(), ContainsRegex("echo-1 ha(s|ve) not come within 6"));
  EXPECT_THAT(echo.err(), HasSubstr("echo-0: timeout: echo-1 has not come within 6"));
}

TEST_F(Hosts, SE26_WithoutTheFirstHostOnlyItIsMissed) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  const Finished echoes = run_to_end(folder_, kTicking, {"run", "t.toml", "--role", "echo"});
  EXPECT_EQ(echoes.code, 1);
  EXPECT_THAT(echoes.err, ContainsRegex("echo-[01]: timeout: ticker has not come within 6s; 2 of 3 are here \\("));
}

TEST_F(Hosts, SE26_WhoRunsOnTheSameHostIsNotMissed) {
  std::string file = hosts_file(port_.number());
  file.replace(file.find("replicas = 2"), 12, "replicas = 3");
  folder_.write("t.toml", file + "[hosts.there]\naddress = \"127.0.0.1\"\n");
  port_.release();
  const std::vector<std::string> common{"run", "t.toml", "roles.echo.hosts=[\"here\", \"there\", \"there\"]"};
  auto with = [&common](std::initializer_list<std::string> more) {
    std::vector<std::string> words = common;
    words.insert(words.end(), more);
    return words;
  };
  // Two of the three echoes come, both started by one command; the ticker has a longer start time-out than they have.
  Command ticker(folder_, kTicking, with({"run.start_timeout=20s", "--role", "ticker"}));
  Command echoes(folder_, kTicking, with({"--host", "there"}));
  EXPECT_EQ(echoes.wait(), 1);
  ticker.signal(SIGINT);
  EXPECT_EQ(ticker.wait(), 130);
  EXPECT_THAT(echoes.err(), ContainsRegex("echo-[12]: timeout: echo-0 has not come within 6s; 3 of 4 are here"));
}

TEST_F(Hosts, BI2_AnotherSecretIsRefusedAtBothSides) {
  folder_.write("other", "not the same secret\n");
  folder_.write("t.toml", hosts_file(port_.number()));
  folder_.write("u.toml", hosts_file(port_.number(), "ticking", "other"));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command echo(folder_, kTicking, {"run", "u.toml", "--role", "echo", "--replica", "0"});
  EXPECT_EQ(echo.wait(), 1);
  EXPECT_EQ(ticker.wait(), 1);
  EXPECT_THAT(echo.err(), HasSubstr("not_authenticated"));
  EXPECT_THAT(ticker.err(), AllOf(HasSubstr("warning: ticker refused a connection: not_authenticated: "),
                                  ContainsRegex("have not come within 6s.*\\(refused: not_authenticated: ")));
  EXPECT_THAT(folder_.read(ticker.run_directory() + "/log/ticker.log"), HasSubstr("not_authenticated"));
}

TEST_F(Hosts, BI2_AnotherClusterIsRefusedAtBothSides) {
  folder_.write("t.toml", hosts_file(port_.number()));
  folder_.write("u.toml", hosts_file(port_.number(), "tocking"));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command echo(folder_, kTicking, {"run", "u.toml", "--role", "echo", "--replica", "0"});
  EXPECT_EQ(echo.wait(), 1);
  EXPECT_EQ(ticker.wait(), 1);
  EXPECT_THAT(echo.err(), HasSubstr("wrong_cluster"));
  EXPECT_THAT(ticker.err(), HasSubstr("warning: ticker refused a connection: wrong_cluster: "));
  EXPECT_THAT(folder_.read(ticker.run_directory() + "/log/ticker.log"), HasSubstr("wrong_cluster"));
}

TEST_F(Hosts, HS12_OtherSettingsAreRefusedAtBothSides) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command echo(folder_, kTicking, {"run", "t.toml", "run.seed=7", "--role", "echo", "--replica", "0"});
  EXPECT_EQ(echo.wait(), 2);
  EXPECT_EQ(ticker.wait(), 2);
  for (const Command* side : {&ticker, &echo}) {
    EXPECT_THAT(side->err(), HasSubstr("other settings in [run]: worker 'echo-0' was started from another file or with "
                                       "other overrides than 'ticker'"));
  }
}

TEST_F(Hosts, HS12_WhatBelongsToOneHostMayDiffer) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "run.start_timeout=30s", "--role", "ticker"});
  Command echoes(folder_, kTicking, {"run", "t.toml", "run.start_timeout=40s", "output.dir=other", "--role", "echo"});
  EXPECT_EQ(ticker.wait(), 0) << ticker.err();
  EXPECT_EQ(echoes.wait(), 0) << echoes.err();
}

TEST_F(Hosts, ADriverThatFailsFailsTheRunOnEveryHost) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  const std::vector<std::string> common{"run", "t.toml", "run.start_timeout=30s", "roles.ticker.config.end=failure"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return more;
  };
  Command ticker(folder_, kTicking, with({"--role", "ticker"}));
  Command first(folder_, kTicking, with({"--role", "echo", "--replica", "0"}));
  Command second(folder_, kTicking, with({"--role", "echo", "--replica", "1"}));
  for (Command* side : {&ticker, &first, &second}) {
    EXPECT_EQ(side->wait(), 1) << side->err();
    EXPECT_THAT(side->err(), HasSubstr("error: ticker: goal_missed: not good enough\n"));
  }
}

/// A member of a later version: it speaks only a version of the protocol that the workers here do not know.
net::HandshakeOptions from_tomorrow(const std::string& name, std::uint32_t id) {
  net::HandshakeOptions options;
  options.self.versions = {0xfff0, 0xffff};
  options.self.cluster = "ticking";
  options.self.name = name;
  options.self.id = WorkerId{id};
  options.self.incarnation = Incarnation{1};
  options.secret = net::Secret("our shared secret");
  return options;
}

TEST_F(Hosts, BI2_AnotherVersionThatComesIsRefusedAtBothSides) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  transport::ThreadedExecutor executor;
  Error refused(Errc::peer_down, "");
  while (refused.code() == Errc::peer_down) {  // it does not listen yet
    std::promise<Result<transport::Accepted>> accepted;
    transport::dial(executor, "tcp:127.0.0.1:" + port_.number(), from_tomorrow("echo-0", 1), "ticker", {},
                    [&accepted](Result<transport::Accepted> result) { accepted.set_value(std::move(result)); });
    refused = accepted.get_future().get().error();
  }
  EXPECT_EQ(refused.code(), Errc::protocol_mismatch) << refused.message();
  EXPECT_EQ(ticker.wait(), 1);
  EXPECT_THAT(ticker.err(), AllOf(ContainsRegex("echo-0, echo-1 have not come within 6"),
                                  HasSubstr("warning: ticker refused a connection: protocol_mismatch: ")));
  EXPECT_THAT(folder_.read(ticker.run_directory() + "/log/ticker.log"), HasSubstr("protocol_mismatch"));
}

TEST_F(Hosts, BI2_AnotherVersionThatIsMetIsRefusedAtBothSides) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  transport::ThreadedExecutor executor;
  std::promise<Error> refused;
  std::once_flag once;
  const auto coordinator = transport::listen(
      executor, "tcp:127.0.0.1:" + port_.number(),
      []() -> Result<net::HandshakeOptions> { return from_tomorrow("ticker", 0); }, {},
      [&](Result<transport::Accepted> result) { std::call_once(once, [&] { refused.set_value(result.error()); }); });
  ASSERT_TRUE(coordinator) << coordinator.error().message();
  (*coordinator)->start();
  Command echo(folder_, kTicking, {"run", "t.toml", "--role", "echo", "--replica", "0"});
  EXPECT_EQ(echo.wait(), 1);
  EXPECT_THAT(echo.err(), HasSubstr("protocol_mismatch"));
  EXPECT_EQ(refused.get_future().get().code(), Errc::protocol_mismatch);
  (*coordinator)->close();
}

TEST(Start, BI2_AWorkerThatExitsWhileItStartsIsNamed) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run = run_to_end(folder, kTicking, {"run", "t.toml", "roles.echo.config.birth=exits"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: echo-"), HasSubstr("exited with code 7")));
}

}  // namespace
}  // namespace caftan::test::start_test

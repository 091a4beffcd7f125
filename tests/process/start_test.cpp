// BI-2: a start that cannot succeed is over within the start time-out, and says why, at both sides.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

/// A port of this host that nobody else gets while it lives. `listening` = nobody else can listen there either.
class Port {
 public:
  Port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~Port() { release(); }
  void release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  std::string number() const { return std::to_string(number_); }

 private:
  int fd_;
  int number_ = 0;
};

std::string hosts_file(const std::string& port, const std::string& name = "ticking", const std::string& secret = "s") {
  return "caftan = 1\n[run]\nname = \"" + name +
         "\"\nplacement = \"hosts\"\nstart_timeout = \"2s\"\n"
         "[roles.ticker]\ntype = \"ticker\"\n[roles.ticker.config]\nrounds = 20\n[roles.ticker.uses]\nechoes = "
         "\"echo\"\n"
         "[roles.echo]\ntype = \"echo\"\nreplicas = 2\n"
         "[cluster]\nsecret_file = \"" +
         secret + "\"\n[hosts.here]\naddress = \"127.0.0.1:" + port + "\"\n";
}

class Hosts : public testing::Test {
 protected:
  void SetUp() override { folder_.write("s", "a shared secret\n"); }
  Folder folder_;
  Port port_;
};

TEST_F(Hosts, OneCommandForEachRoleRunsTheApplication) {
  folder_.write("t.toml", hosts_file(port_.number()));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command first(folder_, kTicking, {"run", "t.toml", "--role", "echo", "--replica", "0"});
  Command second(folder_, kTicking, {"run", "t.toml", "--role", "echo", "--replica", "1"});
  EXPECT_EQ(ticker.wait(), 0) << ticker.err();
  EXPECT_THAT(ticker.out(), HasSubstr("tick 20\n"));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
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
  // Whoever gives up first leaves, and is missed by the other one as well.
  EXPECT_THAT(ticker.err(), ContainsRegex("echo-1 ha(s|ve) not come within 2"));
  EXPECT_THAT(echo.err(), ContainsRegex("echo-1 ha(s|ve) not come within 2"));
}

TEST_F(Hosts, BI2_AnotherSecretIsRefusedAtBothSides) {
  folder_.write("other", "not that secret\n");
  folder_.write("t.toml", hosts_file(port_.number()));
  folder_.write("u.toml", hosts_file(port_.number(), "ticking", "other"));
  port_.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command echo(folder_, kTicking, {"run", "u.toml", "--role", "echo", "--replica", "0"});
  EXPECT_EQ(echo.wait(), 1);
  EXPECT_EQ(ticker.wait(), 1);
  EXPECT_THAT(echo.err(), HasSubstr("not_authenticated"));
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
  EXPECT_THAT(folder_.read(ticker.run_directory() + "/log/ticker.log"), HasSubstr("wrong_cluster"));
}

TEST(Start, BI2_AWorkerThatExitsWhileItStartsIsNamed) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run = run_to_end(folder, kTicking, {"run", "t.toml", "roles.echo.config.birth=exits"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: echo-"), HasSubstr("exited with code 7")));
}

}  // namespace
}  // namespace caftan::test

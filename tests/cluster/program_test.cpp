// Roles of a program on Workers of one process: how a program declares them, and how they find each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "one_process_run.hpp"

namespace caftan::test::program_test {
namespace {

using ::testing::HasSubstr;

class Client;

/// Asks back while it serves.
class Server {
 public:
  explicit Server(RoleContext& context) : clients_(context.uses<Client>("clients")) {}
  int sum_of_clients();

 private:
  std::vector<RRef<Client>> clients_;
};

class Client {
 public:
  struct Config {
    int value = 1;
  };
  static void settings(auto& s, Config& c) { s("value", c.value, "what it answers"); }
  Client(RoleContext& context, Config config)
      : context_(context), config_(config), server_(context.uses<Server>("server")), self_(context.self<Client>()) {}
  int value() { return config_.value; }
  Result<void> run(std::stop_token) {
    // The server calls this object while this method waits: so the wait must give up the object's turn.
    const auto sum = server_.front().try_rpc_sync<&Server::sum_of_clients>();
    if (!sum) return sum.error();
    context_.metric("sum", *sum);
    context_.report(context_.name() + " " + std::to_string(self_.rpc_sync<&Client::value>()));
    return {};
  }

 private:
  RoleContext& context_;
  Config config_;
  std::vector<RRef<Server>> server_;
  RRef<Client> self_;
};

int Server::sum_of_clients() {
  int sum = 0;
  for (auto& client : clients_) sum += client.rpc_sync<&Client::value>();
  return sum;
}

class ProgramRun : public OneProcessRun {
 protected:
  ProgramRun() {
    program_.role<Server>("server").uses<Client>("clients", at_least(1)).method<&Server::sum_of_clients>("sum");
    program_.role<Client>("client").uses<Server>("server").method<&Client::value>("value", brief);
  }
};

constexpr const char* kFile =
    "caftan = 1\n[run]\nplacement = \"one_process\"\n"
    "[roles.server]\ntype = \"server\"\n[roles.server.uses]\nclients = \"client\"\n"
    "[roles.client]\ntype = \"client\"\nreplicas = 3\n[roles.client.config]\nvalue = 14\n"
    "[roles.client.uses]\nserver = \"server\"\n";

TEST_F(ProgramRun, RolesThatUseEachOtherFindEachOtherAndAreAskedBack) {
  EXPECT_TRUE(run(kFile, 3));
  std::size_t sums = 0;
  for (const auto& returned : all<run::Returned>()) {
    EXPECT_EQ(returned.error.code(), Errc::ok) << returned.error.message();
  }
  for (const auto& metrics : all<run::Metrics>()) {
    for (const auto& [name, value, step] : metrics.values) {
      EXPECT_EQ(name, "sum");
      EXPECT_EQ(value, 42.0);
      ++sums;
    }
  }
  for (const auto& report : all<run::Report>()) EXPECT_THAT(report.text, HasSubstr(" 14"));
  EXPECT_EQ(sums, 3U);
  EXPECT_EQ(count<run::Report>(), 3U);
  EXPECT_EQ(count<run::Left>(), 4U);
}

TEST_F(ProgramRun, U21_EachReplicaIsMadeWithItsOwnSettings) {
  EXPECT_TRUE(run(std::string(kFile) + "[roles.client.per_replica.1]\nvalue = 100\n", 3));
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  for (const auto& metrics : all<run::Metrics>()) {
    for (const auto& [name, value, step] : metrics.values) EXPECT_EQ(value, 128.0) << name;
  }
  EXPECT_THAT(reports, ::testing::UnorderedElementsAre("client-0 14", "client-1 100", "client-2 14"));
}

/// An environment of the program's own; each step is worth 2.
class Steady final : public rl::Environment {
 public:
  const rl::EnvironmentSpec& spec() const noexcept override { return spec_; }
  rl::FirstObservation reset(std::uint64_t) override { return reset(); }
  rl::FirstObservation reset() override { return std::span<const float>(observation_); }
  Result<rl::Transition> step(int) override { return rl::Transition{.observation = observation_, .reward = 2}; }

 private:
  rl::EnvironmentSpec spec_{.id = "Steady", .observation_size = 1, .actions = 1};
  std::array<float, 1> observation_{};
};

class Player {
 public:
  struct Config {
    std::string environment = "Steady-v0";
  };
  static void settings(auto& s, Config& c) { s("environment", c.environment, "what it steps"); }
  Player(RoleContext& context, const Config& config)
      : context_(context), environment_(context.environments().make(config.environment).value()) {}
  Result<void> run(std::stop_token) {
    const auto first = environment_->reset(0);
    if (!first) return first.error();
    const auto taken = environment_->step(0);
    if (!taken) return taken.error();
    context_.report(environment_->spec().id + " " + std::to_string(taken->reward) + (taken->truncated ? " cut" : ""));
    return {};
  }

 private:
  RoleContext& context_;
  std::unique_ptr<rl::Environment> environment_;
};

class EnvironmentRun : public OneProcessRun {
 protected:
  EnvironmentRun() {
    program_.environment<Steady>("Steady-v0", {.max_steps = 1});
    program_.role<Player>("player").environment("environment", &Player::Config::environment);
  }
};

TEST_F(EnvironmentRun, U24_ARoleMakesTheProgramsOwnEnvironmentByItsName) {
  EXPECT_TRUE(run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.player]\ntype = \"player\"\n", 1));
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  EXPECT_THAT(reports, ::testing::ElementsAre("Steady-v0 2.000000 cut"));
}

TEST_F(EnvironmentRun, EN11_AFileWithAnUnknownEnvironmentIsRefusedWithItsLineAndTheNearest) {
  const auto types = program_.catalog().types().value();
  const std::string file =
      "caftan = 1\n[roles.player]\ntype = \"player\"\n[roles.player.config]\nenvironment = \"Steady-v1\"\n";
  const std::string text = app::parse_application(file, "/test.toml", {}, types, {}).diagnostics.render(false);
  EXPECT_THAT(text, HasSubstr("test.toml:5"));
  EXPECT_THAT(text, HasSubstr("no environment 'Steady-v1'; did you mean 'Steady-v0'?"));
}

TEST(Program, EN11_AnEnvironmentOfATakenNameIsRefusedAtTheStart) {
  Program program("twice");
  program.environment<Steady>("CartPole-v1");
  program.environment<Steady>("Other-v0");
  const auto types = program.catalog().types();
  ASSERT_FALSE(types);
  EXPECT_THAT(types.error().text(), HasSubstr("there is an environment 'CartPole-v1' already"));
}

TEST(Program, AUseSaysHowManyReplicasItMayName) {
  Program program("counts");
  program.role<Client>("client");
  program.role<Server>("server")
      .uses<Client>("one")
      .uses<Client>("two", exactly(2))
      .uses<Client>("any", at_least(0))
      .uses<Client>("few", at_most(3))
      .uses<Client>("perhaps", at_most(1, 0));
  const auto types = program.catalog().types();
  ASSERT_TRUE(types) << types.error().message();
  std::vector<std::string> counts;
  for (const app::RoleUse& use : types->find("server")->uses) {
    const bool is_open = use.max == app::RoleUse::kAnyNumber;
    counts.push_back(use.name + " " + std::to_string(use.min) +
                     (is_open ? " or more" : " to " + std::to_string(use.max)));
  }
  EXPECT_THAT(counts,
              ::testing::ElementsAre("one 1 to 1", "two 2 to 2", "any 0 or more", "few 1 to 3", "perhaps 0 to 1"));
}

class Broken {
 public:
  explicit Broken(RoleContext& context) { (void)context.uses<Server>("undeclared"); }
  Result<void> run(std::stop_token) { return {}; }
};

TEST_F(ProgramRun, AUseThatWasNotDeclaredFailsTheRoleByName) {
  program_.role<Broken>("broken");
  EXPECT_TRUE(run(std::string(kFile) + "[roles.broken]\ntype = \"broken\"\n", 4));
  ASSERT_EQ(failures(), 1U);
  const Error error = all<run::Failed>().front().error;
  EXPECT_EQ(error.worker(), "broken");
  EXPECT_THAT(error.message(), HasSubstr("role 'broken' has no use 'undeclared'. Declare it in main: "));
}

/// A role whose methods only some of the tests register.
class Shop {
 public:
  explicit Shop(RoleContext&) {}
  int price(int item) { return 10 * item; }
  int discount(int item) { return item; }
};

/// Calls a method that its program did not register.
class Buyer {
 public:
  explicit Buyer(RoleContext& context) : context_(context), shop_(context.use<Shop>("shop")) {}
  Result<void> run(std::stop_token) {
    context_.report(shop_.try_rpc_sync<&Shop::price>(1).error().message());
    return {};
  }

 private:
  RoleContext& context_;
  RRef<Shop> shop_;
};

TEST_F(ProgramRun, CALL2_AMethodThatARoleDidNotRegisterSaysWhatTheProgramWrites) {
  program_.role<Shop>("shop");
  program_.role<Buyer>("buyer").uses<Shop>("shop");
  EXPECT_TRUE(
      run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.kiosk]\ntype = \"shop\"\n"
          "[roles.buyer]\ntype = \"buyer\"\n[roles.buyer.uses]\nshop = \"kiosk\"\n",
          1));
  ASSERT_EQ(count<run::Report>(), 1U);
  const std::string text = all<run::Report>().front().text;
  EXPECT_THAT(text, ::testing::StartsWith("unknown_function: buyer: the role class "));
  EXPECT_THAT(text, HasSubstr("Shop, of which worker 'kiosk' has an object"));
  EXPECT_THAT(text, HasSubstr("Shop>(\"shop\").method<&"));
  EXPECT_THAT(text, HasSubstr("Shop::price>(\"price\")"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("registry.add")));
}

/// Reports how many shops it was given, and the one that there is.
class Comparer {
 public:
  explicit Comparer(RoleContext& context) : context_(context) {}
  Result<void> run(std::stop_token) {
    const std::string given = std::to_string(context_.uses<Shop>("shops").size());
    try {
      context_.report(given + " " + context_.use<Shop>("shops").owner_name());
    } catch (const RpcException& e) {
      context_.report(given + " " + e.error().message());
    }
    return {};
  }

 private:
  RoleContext& context_;
};

TEST_F(ProgramRun, TheUseOfOneReplicaRefusesAFileWithNoneOrTwo) {
  program_.role<Shop>("shop");
  program_.role<Comparer>("comparer").uses<Shop>("shops", at_least(0));
  EXPECT_TRUE(
      run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.kiosk]\ntype = \"shop\"\n"
          "[roles.stall]\ntype = \"shop\"\n[roles.none]\ntype = \"comparer\"\n"
          "[roles.one]\ntype = \"comparer\"\n[roles.one.uses]\nshops = \"stall\"\n"
          "[roles.two]\ntype = \"comparer\"\n[roles.two.uses]\nshops = [\"kiosk\", \"stall\"]\n",
          3));
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  const std::string wants = "use<...>(\"shops\") returns exactly 1 replica, the file gives role ";
  EXPECT_THAT(reports, ::testing::UnorderedElementsAre(
                           ::testing::StartsWith("0 bad_arguments: none: " + wants + "'none' 0. "), "1 stall",
                           ::testing::StartsWith("2 bad_arguments: two: " + wants + "'two' 2. ")));
}

class NoRole {};

/// A role that declares that it uses one class and asks the context for another.
template <class Asked>
class Confused {
 public:
  explicit Confused(RoleContext& context) { (void)context.uses<Asked>("server"); }
  Result<void> run(std::stop_token) { return {}; }
};

TEST_F(ProgramRun, U6_AUseOfAWrongClassSaysSoInWordsOfTheProgram) {
  program_.role<Confused<Client>>("of_another_role").uses<Server>("server");
  program_.role<Confused<NoRole>>("of_no_role").uses<Server>("server");
  EXPECT_TRUE(run(std::string(kFile) + "[roles.x]\ntype = \"of_another_role\"\n[roles.x.uses]\nserver = \"server\"\n"
                                       "[roles.y]\ntype = \"of_no_role\"\n[roles.y.uses]\nserver = \"server\"\n",
                  5));
  ASSERT_EQ(failures(), 2U);
  for (const auto& failed : all<run::Failed>()) {
    const std::string text = failed.error.message();
    EXPECT_THAT(text, HasSubstr(failed.error.worker() == "x" ? "Client>(\"server\"): the role of this worker is a"
                                                             : "NoRole is not the class of a role of this program"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("role_of"))) << "no internal names";
  }
}

TEST(Catalog, RefusesAClassTwiceAndUsesOfWhatIsNoRole) {
  Program twice("test");
  twice.role<Broken>("a");
  twice.role<Broken>("b");
  EXPECT_THAT(twice.catalog().types().error().text(), HasSubstr("is registered as 'a' and as 'b'"));
  Program missing("test");
  missing.role<Broken>("a").uses<Server>("server");
  EXPECT_THAT(missing.catalog().types().error().text(), HasSubstr("which is no role of this program"));
}

TEST(Catalog, NamesBothMethodsOfOneName) {
  Program twice("test");
  twice.role<Shop>("shop").method<&Shop::price>("price").concurrent<&Shop::discount>("price");
  const std::string text = twice.catalog().types().error().text();
  EXPECT_THAT(text, HasSubstr("the method name 'shop.price' stands for &"));
  EXPECT_THAT(text, HasSubstr("Shop::price of role 'shop' and for &"));
  EXPECT_THAT(text, HasSubstr("Shop::discount of role 'shop'"));
}

TEST(Catalog, NamesMethodsOfTwoRolesWhoseNamesMakeOneName) {
  Program dotted("test");
  dotted.role<Shop>("a").method<&Shop::price>("b.c");
  dotted.role<Server>("a.b").method<&Server::sum_of_clients>("c");
  const std::string text = dotted.catalog().types().error().text();
  EXPECT_THAT(text, HasSubstr("the method name 'a.b.c' stands for &"));
  EXPECT_THAT(text, HasSubstr("Shop::price of role 'a' and for &"));
  EXPECT_THAT(text, HasSubstr("Server::sum_of_clients of role 'a.b'"));
  Program apart("test");
  apart.role<Shop>("a").method<&Shop::price>("c");
  apart.role<Server>("b").method<&Server::sum_of_clients>("c");
  EXPECT_TRUE(apart.catalog().types());
}

}  // namespace
}  // namespace caftan::test::program_test

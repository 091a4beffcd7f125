// Roles of a file under its permissions (docs/protocols/permissions.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "one_process_run.hpp"

namespace caftan::test::permission_role_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int square(int x) { return x * x; }
int cube(int x) { return x * x * x; }

class Agent;

/// Is not said to use the agent, and calls it by the reference that it was handed.
class Observer {
 public:
  explicit Observer(RoleContext& context) : context_(context) {}
  Result<int> play(const RRef<Agent>& agent);

 private:
  RoleContext& context_;
};

class Agent {
 public:
  explicit Agent(RoleContext& context) : context_(context), observer_(context.use<Observer>("observer")) {}
  int act(int state) { return state + 1; }
  Result<void> run(std::stop_token) {
    const auto played = observer_.try_rpc_sync<&Observer::play>(context_.self<Agent>());
    context_.report(played ? std::to_string(*played) : played.error().message());
    return {};
  }

 private:
  RoleContext& context_;
  RRef<Observer> observer_;
};

Result<int> Observer::play(const RRef<Agent>& agent) {
  const auto report = [this](const Result<int>& result) {
    context_.report(result ? std::to_string(*result) : result.error().text());
  };
  report(context_.try_rpc_sync<&square>("agent", 3));
  report(context_.try_rpc_sync<&cube>("agent", 3));
  const auto found = context_.try_rpc_sync<&actors::role_of<Agent>>("agent");
  context_.report(found ? "found" : found.error().text());
  return agent.try_rpc_sync<&Agent::act>(6);
}

class PermissionRun : public OneProcessRun {
 protected:
  PermissionRun() {
    program_.role<Agent>("agent").uses<Observer>("observer").method<&Agent::act>("act");
    program_.role<Observer>("observer").method<&Observer::play>("play");
    program_.provide([](Registry& registry) {
      registry.add<&square>("square");
      registry.add<&cube>("cube");
      registry.open("cube");
    });
  }
  /// Runs the two roles, and returns what they report.
  std::vector<std::string> reports(const std::string& rules) {
    EXPECT_TRUE(
        run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.agent]\ntype = \"agent\"\nuses.observer = "
            "\"observer\"\n[roles.observer]\ntype = \"observer\"\n" +
                rules,
            1));
    EXPECT_EQ(failures(), 0U);
    std::vector<std::string> reports;
    for (const auto& report : all<run::Report>()) reports.push_back(report.text);
    return reports;
  }
};

TEST_F(PermissionRun, PM2_ByDefaultARoleHasOpenFunctionsAndTheReferencesThatItWasHanded) {
  const std::string unused =
      "role 'observer' does not use role 'agent' (test.toml:7), and [permissions] does not allow it";
  EXPECT_THAT(reports(""), ElementsAre("observer may not call square here: " + unused, "27",
                                       "observer may not call caftan.role.agent here: " + unused, "7"));
}

TEST_F(PermissionRun, PM3_RulesOfTheFileDecide) {
  EXPECT_THAT(reports("[permissions.observer]\nfunctions = [\"square\"]\nroles = [\"agent\"]\n"),
              ElementsAre("9", "observer may not call cube here: [permissions.observer] functions (test.toml:10)",
                          "found", "7"));
}

TEST_F(PermissionRun, PM3_ARoleThatMayBeCalledByNoneIsNotCalledByAReferenceEither) {
  const auto said = reports("[permissions.observer]\nroles = []\n");
  EXPECT_THAT(said.back(), HasSubstr("observer may not call agent.act here: [permissions.observer] roles "
                                     "(test.toml:10) does not name role 'agent'"));
}

TEST_F(PermissionRun, PM2_TheOpenDefaultAllowsAll) {
  EXPECT_THAT(reports("[permissions]\ndefault = \"open\"\n"), ElementsAre("9", "27", "found", "7"));
}

TEST_F(PermissionRun, PM9_CheckKnowsWhatTheProgramRegisters) {
  const auto types = program_.catalog().types().value();
  const auto loaded = app::parse_application(
      "caftan = 1\n[roles.agent]\ntype = \"agent\"\nuses.observer = \"observer\"\n[roles.observer]\ntype = "
      "\"observer\"\n[permissions.observer]\nfunctions = [\"sqare\"]\n",
      "/test.toml", {}, types, {.mode = app::LoadMode::check});
  EXPECT_THAT(loaded.diagnostics.render(false),
              HasSubstr("/test.toml:8:14: error: functions: nothing is registered as 'sqare' in this program; did you "
                        "mean 'square'?"));
}

}  // namespace
}  // namespace caftan::test::permission_role_test

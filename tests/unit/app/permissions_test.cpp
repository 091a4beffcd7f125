// [permissions]: rules of the file, what `check` finds in them, and what they let workers do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caftan/app/internal/permissions.hpp"
#include "caftan/app/internal/resolved.hpp"
#include "caftan/app/internal/settings_digest.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::permissions_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kFile = R"(caftan = 1
[roles.agent]
type = "cartpole.agent"
uses.observers = "observer"
[roles.observer]
type = "cartpole.observer"
replicas = 2
)";

RoleTypes types_with_functions() {
  RoleTypes types = make_types();
  types.set_functions([] {
    return std::vector<std::string>{"caftan.role.cartpole.agent",
                                    "cartpole.agent.report_reward",
                                    "cartpole.agent.select_action",
                                    "cartpole.observer.run_episode",
                                    "math.add",
                                    "parameter_server.server.pull"};
  });
  return types;
}

LoadedApplication load_with(const std::string& rules, std::vector<std::string> overrides = {}) {
  const RoleTypes types = types_with_functions();
  return parse_application(std::string(kFile) + rules, "app.toml", overrides, types,
                           {.mode = LoadMode::check, .cores = 64});
}

std::string check(const std::string& rules, std::vector<std::string> overrides = {}) {
  return load_with(rules, std::move(overrides)).diagnostics.render(false);
}

std::string one_error(const std::string& line) { return line + "error: 1 error; app.toml is not valid\n"; }

/// Returns what `caller` may do at `callee`.
PeerPermissions at(const LoadedApplication& loaded, const std::string& callee, const std::string& caller) {
  EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  const Plan plan = make_plan(loaded.application);
  return permissions_at(loaded.application, plan, *plan.find(callee)).peers.at(caller);
}

TEST(Permissions, PM2_WithoutRulesARoleMayDoWhatItUses) {
  const LoadedApplication loaded = load_with("");
  EXPECT_TRUE(at(loaded, "observer-1", "agent").uses.allowed);
  const PeerPermissions observer = at(loaded, "agent", "observer-1");
  EXPECT_FALSE(observer.uses.allowed);
  EXPECT_EQ(observer.uses.name,
            "role 'observer' does not use role 'agent' (app.toml:5), and [permissions] does not allow it");
  EXPECT_FALSE(at(loaded, "observer-0", "observer-1").uses.allowed) << "replicas do not use each other";
  const LoadedApplication more = load_with("[roles.extra]\ntype = \"cartpole.observer\"\n");
  EXPECT_FALSE(at(more, "extra", "agent").uses.allowed) << "the agent uses the other role";
  EXPECT_TRUE(at(more, "observer-0", "agent").uses.allowed);
  EXPECT_FALSE(observer.functions || observer.role || observer.operators || observer.references);
}

TEST(Permissions, PM2_TheDefaultMayBeOpen) {
  const LoadedApplication loaded = load_with("[permissions]\ndefault = \"open\"\n");
  EXPECT_TRUE(at(loaded, "agent", "observer-1").uses.allowed);
  EXPECT_EQ(check("[permissions]\ndefault = \"opne\"\n").substr(0, 18), "app.toml:9:11: err");
}

TEST(Permissions, PM3_ARuleReplacesTheDefaultAndIsNamedWithItsLine) {
  const LoadedApplication loaded = load_with(
      "[permissions.observer]\nfunctions = [\"math.*\"]\nroles = []\noperators = [\"agent\"]\nreferences = "
      "[\"agent\"]\n");
  const PeerPermissions rules = at(loaded, "agent", "observer-0");
  ASSERT_TRUE(rules.functions && rules.role && rules.operators && rules.references);
  EXPECT_THAT(rules.functions->allowed, ElementsAre("math.*"));
  EXPECT_EQ(rules.functions->name, "[permissions.observer] functions (app.toml:9)");
  EXPECT_FALSE(rules.role->allowed);
  EXPECT_EQ(rules.role->name, "[permissions.observer] roles (app.toml:10) does not name role 'agent'");
  EXPECT_TRUE(rules.operators->allowed);
  EXPECT_TRUE(rules.references->allowed);
  EXPECT_FALSE(at(loaded, "observer-1", "observer-0").references->allowed);
  EXPECT_FALSE(at(loaded, "observer-0", "agent").role) << "the rules are of role observer only";
}

TEST(Permissions, PM3_ARuleOfTheCommandLineSaysSo) {
  const LoadedApplication loaded = load_with("", {"permissions.observer.roles=[]"});
  EXPECT_EQ(at(loaded, "agent", "observer-0").role->name,
            "[permissions.observer] roles (command line) does not name role 'agent'");
}

TEST(Permissions, PM9_UnknownNamesAreErrorsWithTheNearestName) {
  EXPECT_EQ(check("[permissions.obsrever]\nroles = []\n"),
            one_error("app.toml:8:14: error: [permissions.obsrever]: no role 'obsrever'; did you mean 'observer'?\n"));
  EXPECT_EQ(check("[permissions.observer]\nroles = [\"agnet\"]\n"),
            one_error("app.toml:9:10: error: roles: no role 'agnet'; did you mean 'agent'?\n"));
  EXPECT_EQ(check("[permissions.observer]\noperators = [\"agent\", \"agent\"]\n"),
            one_error("app.toml:9:23: error: operators names role 'agent' twice\n"));
  EXPECT_EQ(check("[permissions.observer]\nfunctions = [\"math.ad\"]\n"),
            one_error("app.toml:9:14: error: functions: nothing is registered as 'math.ad' in this program; did you "
                      "mean 'math.add'?\n"));
  EXPECT_THAT(check("[permissions.observer]\nfunctions = [\"caftan.*\"]\n"), HasSubstr("belongs to Caftan"));
  EXPECT_THAT(check("[permissions.observer]\nfunction = [\"math.add\"]\n"),
              HasSubstr("unknown key 'function' in [permissions.observer]; did you mean 'functions'?"));
  EXPECT_THAT(check("[permissions]\nobserver = 3\n"), HasSubstr("app.toml:9:1: error: unknown key 'observer'"));
  EXPECT_THAT(check("[permissions.observer]\nroles = [3]\n"), HasSubstr("app.toml:9:"));
}

TEST(Permissions, PM9_FunctionsOfAScriptOfTheFileAreKnown) {
  EXPECT_EQ(check("scripts.policy = \"policy.pt\"\n[permissions.agent]\nfunctions = [\"policy.act\", \"pol*\"]\n"), "");
  EXPECT_EQ(check("[permissions.agent]\nfunctions = [\"caftan.script_module\"]\n"), "") << "what makes modules";
}

TEST(Permissions, PM9_RulesThatCanNeverMatchAreWarnings) {
  EXPECT_EQ(check("[permissions.observer]\nfunctions = [\"parameter_server.server.pull\"]\n"),
            "app.toml:9:14: warning: functions: 'parameter_server.server.pull' can never match: no role of this file "
            "has that method\n");
  EXPECT_EQ(check("[permissions.observer]\nfunctions = [\"math.*\", \"math.add\"]\n"),
            "app.toml:9:24: warning: functions: 'math.add' can never match: what stands before it allows the same\n");
  EXPECT_EQ(check("[permissions.agent]\noperators = [\"agent\"]\n"),
            "app.toml:9:14: warning: operators: 'agent' can never match: the role has one worker, which may do "
            "everything at itself\n");
  EXPECT_EQ(check("[permissions.observer]\n"),
            "app.toml:8:1: warning: [permissions.observer] has no rule: the default decides\n");
  EXPECT_EQ(check("[permissions.observer]\nroles = [\"agent\"]\nreferences = []\n"),
            "app.toml:9:1: warning: roles: 'agent' can never match: a method needs a reference, and "
            "[permissions.observer] references does not name the role\n");
  EXPECT_EQ(check("[permissions.observer]\noperators = [\"observer\"]\n"), "") << "there is another replica";
}

TEST(Permissions, PM9_UsesThatRulesForbidAreErrors) {
  EXPECT_EQ(
      check("[permissions.agent]\nroles = []\n"),
      one_error("app.toml:9:1: error: [permissions.agent] roles forbids uses.observers = \"observer\" (line 4) of "
                "role 'agent': add \"observer\"\n"));
  EXPECT_EQ(check("[permissions.agent]\nreferences = []\n"),
            one_error("app.toml:9:1: error: [permissions.agent] references forbids uses.observers = \"observer\" (line "
                      "4) of role 'agent': add \"observer\"\n"));
  EXPECT_EQ(check("[permissions.agent]\nroles = []\nfunctions = [\"cartpole.observer.run_episode\"]\n"), "")
      << "one method of the used role is allowed by its name";
  EXPECT_EQ(check("[permissions.agent]\nroles = [\"observer\"]\nreferences = [\"observer\"]\n"), "");
}

TEST(Permissions, TheResolvedFileHasTheSameRules) {
  const RoleTypes types = types_with_functions();
  const LoadedApplication loaded =
      load_with("[permissions]\ndefault = \"open\"\n[permissions.observer]\nfunctions = [\"math.add\"]\nroles = []\n");
  ASSERT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  const std::string text = resolved_text(loaded.application, types);
  EXPECT_THAT(text, HasSubstr("[permissions.observer]\nfunctions = [\"math.add\"]\nroles = []\n"));
  const LoadedApplication again = parse_application(text, "resolved.toml", {}, types, {.mode = LoadMode::check});
  ASSERT_TRUE(again.diagnostics.ok()) << again.diagnostics.render(true);
  const std::string second = resolved_text(again.application, types);
  EXPECT_EQ(second.substr(second.find('\n')), text.substr(text.find('\n'))) << "but for the name of the file";
}

TEST(Permissions, HostsWithOtherRulesDiffer) {
  const RoleTypes types = types_with_functions();
  const auto digest = [&types](const std::string& rules) {
    return settings_digest(load_with(rules).application, types);
  };
  const std::string without = digest("");
  EXPECT_EQ(digest("[permissions]\ndefault = \"uses\"\n"), without);
  EXPECT_THAT(differing_tables(without, digest("[permissions.observer]\nroles = []\n")), ElementsAre("permissions"));
  EXPECT_THAT(differing_tables(digest("[permissions.observer]\nroles = []\n"),
                               digest("[permissions.observer]\noperators = []\n")),
              ElementsAre("permissions"));
}

}  // namespace
}  // namespace caftan::app::testing::permissions_test

// U21: uses that name several roles, and settings of single replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caftan/app/internal/plan.hpp"
#include "caftan/app/internal/resolved.hpp"
#include "caftan/app/internal/settings_digest.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::uses_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Environment = cartpole::ObserverConfig::Environment;
using Seeding = cartpole::ObserverConfig::Seeding;

constexpr std::string_view kFile = R"(caftan = 1
[roles.agent]
type = "cartpole.agent"
uses.observers = ["slow", "fast"]
[roles.fast]
type = "cartpole.observer"
replicas = 3
[roles.fast.config]
environment = "CartPole-v0"
[roles.fast.per_replica.1]
seeding = "same"
[roles.slow]
type = "cartpole.observer"
)";

std::string check(const std::string& from, const std::string& to, std::vector<std::string> overrides = {}) {
  std::string text(kFile);
  text.replace(text.find(from), from.size(), to);
  return load(text, std::move(overrides)).diagnostics.render(false);
}

std::string one(const std::string& line, const std::string& what = "app.toml") {
  return line + "error: 1 error; " + what + " is not valid\n";
}

std::vector<std::string> used(const Application& application) {
  const Plan plan = make_plan(application);
  std::vector<std::string> names;
  for (const WorkerId id : plan.workers[0].uses.at(0).workers) names.push_back(plan.workers[id.value].name);
  return names;
}

TEST(Uses, U21_AListOfRolesMeansAllTheirReplicasInItsOrder) {
  const LoadedApplication loaded = load(kFile);
  ASSERT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  EXPECT_THAT(used(loaded.application), ElementsAre("slow", "fast-0", "fast-1", "fast-2"));
  EXPECT_EQ(loaded.diagnostics.render(false), "") << "both roles are used";
}

TEST(Uses, U21_EveryRoleOfAListIsChecked) {
  EXPECT_EQ(check("\"slow\", \"fast\"", "\"slow\", \"fats\""),
            "app.toml:4:27: error: uses.observers: no role 'fats'; did you mean 'fast'?\n"
            "error: 1 error; app.toml is not valid\n");
  EXPECT_EQ(check("\"slow\", \"fast\"", "\"slow\", \"fast\", \"slow\""),
            one("app.toml:4:35: error: uses.observers names role 'slow' twice\n"));
  EXPECT_EQ(check("\"slow\", \"fast\"", "\"slow\", \"fast\", \"agent\""),
            one("app.toml:4:35: error: uses.observers wants a cartpole.observer, role 'agent' (line 2) is a "
                "cartpole.agent\n"));
  EXPECT_THAT(check("\"slow\", \"fast\"", "\"slow\", 3"),
              HasSubstr("uses.observers must be a string, the name of a role, or a list of them, is the integer 3\n"));
  EXPECT_THAT(check("\"slow\", \"fast\"", ""),
              HasSubstr("app.toml:4:18: error: uses.observers must name at least one role"));
}

TEST(Uses, ARoleTypeIsShownConfigsOfTheTypesThatItUsesOnly) {
  RoleTypes types = make_types();
  std::size_t asked = 0;
  std::size_t shown = 0;
  types.find("cartpole.agent")->requirements = [&](const std::any&, const RolePlace& place) {
    ++asked;
    for (const std::any* config : place.uses.at("observers")) {
      EXPECT_NE(std::any_cast<cartpole::ObserverConfig>(config), nullptr);
      ++shown;
    }
    return std::vector<MissingRequirement>();
  };
  for (const char* roles : {"['agent', 'fast']", "'agent'"}) {
    const std::vector<std::string> overrides{std::string("roles.agent.uses.observers=") + roles};
    const LoadedApplication loaded =
        parse_application(kFile, "app.toml", overrides, types, {.mode = LoadMode::check, .cores = 64});
    EXPECT_THAT(loaded.diagnostics.render(false), HasSubstr("uses.observers wants a cartpole.observer, role 'agent'"));
  }
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(shown, 3U);
}

TEST(Uses, ReplicasOfARoleTypeWithoutSettingsCount) {
  RoleTypes types;
  types.add({.name = "plain"}).value();
  RoleType counting{.name = "counting", .drives = true};
  counting.config = SettingsDeclaration::of<cartpole::ObserverConfig>();
  counting.uses = {{.name = "others", .role_type = "plain", .min = 1, .max = RoleUse::kAnyNumber}};
  std::size_t count = 0;
  counting.requirements = [&](const std::any&, const RolePlace& place) {
    count = place.uses.at("others").size();
    return std::vector<MissingRequirement>();
  };
  types.add(std::move(counting)).value();
  const LoadedApplication loaded = parse_application(
      "caftan = 1\n[roles.a]\ntype = \"plain\"\nreplicas = 3\n[roles.b]\ntype = \"counting\"\nuses.others = \"a\"\n",
      "app.toml", {}, types, {.mode = LoadMode::check, .cores = 64});
  EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  EXPECT_EQ(count, 3U);
}

TEST(Uses, U21_TheNumberOfAllCounts) {
  const std::string text =
      "caftan = 1\n[roles.trainer]\ntype = \"parameter_server.trainer\"\nuses.server = [\"a\", \"b\"]\n"
      "[roles.a]\ntype = \"parameter_server.server\"\nconfig.model = \"small\"\n"
      "[roles.b]\ntype = \"parameter_server.server\"\nconfig.model = \"small\"\n";
  EXPECT_EQ(
      load(text).diagnostics.render(false),
      one("app.toml:4:15: error: uses.server wants exactly 1 parameter_server.server, role 'a' (line 5), role 'b' "
          "(line 8) have 2 replicas\n"));
}

TEST(PerReplica, U21_ReplacesKeysOfTheSharedConfig) {
  const LoadedApplication loaded = load(kFile);
  const RoleSpec& fast = *loaded.application.find_role("fast");
  const auto config = [&](int replica) {
    return std::any_cast<const cartpole::ObserverConfig&>(fast.config_of(replica));
  };
  EXPECT_EQ(config(0).seeding, Seeding::per_worker);
  EXPECT_EQ(config(1).seeding, Seeding::same);
  EXPECT_EQ(config(1).environment, Environment::cartpole_v0) << "what it does not name is as for all";
  EXPECT_EQ(config(2).seeding, Seeding::per_worker);
  const LoadedApplication other = load(kFile, {"roles.fast.per_replica.2.environment=CartPole-v1"});
  ASSERT_TRUE(other.diagnostics.ok()) << other.diagnostics.render(true);
  EXPECT_EQ(
      std::any_cast<const cartpole::ObserverConfig&>(other.application.find_role("fast")->config_of(2)).environment,
      Environment::cartpole_v1);
}

TEST(PerReplica, U21_IsCheckedAsTheConfigIs) {
  EXPECT_EQ(check("seeding = \"same\"", "seeding = \"sane\""),
            one("app.toml:11:11: error: seeding must be per_worker | same, is \"sane\"; did you mean 'same'?\n"));
  EXPECT_EQ(
      check("seeding = \"same\"", "seding = \"same\""),
      one("app.toml:11:1: error: unknown key 'seding' in [roles.fast.per_replica.1] (cartpole.observer); did you mean "
          "'seeding'?\n"));
  for (const std::string wrong : {"3", "-1", "x", "01", "1x"}) {
    EXPECT_THAT(check("per_replica.1", "per_replica." + wrong),
                HasSubstr("per_replica." + wrong + ": role 'fast' has replicas 0..2\n"));
  }
  EXPECT_THAT(check("[roles.fast.per_replica.1]\nseeding = \"same\"", "[roles.fast.per_replica]\n1 = 2"),
              HasSubstr("per_replica.1 must be a table, is the integer 2"));
}

TEST(PerReplica, U21_AnErrorOfTheSharedConfigIsReportedOnce) {
  EXPECT_EQ(
      check("environment = \"CartPole-v0\"", "enviroment = 1"),
      one("app.toml:9:1: error: unknown key 'enviroment' in [roles.fast.config] (cartpole.observer); did you mean "
          "'environment'?\n"));
}

TEST(PerReplica, U21_StandsInTheResolvedFileAndInTheDigest) {
  const RoleTypes types = make_types();
  const LoadedApplication first = load(kFile);
  const std::string text = resolved_text(first.application, types);
  EXPECT_THAT(text, HasSubstr("observers = [\"slow\", \"fast\"]\n"));
  EXPECT_THAT(text, HasSubstr("[roles.fast.per_replica.1]"));
  const LoadedApplication second = load(text);
  ASSERT_TRUE(second.diagnostics.ok()) << second.diagnostics.render(true);
  EXPECT_EQ(resolved_text(second.application, types), resolved_text(first.application, types));
  EXPECT_THAT(used(second.application), ElementsAre("slow", "fast-0", "fast-1", "fast-2"));
  const LoadedApplication other = load(kFile, {"roles.fast.per_replica.2.seeding=same"});
  EXPECT_THAT(differing_tables(settings_digest(first.application, types), settings_digest(other.application, types)),
              ElementsAre("roles.fast"));
}

TEST(Check, U13_TheErrorOfARoleOutsideOfRolesSaysWhereItBelongs) {
  const std::string text = "caftan = 1\n[agent.config]\ngamma = 0.9\n" + std::string(kFile).substr(11);
  EXPECT_EQ(load(text).diagnostics.render(false),
            one("app.toml:2:2: error: unknown key 'agent': a role stands below [roles]; write [roles.agent.config]\n"));
}

TEST(Check, U13_ErrorsOfTheCommandLineAreNotThoseOfTheFile) {
  EXPECT_EQ(load(kFile, {"run.sed=3"}).diagnostics.render(false),
            one("command line: error: run.sed=3: unknown key 'sed'; did you mean 'seed'?\n", "the command line"));
}

}  // namespace
}  // namespace caftan::app::testing::uses_test

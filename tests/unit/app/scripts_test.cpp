// [roles.NAME.scripts]: which files a role's workers let peers call (docs/protocols/script.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caftan/app/internal/resolved.hpp"
#include "caftan/app/internal/settings_digest.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::scripts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kFile = R"(caftan = 1
[run]
seed = 2
[roles.agent]
type = "cartpole.agent"
uses.observers = "observer"
[roles.agent.scripts]
policy = "models/policy.pt"
value-1 = "/models/value.pt"
[roles.agent.modules]
net = "net.pt"
[roles.observer]
type = "cartpole.observer"
)";

LoadedApplication load_scripts(std::vector<std::string> overrides = {}, LoadMode mode = LoadMode::check,
                               const RoleTypes& types = make_types()) {
  return parse_application(kFile, "/apps/configs/agent.toml", overrides, types, {.mode = mode, .cores = 64});
}
std::string findings(std::vector<std::string> overrides) {
  return load_scripts(std::move(overrides)).diagnostics.render(false);
}

/// Types whose scripts are looked at: none of them is one.
RoleTypes strict_types(std::vector<std::string>& asked) {
  RoleTypes types = make_types();
  types.set_script_check([&asked](const std::filesystem::path& file, bool is_module) -> Result<void> {
    asked.push_back((is_module ? "module " : "") + file.string());
    return Error(Errc::invalid_config, "calls what it may not");
  });
  return types;
}

TEST(RoleScripts, SC1_ARoleNamesTheFilesThatItServes) {
  const LoadedApplication loaded = load_scripts();
  ASSERT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  const RoleSpec& role = *loaded.application.find_role("agent");
  ASSERT_EQ(role.scripts.size(), 2U);
  EXPECT_EQ(role.scripts[0].name, "policy");
  EXPECT_EQ(role.scripts[0].file, "/apps/configs/models/policy.pt");
  EXPECT_EQ(role.scripts[1].name, "value-1");
  EXPECT_EQ(role.scripts[1].file, "/models/value.pt");
  ASSERT_EQ(role.modules.size(), 1U);
  EXPECT_EQ(role.modules[0].file, "/apps/configs/net.pt");
  EXPECT_TRUE(loaded.application.find_role("observer")->scripts.empty());
}

TEST(RoleScripts, TheResolvedFileHasTheirWholePaths) {
  const RoleTypes types = make_types();
  const std::string text = resolved_text(load_scripts().application, types);
  EXPECT_THAT(text, HasSubstr("\n[roles.agent.scripts]\npolicy = \"/apps/configs/models/policy.pt\"\n"
                              "value-1 = \"/models/value.pt\"\n\n[roles.agent.modules]\n"
                              "net = \"/apps/configs/net.pt\"\n\n[roles.agent.uses]\n"));
  const LoadedApplication again = parse_application(text, "/elsewhere/agent.toml", {}, types, {.cores = 64});
  EXPECT_EQ(resolved_text(again.application, types), text);
}

TEST(RoleScripts, OverridesNameOtherFiles) {
  const LoadedApplication loaded = load_scripts({"roles.agent.scripts.policy=other.pt"});
  EXPECT_EQ(loaded.application.find_role("agent")->scripts[0].file, "/apps/configs/other.pt");
}

TEST(RoleScripts, NamesAndValuesThatCannotBeAreErrors) {
  EXPECT_THAT(findings({"roles.agent.scripts.policy=3"}),
              HasSubstr("scripts.policy must be a string, the path of a TorchScript file, is the integer 3"));
  EXPECT_THAT(findings({"roles.agent.scripts.policy=\"\""}),
              HasSubstr("scripts.policy must be the path of a TorchScript file, is empty"));
  EXPECT_THAT(findings({"roles.agent.scripts={Policy=\"a.pt\"}"}), HasSubstr("a name in scripts must be a-z 0-9 - _"));
  EXPECT_THAT(findings({"roles.agent.scripts=\"a.pt\""}), HasSubstr("scripts must be a table, is the string"));
}

TEST(RoleScripts, SC8_CheckWarnsOfAFileThatRunRefuses) {
  std::vector<std::string> asked;
  const RoleTypes types = strict_types(asked);
  const std::string text =
      ": role 'agent': scripts.policy = \"/apps/configs/models/policy.pt\" calls what it may not\n";
  const LoadedApplication checked = load_scripts({}, LoadMode::check, types);
  EXPECT_TRUE(checked.diagnostics.ok());
  EXPECT_THAT(checked.diagnostics.render(false), HasSubstr("/apps/configs/agent.toml:8:10: warning" + text));
  EXPECT_THAT(asked, ElementsAre("/apps/configs/models/policy.pt", "/models/value.pt", "module /apps/configs/net.pt"));
  const LoadedApplication started = load_scripts({}, LoadMode::run, types);
  EXPECT_FALSE(started.diagnostics.ok());
  EXPECT_THAT(started.diagnostics.render(false), HasSubstr("/apps/configs/agent.toml:8:10: error" + text));
}

TEST(RoleScripts, AWorkersProcessDoesNotLookAgain) {
  std::vector<std::string> asked;
  const RoleTypes types = strict_types(asked);
  const LoadedApplication loaded =
      parse_application(kFile, "/apps/configs/agent.toml", {}, types, {.cores = 64, .requirements = false});
  EXPECT_TRUE(loaded.diagnostics.ok());
  EXPECT_TRUE(asked.empty());
}

TEST(RoleScripts, HS12_HostsCompareTheNamesOfScriptsAndNotTheirPaths) {
  const RoleTypes types = make_types();
  const auto digest = [&](std::vector<std::string> overrides) {
    return settings_digest(load_scripts(std::move(overrides)).application, types);
  };
  EXPECT_EQ(digest({}), digest({"roles.agent.scripts.policy=other.pt"}));
  EXPECT_THAT(differing_tables(digest({}), digest({"roles.agent.scripts.more=other.pt"})), ElementsAre("roles.agent"));
  EXPECT_THAT(differing_tables(digest({}), digest({"roles.agent.modules.more=other.pt"})), ElementsAre("roles.agent"));
}

}  // namespace
}  // namespace caftan::app::testing::scripts_test

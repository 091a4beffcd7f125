// Every shipped file is valid, and says in its comments what the declarations say.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "caftan/base/settings_io.hpp"
#include "role_types.hpp"

namespace caftan::app::testing {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(CAFTAN_SOURCE_DIR) / "configs";

std::vector<std::filesystem::path> cartpole_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.path().filename().string().starts_with("cartpole")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TEST(Configs, EveryCartPoleFileChecks) {
  ASSERT_GE(cartpole_files().size(), 3U);
  for (const std::filesystem::path& file : cartpole_files()) {
    const LoadedApplication loaded =
        load_application(file, {}, make_cartpole_types(), {.mode = LoadMode::run, .cores = 64});
    EXPECT_EQ(loaded.diagnostics.render(true), "") << file;
  }
}

TEST(Configs, CartPoleSaysWhatItsDefaultsAre) {
  // Everything the file sets is a default but for the name, the seed, the wall time and `replicas`.
  const LoadedApplication file = load_application(kConfigs / "cartpole.toml", {}, make_cartpole_types(), {.cores = 64});
  ASSERT_TRUE(file.diagnostics.ok());
  const RoleTypes types = make_cartpole_types();
  const SettingsDeclaration& declaration = types.find("cartpole.agent")->config;
  std::any config = declaration.make();
  std::any given = file.application.find_role("agent")->config;
  const auto defaults = declaration.bind(config);
  const auto values = declaration.bind(given);
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    if (defaults[i].name == "solved_at") continue;
    EXPECT_EQ(defaults[i].get(), values[i].get()) << defaults[i].name;
  }
  EXPECT_EQ(file.application.run.seed, 543);
  EXPECT_EQ(file.application.run.wall, std::chrono::minutes(10));
}

TEST(Configs, CartPoleShowsEveryKeyOfItsTypes) {
  std::ifstream stream(kConfigs / "cartpole.toml");
  std::ostringstream text;
  text << stream.rdbuf();
  const RoleTypes types = make_cartpole_types();
  for (const RoleType& type : types.all()) {
    std::any config = type.config.make();
    for (const SettingField& field : type.config.bind(config)) {
      EXPECT_NE(text.str().find("\n" + field.name + " "), std::string::npos) << type.name << ": " << field.name;
    }
  }
}

}  // namespace
}  // namespace caftan::app::testing

// Every shipped file is valid, and says in its comments what the declarations say.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "caftan/base/settings_io.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::configs_test {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(CAFTAN_SOURCE_DIR) / "configs";

/// An application's shipped file in which all keys stand, the role that has most of those keys, and the keys that have
/// another value there than their default.
struct Guide {
  std::string file;
  std::string role;
  std::string role_type;
  std::set<std::string> set_otherwise;
};
const Guide kActorCritic{"actor_critic_cartpole.toml",
                         "learner",
                         "actor_critic.learner",
                         {"target", "goal", "unroll", "lr", "evaluate_every", "ahead", "lambda", "reward_scale",
                          "normalize_advantages", "schedule"}};
const Guide kCartPole{"cartpole.toml", "agent", "cartpole.agent", {"solved_at"}};
const Guide kBatchServer{
    "batch_parameter_server.toml", "server", "batch_parameter_server.server", {"rounds", "goal", "momentum", "every"}};
const Guide kParameterServer{
    "parameter_server.toml", "server", "parameter_server.server", {"goal", "evaluate_every", "every"}};
const Guide kBatching{"cartpole_batch.toml", "agent", "cartpole_batch.agent", {}};
const Guide kBenchmark{"rl_bench.toml", "agent", "rl_bench.agent", {}};
const Guide kServerBenchmark{"ps_bench.toml", "master", "ps_bench.master", {}};
const Guide kPipeline{
    "pipeline.toml", "master", "pipeline.master", {"image_size", "batch", "num_micro_batches", "batches"}};
const Guide kHybrid{"hybrid_ddp.toml", "master", "hybrid_ddp.master", {"goal", "every"}};
const Guide kSimulation{"phold.toml", "clock", "phold.clock", {"end_time"}};
const Guide kLanguageModel{"rnn_lm.toml", "trainer", "rnn_lm.trainer", {"goal", "every"}};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// Calls `visit(field with its default, field as given)` for every key, also for those of sub-tables.
template <class Visit>
void for_each_pair(const std::vector<SettingField>& defaults, const std::vector<SettingField>& given, Visit visit) {
  ASSERT_EQ(defaults.size(), given.size());
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    if (defaults[i].kind == SettingKind::table) {
      for_each_pair(defaults[i].fields, given[i].fields, visit);
    } else {
      visit(defaults[i], given[i]);
    }
  }
}

class Guides : public ::testing::TestWithParam<Guide> {};
INSTANTIATE_TEST_SUITE_P(Shipped, Guides,
                         ::testing::Values(kActorCritic, kCartPole, kBatching, kBatchServer, kBenchmark, kHybrid,
                                           kParameterServer, kPipeline, kServerBenchmark, kSimulation, kLanguageModel),
                         [](const auto& info) { return info.param.file.substr(0, info.param.file.find('.')); });

TEST(Configs, EveryShippedFileChecks) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".toml") continue;
    const LoadedApplication loaded =
        load_application(entry.path(), {}, make_shipped_types(), {.mode = LoadMode::run, .cores = 64});
    EXPECT_EQ(loaded.diagnostics.render(true), "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 10U);
}

TEST(Configs, CartPoleRunsAsTheReadmeShows) {
  const LoadedApplication file = load_application(kConfigs / "cartpole.toml", {}, make_shipped_types(), {.cores = 64});
  EXPECT_EQ(file.application.run.seed, 543);
  EXPECT_EQ(file.application.run.wall, std::chrono::minutes(10));
}

TEST_P(Guides, SayWhatTheDefaultsAre) {
  const Guide& guide = GetParam();
  const RoleTypes types = make_shipped_types();
  const LoadedApplication file = load_application(kConfigs / guide.file, {}, types, {.cores = 64});
  ASSERT_TRUE(file.diagnostics.ok());
  const SettingsDeclaration& declaration = types.find(guide.role_type)->config;
  std::any config = declaration.make();
  std::any given = file.application.find_role(guide.role)->config;
  for_each_pair(declaration.bind(config), declaration.bind(given),
                [&](const SettingField& standard, const SettingField& set) {
                  if (guide.set_otherwise.contains(standard.name)) return;
                  EXPECT_EQ(standard.get(), set.get()) << standard.name;
                });
}

TEST_P(Guides, ShowEveryKeyOfTheTypes) {
  const std::string text = text_of(kConfigs / GetParam().file);
  const std::string prefix = GetParam().role_type.substr(0, GetParam().role_type.find('.') + 1);
  const RoleTypes types = make_shipped_types();
  for (const RoleType& type : types.all()) {
    if (!type.name.starts_with(prefix)) continue;
    std::any config = type.config.make();
    const auto fields = type.config.bind(config);
    for_each_pair(fields, fields, [&](const SettingField& field, const SettingField&) {
      const bool shown = text.find("\n" + field.name + " ") != std::string::npos ||
                         text.find("\n# " + field.name + " ") != std::string::npos;
      EXPECT_TRUE(shown) << type.name << ": " << field.name;
    });
  }
}

}  // namespace
}  // namespace caftan::app::testing::configs_test

// What two hosts compare before they run parts of one application.
#include "caftan/app/internal/settings_digest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "role_types.hpp"

namespace caftan::app::testing::settings_digest_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kFile = R"(caftan = 1
[run]
placement = "hosts"
[roles.server]
type = "parameter_server.server"
config.model = "small"
[roles.trainer]
type = "parameter_server.trainer"
replicas = 2
uses.server = "server"
[cluster]
secret_file = "s"
[hosts.head]
address = "127.0.0.1:29500"
)";

std::string digest(std::vector<std::string> overrides, std::string_view file = kFile) {
  const LoadedApplication loaded = load(file, std::move(overrides));
  EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(false);
  return settings_digest(loaded.application, make_types());
}

std::vector<std::string> differing(std::vector<std::string> overrides) {
  return differing_tables(digest({}), digest(std::move(overrides)));
}

TEST(SettingsDigest, HS12_NamesTheTablesInWhichTwoHostsDiffer) {
  EXPECT_THAT(differing({}), IsEmpty());
  EXPECT_THAT(differing({"run.seed=2"}), ElementsAre("run"));
  EXPECT_THAT(differing({"roles.server.config.max_staleness=3", "limits.message=1MiB"}),
              ElementsAre("limits", "roles.server"));
  EXPECT_THAT(differing({"roles.trainer.replicas=3"}), ElementsAre("roles.trainer"));
  EXPECT_THAT(differing({"cluster.heartbeat=2s"}), ElementsAre("cluster"));
  EXPECT_THAT(differing({"hosts.node.address=127.0.0.2", "roles.trainer.hosts=[\"head\", \"node\"]"}),
              ElementsAre("hosts", "roles.trainer"));
  EXPECT_THAT(differing({"roles.other.type=parameter_server.server", "roles.other.config.model=small"}),
              ElementsAre("roles.other"));
}

TEST(SettingsDigest, HS12_TheOrderOfTheRolesNumbersTheWorkers) {
  std::string swapped(kFile);
  const std::size_t server = swapped.find("[roles.server]");
  const std::size_t trainer = swapped.find("[roles.trainer]");
  const std::string first = swapped.substr(server, trainer - server);
  swapped.erase(server, first.size());
  swapped.insert(swapped.find("[cluster]"), first);
  EXPECT_THAT(differing_tables(digest({}), digest({}, swapped)), ElementsAre("roles.server", "roles.trainer"));
}

TEST(SettingsDigest, HS12_WhatBelongsToOneHostIsNotCompared) {
  EXPECT_THAT(differing({"output.dir=elsewhere", "output.every=3s", "output.progress=none"}), IsEmpty());
  EXPECT_THAT(differing({"hosts.head.address=localhost:29501", "cluster.secret_file=other"}), IsEmpty());
  EXPECT_THAT(differing({"run.start_timeout=60s", "run.stop_timeout=5s", "run.own_cores=false"}), IsEmpty());
  EXPECT_THAT(differing({"roles.server.config.data=/dev/null"}), IsEmpty());
}

TEST(SettingsDigest, HS12_TheErrorBeginsWithTheTablesAndNamesBothWorkers) {
  const auto checked = check_same_settings({"a", "run=01 roles.agent=02"}, {"b", "run=02 roles.agent=03"});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), Errc::invalid_config);
  EXPECT_EQ(checked.error().text(),
            "other settings in [roles.agent], [run]: worker 'b' was started from another file or with other overrides "
            "than 'a'");
  EXPECT_TRUE(check_same_settings({"a", "run=01"}, {"b", "run=01"}));
  EXPECT_TRUE(check_same_settings({"a", "run=01"}, {"b", ""})) << "it says nothing of its settings";
  EXPECT_TRUE(check_same_settings({"a", ""}, {"b", "run=01"}));
}

TEST(SettingsDigest, AlwaysFitsIntoAHello) {
  std::string file(kFile);
  for (int i = 0; i < 20; ++i) {
    file += "[roles.much-longer-name-" + std::to_string(i) + "]\ntype = \"parameter_server.server\"\n" +
            "config.model = \"small\"\n";
  }
  const std::string long_one = digest({}, file);
  EXPECT_LE(long_one.size(), 255U);
  EXPECT_THAT(differing_tables(long_one, digest({"roles.server.config.max_staleness=3"}, file)), ElementsAre("roles"));
  EXPECT_THAT(differing_tables(long_one, digest({})), ElementsAre("roles"));
}

}  // namespace
}  // namespace caftan::app::testing::settings_digest_test

#include "caftan/app/internal/resolved.hpp"

#include <gtest/gtest.h>

#include "caftan/app/internal/plan.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::resolved_test {
namespace {

constexpr std::string_view kFile = R"(caftan = 1
[run]
placement = "hosts"
wall = "1h"
[roles.trainer]
type = "parameter_server.trainer"
replicas = 1
hosts = ["head", "node 1"]
uses.server = "server"
[roles.server]
type = "parameter_server.server"
torch_threads = 3
[roles.server.config]
model = "a \"quoted\" \u00e9 name"
optimizer.learning_rate = 1e-3
[hosts.head]
address = "[2001:db8::1]:29500"
["hosts"."node 1"]
address = "192.0.2.11"
[cluster]
secret_file = "../cluster.secret"
[limits]
message = "1.5MiB"
)";

LoadedApplication load_from(std::string_view text, const std::filesystem::path& file) {
  return parse_application(text, file, {}, make_types(), {.mode = LoadMode::check, .cores = 64});
}

constexpr const char* kResolved =
    R"(# Resolved from "servers.toml": every key with its value.
caftan = 1

[run]
name = "servers"
seed = 1
placement = "hosts"
launcher = "none"
deterministic = false
own_cores = true
start_timeout = "30s"
stop_timeout = "2s"
wall = "1h"
# fingerprint: none

[roles.trainer]
type = "parameter_server.trainer"
replicas = 1
torch_threads = 1
on_loss = "fail"
hosts = ["head", "node 1"]

[roles.trainer.uses]
server = "server"

[roles.server]
type = "parameter_server.server"
torch_threads = 3
on_loss = "fail"

[roles.server.config]
model = "a \"quoted\" é name"
max_staleness = 16
# data: none

[roles.server.config.optimizer]
type = "sgd"
learning_rate = 0.001

[cluster]
channel = "auto"
shm_ring = "64KiB"
spin = "auto"
rpc_timeout = "1min"
heartbeat = "1s"
secret_file = "/apps/cluster.secret"

[hosts."head"]
address = "[2001:db8::1]:29500"

[hosts."node 1"]
address = "192.0.2.11"

[permissions]
default = "uses"

[tls]
mode = "auto"
# certificate: none: the key is made of the secret
# key: none
# authority: none

[limits]
message = "1536KiB"
tensors = "16GiB"
send_queue = "256MiB"
pending_calls = 10000
# shared_memory: an eighth of the memory over the workers of the host, at most 1GiB

[output]
dir = "runs"
progress = "auto"
every = "1s"
)";

TEST(Resolved, IsCompleteAndReadable) {
  const LoadedApplication loaded = load_from(kFile, "/apps/configs/servers.toml");
  ASSERT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  EXPECT_EQ(resolved_text(loaded.application, make_types()), kResolved);
}

TEST(Resolved, ReadAgainFromAnotherFolderGivesTheSameApplication) {
  const RoleTypes types = make_types();
  const LoadedApplication first = load_from(kFile, "/apps/configs/servers.toml");
  const std::string text = resolved_text(first.application, types);
  const LoadedApplication second = load_from(text, "/elsewhere/servers.toml");
  ASSERT_TRUE(second.diagnostics.ok()) << second.diagnostics.render(true);
  EXPECT_EQ(resolved_text(second.application, types), text);
  EXPECT_EQ(render_plan(second.application, make_plan(second.application)),
            render_plan(first.application, make_plan(first.application)));
}

TEST(Resolved, LN3_HostsOfALauncherAreReadAgain) {
  const RoleTypes types = make_types();
  std::string file(kFile);
  file.replace(file.find("wall ="), 6, "launcher = \"mpi\"\nwall =");
  file.erase(file.find("address = \"192.0.2.11\"\n"), 23);
  const LoadedApplication first = load_from(file, "/apps/configs/servers.toml");
  ASSERT_TRUE(first.diagnostics.ok()) << first.diagnostics.render(true);
  const std::string text = resolved_text(first.application, types);
  EXPECT_NE(text.find("\n[hosts.\"node 1\"]\n\n[permissions]"), std::string::npos) << text;
  const LoadedApplication second = load_from(text, "/elsewhere/servers.toml");
  ASSERT_TRUE(second.diagnostics.ok()) << second.diagnostics.render(true);
  EXPECT_EQ(resolved_text(second.application, types), text);
}

TEST(Resolved, U5_ANoteOfARoleTypeIsACommentAndNoFinding) {
  RoleTypes types = make_types();
  types.find("parameter_server.server")->requirements = [](const std::any&, const RolePlace&) {
    return std::vector<MissingRequirement>{
        {.keys = {"optimizer"}, .text = "the rate is 0.5\nand not", .kind = MissingRequirement::Kind::note}};
  };
  const LoadedApplication loaded =
      parse_application(kFile, "/apps/configs/servers.toml", {}, types, {.mode = LoadMode::check, .cores = 64});
  EXPECT_EQ(loaded.diagnostics.render(false).find("the rate"), std::string::npos);
  const std::string text = resolved_text(loaded.application, types);
  EXPECT_NE(text.find("\n[roles.server]\n# the rate is 0.5?and not\ntype = "), std::string::npos) << text;
}

TEST(Resolved, EveryPortIsKept) {
  std::string text(kFile);
  text.replace(text.find(":29500"), 6, ":80");
  const LoadedApplication loaded = load_from(text, "/apps/configs/servers.toml");
  EXPECT_NE(resolved_text(loaded.application, make_types()).find("\"[2001:db8::1]:80\""), std::string::npos);
}

TEST(Resolved, OverridesAreInIt) {
  const LoadedApplication loaded = load(
      "caftan = 1\n[roles.agent]\ntype = \"cartpole.agent\"\nuses.observers = "
      "\"observer\"\n[roles.observer]\ntype = \"cartpole.observer\"\n",
      {"roles.observer.replicas=4", "roles.agent.config.solved_at=20"});
  ASSERT_TRUE(loaded.diagnostics.ok());
  const std::string text = resolved_text(loaded.application, make_types());
  EXPECT_NE(text.find("\nreplicas = 4\n"), std::string::npos);
  EXPECT_NE(text.find("\nsolved_at = 20.0\n"), std::string::npos);
}

}  // namespace
}  // namespace caftan::app::testing::resolved_test

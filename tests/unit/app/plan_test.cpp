#include "caftan/app/internal/plan.hpp"

#include <gtest/gtest.h>

#include "role_types.hpp"

namespace caftan::app::testing::plan_test {
namespace {

constexpr std::string_view kFile = R"(caftan = 1
[run]
name = "servers"
wall = "1h"
[roles.trainer]
type = "parameter_server.trainer"
replicas = 3
hosts = ["node1", "head"]
[roles.trainer.uses]
server = "server"
peers = "trainer"
[roles.server]
type = "parameter_server.server"
config.model = "small"
[hosts.head]
address = "192.0.2.10:29500"
[hosts.node1]
address = "192.0.2.11"
[cluster]
secret_file = "missing"
)";

Application load_plan(std::vector<std::string> overrides = {}) {
  LoadedApplication loaded = load(kFile, std::move(overrides));
  EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(true);
  return std::move(loaded.application);
}

TEST(Plan, ProcessesAreOnePerReplicaInTheOrderOfTheFile) {
  const Application application = load_plan();
  EXPECT_EQ(render_plan(application, make_plan(application)),
            "servers: seed 1, placement processes, 4 workers in 4 processes\n"
            "  id  worker     type                      process  host  channel  threads  uses\n"
            "  0   trainer-0  parameter_server.trainer  0        here  shm      1        server = server; peers = "
            "trainer-1, trainer-2\n"
            "  1   trainer-1  parameter_server.trainer  1        here  shm      1        server = server; peers = "
            "trainer-0, trainer-2\n"
            "  2   trainer-2  parameter_server.trainer  2        here  shm      1        server = server; peers = "
            "trainer-0, trainer-1\n"
            "  3   server     parameter_server.server   3        here  shm      1\n"
            "start_timeout 30s, stop_timeout 2s, wall 1h, rpc_timeout 1min, heartbeat 1s\n"
            "message 64MiB, tensors 16GiB, send_queue 256MiB, pending_calls 10000\n"
            "ends when run() has returned in: trainer\n"
            "output in runs/servers-<date>-<n>\n");
}

TEST(Plan, OneProcessHoldsAll) {
  const Application application = load_plan({"run.placement=one_process", "run.deterministic=true"});
  const Plan plan = make_plan(application);
  EXPECT_EQ(plan.processes, 1);
  EXPECT_EQ(plan.in_process(0).size(), 4U);
  EXPECT_EQ(plan.workers[2].channel, "loopback");
  EXPECT_TRUE(render_plan(application, plan)
                  .starts_with("servers: seed 1, placement one_process, deterministic, 4 workers in 1 process\n"));
}

TEST(Plan, RN25_OnlyProcessesOfARoleThatAsksForThemHaveCoresOfTheirOwn) {
  LoadedApplication loaded = load(kFile);
  Application& application = loaded.application;
  application.roles[1].own_cores = true;
  EXPECT_FALSE(make_plan(application).workers[0].own_cores);
  EXPECT_TRUE(make_plan(application).workers[3].own_cores);
  application.run.own_cores = false;
  EXPECT_FALSE(make_plan(application).workers[3].own_cores);
  application.run.own_cores = true;
  application.run.placement = Placement::one_process;
  EXPECT_FALSE(make_plan(application).workers[3].own_cores);
}

TEST(Plan, RN15_RN19_RolesWhoseWorkersMayBeLostAreNamedUnlessAllShareAProcess) {
  const std::vector<std::string> go_on{"roles.trainer.on_loss=go_on"};
  const Application application = load_plan(go_on);
  const Plan plan = make_plan(application);
  EXPECT_TRUE(plan.workers[0].may_be_lost && plan.workers[2].may_be_lost);
  EXPECT_FALSE(plan.workers[3].may_be_lost);
  EXPECT_NE(render_plan(application, plan)
                .find("ends when run() has returned in: trainer\ngoes on without lost workers of: trainer\noutput in "),
            std::string::npos)
      << render_plan(application, plan);
  const LoadedApplication shared = load(kFile, {go_on.front(), "run.placement=one_process"});
  const Plan in_one = make_plan(shared.application);
  EXPECT_FALSE(in_one.workers[0].may_be_lost);
  EXPECT_EQ(render_plan(shared.application, in_one).find("goes on without"), std::string::npos);
}

TEST(Plan, DP1_TheChannelOfOneHostIsSharedMemoryOnlyIfTheFileSaysSo) {
  EXPECT_EQ(make_plan(load_plan()).workers[0].channel, "shm");
  EXPECT_EQ(make_plan(load_plan({"cluster.channel=shm"})).workers[0].channel, "shm");
}

TEST(Plan, HostsAreGoneRoundAndTheFirstHostIsMetAtItsPort) {
  const Plan plan = make_plan(load_plan({"run.placement=hosts"}));
  EXPECT_EQ(plan.workers[0].host, "node1");
  EXPECT_EQ(plan.workers[1].host, "head");
  EXPECT_EQ(plan.workers[2].host, "node1");
  EXPECT_EQ(plan.workers[3].host, "head") << "without hosts: the first one";
  EXPECT_EQ(plan.workers[0].channel, "tcp+tls");
  EXPECT_EQ(plan.workers[1].channel, "tcp+tls 192.0.2.10:29500");
  EXPECT_EQ(plan.workers[3].channel, "tcp+tls");
  EXPECT_EQ(make_plan(load_plan({"run.placement=hosts", "cluster.channel=tcp"})).workers[0].channel, "tcp+tls");
  EXPECT_EQ(*plan.on_host("node1"), (std::vector<WorkerId>{{0}, {2}}));
  EXPECT_EQ(plan.on_host("node2").error().text(),
            "no worker runs on host 'node2'; did you mean 'node1'? (hosts: node1, head)");
}

TEST(Plan, U9_TheAddressWhereHostsMeetIsNamed) {
  const Application application = load_plan({"run.placement=hosts"});
  EXPECT_EQ(meeting_place(application), "192.0.2.10:29500 (host 'head')");
  EXPECT_TRUE(render_plan(application, make_plan(application))
                  .starts_with("servers: seed 1, placement hosts, meeting at 192.0.2.10:29500 (host 'head'), 4 workers "
                               "in 4 processes\n"));
  EXPECT_EQ(meeting_place(load_plan()), "");
}

TEST(Plan, WhoIsAloneOnAHostReachesTheOthersByTcp) {
  const Plan plan = make_plan(load_plan({"run.placement=hosts", "roles.trainer.replicas=1"}));
  ASSERT_EQ(plan.workers.size(), 2U);
  EXPECT_EQ(plan.workers[0].host, "node1");
  EXPECT_EQ(plan.workers[0].channel, "tcp+tls");
}

TEST(Plan, TS1_BetweenHostsTcpIsEncryptedUnlessTheFileSaysOff) {
  const auto use = [](std::vector<std::string> overrides) { return tls_use(load_plan(std::move(overrides))); };
  EXPECT_EQ(use({"run.placement=hosts"}), TlsUse::secret);
  EXPECT_EQ(use({"run.placement=hosts", "tls.mode=off"}), TlsUse::off);
  EXPECT_EQ(use({}), TlsUse::none);
  EXPECT_EQ(use({"cluster.channel=tcp"}), TlsUse::none);
  EXPECT_EQ(use({"cluster.channel=tcp", "tls.mode=on"}), TlsUse::secret);
  EXPECT_EQ(use({"tls.mode=on"}), TlsUse::none) << "shm";
  const std::vector<std::string> local{"run.placement=hosts", "hosts.head.address=127.0.0.1:1",
                                       "hosts.node1.address=::1"};
  EXPECT_EQ(use(local), TlsUse::none);
  EXPECT_EQ(use({"run.placement=hosts", "hosts.head.address=127.0.0.1:1"}), TlsUse::none)
      << "a host may know no other address than that of the first one";
  const Application off = load_plan({"run.placement=hosts", "tls.mode=off"});
  EXPECT_NE(render_plan(off, make_plan(off)).find("not encrypted: tls.mode is off\n"), std::string::npos);
}

TEST(Plan, WorkersThatShareTheCoresOfTheirMachineHaveALineForTheirLogs) {
  const Plan here = make_plan(load_plan({"roles.server.torch_threads=2"}));
  EXPECT_EQ(shared_cores_text(here, here.workers[0], 5), "");
  EXPECT_EQ(shared_cores_text(here, here.workers[0], 4), "4 workers with 5 torch threads share 4 cores");
  const Plan hosts = make_plan(load_plan({"run.placement=hosts"}));
  EXPECT_EQ(shared_cores_text(hosts, hosts.workers[0], 2), "") << "two of the four are on its host";
  EXPECT_EQ(shared_cores_text(hosts, hosts.workers[0], 1), "2 workers with 2 torch threads share 1 core");
}

TEST(Plan, SelectsByRoleAndReplica) {
  const Plan plan = make_plan(load_plan());
  EXPECT_EQ(*plan.select("trainer", 2), std::vector<WorkerId>{{2}});
  EXPECT_EQ(plan.select("trainer", {})->size(), 3U);
  EXPECT_EQ(*plan.select("server", 0), std::vector<WorkerId>{{3}});
  EXPECT_EQ(plan.select("trainer", 3).error().text(), "role 'trainer' has replicas 0..2, not 3");
  EXPECT_EQ(plan.select("trainers", {}).error().text(),
            "no role 'trainers'; did you mean 'trainer'? (roles: trainer, server)");
  EXPECT_EQ(plan.select("trainers", {}).error().code(), Errc::invalid_config);
}

TEST(Plan, AGivenReplicasOfOneIsNumbered) {
  EXPECT_EQ(make_plan(load_plan({"roles.server.replicas=1"})).workers[3].name, "server-0");
  EXPECT_NE(make_plan(load_plan()).find("server"), nullptr);
}

}  // namespace
}  // namespace caftan::app::testing::plan_test

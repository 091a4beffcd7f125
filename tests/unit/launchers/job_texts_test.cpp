// LN-7, LN-8: the texts for clusters are the golden files. To renew these, run the test with CAFTAN_WRITE_REFERENCE=1.
#include "caftan/launchers/internal/job_texts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace caftan::launchers::job_texts_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_golden(const std::string& name, const std::string& text) {
  const std::string file = std::string(CAFTAN_GOLDEN) + "/" + name;
  if (std::getenv("CAFTAN_WRITE_REFERENCE") != nullptr) std::ofstream(file, std::ios::binary) << text;
  std::ifstream stream(file, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, golden) << file;
}

/// A server and three trainers with two torch threads each.
app::Application make_application() {
  app::Application application;
  application.run.name = "servers";
  application.run.placement = app::Placement::hosts;
  application.run.launcher = app::LauncherChoice::slurm;
  app::RoleSpec server;
  server.name = "server";
  server.drives = true;
  server.keys.type = "server";
  app::RoleSpec trainer;
  trainer.name = "trainer";
  trainer.has_replicas = true;
  trainer.keys.type = "trainer";
  trainer.keys.replicas = 3;
  trainer.keys.torch_threads = 2;
  application.roles = {server, trainer};
  return application;
}

/// As a file without [hosts] is loaded: a host for each worker.
app::Application by_worker() {
  app::Application application = make_application();
  application.roles[0].keys.hosts = {"slot-0"};
  application.roles[1].keys.hosts = {"slot-1", "slot-2", "slot-3"};
  for (int i = 0; i < 4; ++i) {
    application.hosts.push_back(
        {.name = "slot-" + std::to_string(i), .address = {}, .port = 0, .interface = {}, .place = {}});
  }
  return application;
}

/// As a file with two hosts is loaded.
app::Application by_host() {
  app::Application application = make_application();
  application.run.wall = 90min + 1s;
  application.hosts.push_back(
      {.name = "head", .address = {}, .port = 0, .interface = {}, .place = {.line = 7, .column = 1}});
  application.hosts.push_back(
      {.name = "node", .address = {}, .port = 0, .interface = {}, .place = {.line = 8, .column = 1}});
  application.roles[1].keys.hosts = {"node", "head"};
  return application;
}

const RunCommand kCommand{.program = "/opt/caftan/bin/caftan",
                          .file = "/data/my runs/servers.toml",
                          .overrides = {"cluster.secret_file=s", "run.name=\"it's\"", "x="}};

TEST(SlurmScript, LN7_ATaskForEachWorker) {
  const app::Application application = by_worker();
  expect_golden("slurm_workers.sh", slurm_script(application, app::make_plan(application), kCommand));
}

TEST(SlurmScript, LN7_ANodeForEachHostAndATimeForAFileWithAWall) {
  const app::Application application = by_host();
  expect_golden("slurm_hosts.sh", slurm_script(application, app::make_plan(application), kCommand));
}

const KubernetesJob kJob{
    .image = "", .resolved = "# resolved\ncaftan = 1\n\n[run]\nname = \"servers\"\n", .secret = "5ec4e7"};

TEST(Kubernetes, LN8_APodForEachWorker) {
  app::Application application = by_worker();
  application.run.wall = 10min;
  expect_golden("kubernetes.yaml", kubernetes_manifests(application, app::make_plan(application), kJob));
}

TEST(Kubernetes, LN8_NamesOfObjectsBeginWithALetterAndLeaveRoomForTheNumberOfAPod) {
  app::Application application = by_worker();
  const auto manifests = [&](const std::string& run) {
    application.run.name = run;
    return kubernetes_manifests(application, app::make_plan(application), kJob);
  };
  EXPECT_THAT(manifests("7-seas"), HasSubstr("\n  name: run-7-seas\n"));
  EXPECT_THAT(manifests(std::string(49, 'a') + "-b"), HasSubstr("\n  name: " + std::string(49, 'a') + "\n"));
  EXPECT_THAT(manifests(std::string(64, 'a')),
              HasSubstr("value: " + std::string(50, 'a') + "-0." + std::string(50, 'a')));
}

TEST(Kubernetes, LN8_AnImageOfAnotherRegistryAndNoDeadlineWithoutAWall) {
  const app::Application application = by_worker();
  KubernetesJob job = kJob;
  job.image = "registry.example.org/me/servers:7";
  const std::string text = kubernetes_manifests(application, app::make_plan(application), job);
  EXPECT_THAT(text, HasSubstr("          image: \"registry.example.org/me/servers:7\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("activeDeadlineSeconds")));
}

TEST(ContainerFile, LN8_IsTheGoldenOne) { expect_golden("containerfile", container_file("servers")); }

}  // namespace
}  // namespace caftan::launchers::job_texts_test

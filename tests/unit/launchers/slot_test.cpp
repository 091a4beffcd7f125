// LN-1 to LN-4: which part of a run a process is, by the variables of its launcher.
#include "caftan/launchers/internal/slot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace caftan::launchers::slot_test {
namespace {

using app::LauncherChoice;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string, std::less<>>;

const Variables kTorchrun{
    {"RANK", "2"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                         {"PMIX_RANK", "1"},
                         {"PMIX_NAMESPACE", "3141402625"}};
const Variables kSlurm{{"SLURM_JOB_ID", "77"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_PROCID", "5"},
                       {"SLURM_NTASKS", "6"},
                       {"SLURM_STEP_NUM_TASKS", "6"},
                       {"SLURM_STEP_NODELIST", "n[07-08]"},
                       {"SLURM_JOB_NODELIST", "n[06-08]"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Slot slot(LauncherChoice choice, const Variables& variables) {
  const auto found = find_slot(choice, Environment(variables));
  EXPECT_TRUE(found) << found.error().message();
  return found ? *found : Slot();
}

std::string refusal(LauncherChoice choice, const Variables& variables) {
  const auto found = find_slot(choice, Environment(variables));
  EXPECT_FALSE(found);
  if (found) return "";
  EXPECT_EQ(found.error().code(), Errc::invalid_config);
  return found.error().text();
}

TEST(Slot, LN1_VariablesOfTorchrun) {
  const Slot found = slot(LauncherChoice::variables, kTorchrun);
  EXPECT_EQ(found.launcher, "variables");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.first, "head");
  EXPECT_EQ(found.port, 29500);
  EXPECT_FALSE(found.is_child) << "the parent may be a shell that ends before";
}

TEST(Slot, LN1_AMissingOrBrokenVariableIsNamed) {
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(refusal(LauncherChoice::variables, with(kTorchrun, {{name, ""}})),
                HasSubstr(std::string("the variable ") + name + " is not set"));
  }
  EXPECT_EQ(refusal(LauncherChoice::variables, with(kTorchrun, {{"RANK", "4"}})),
            "the variable RANK must be a number from 0 to 3, is \"4\"");
  EXPECT_EQ(refusal(LauncherChoice::variables, with(kTorchrun, {{"RANK", "-1"}})),
            "the variable RANK must be a number from 0 to 3, is \"-1\"");
  EXPECT_EQ(refusal(LauncherChoice::variables, with(kTorchrun, {{"WORLD_SIZE", "0"}})),
            "the variable WORLD_SIZE must be a number from 1 to 65536, is \"0\"");
  EXPECT_EQ(refusal(LauncherChoice::variables, with(kTorchrun, {{"MASTER_PORT", "65536"}})),
            "the variable MASTER_PORT must be a number from 1 to 65535, is \"65536\"");
  EXPECT_EQ(refusal(LauncherChoice::variables, with(kTorchrun, {{"WORLD_SIZE", "4 "}})),
            "the variable WORLD_SIZE must be a number from 1 to 65536, is \"4 \"");
}

TEST(Slot, LN1_VariablesOfOpenMpi) {
  const Slot found = slot(LauncherChoice::mpi, kOpenMpi);
  EXPECT_EQ(found.launcher, "mpi");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.size, 3);
  EXPECT_TRUE(found.is_child);
  EXPECT_EQ(found.first, "127.0.0.1") << "all processes are on one host";
  EXPECT_EQ(found.port, slot(LauncherChoice::mpi, with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).port)
      << "each process forms the same port";
  EXPECT_GE(found.port, 20000);
  EXPECT_LT(found.port, 30000);
}

TEST(Slot, LN1_OverSeveralHostsMpirunDoesNotSayWhereTheFirstIs) {
  const Variables apart = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(slot(LauncherChoice::mpi, apart).first, "");
  const Slot found = slot(LauncherChoice::mpi, with(apart, {{"MASTER_ADDR", "192.0.2.1"}, {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(found.first, "192.0.2.1");
  EXPECT_EQ(found.port, 29500);
}

TEST(Slot, LN1_VariablesOfPmi) {
  const Slot found = slot(LauncherChoice::mpi, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(found.rank, 0);
  EXPECT_EQ(found.size, 2);
  EXPECT_EQ(found.first, "127.0.0.1");
  EXPECT_THAT(refusal(LauncherChoice::mpi, {{"PMIX_RANK", "0"}}), HasSubstr("PMIX_RANK alone does not say how many"));
  EXPECT_THAT(refusal(LauncherChoice::mpi, {}), HasSubstr("neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set"));
}

TEST(Slot, LN1_VariablesOfSlurm) {
  const Slot found = slot(LauncherChoice::slurm, kSlurm);
  EXPECT_EQ(found.launcher, "slurm");
  EXPECT_TRUE(found.is_child);
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.size, 6);
  EXPECT_EQ(found.first, "n07") << "the first node of the step, not of the job";
  EXPECT_NE(found.port, slot(LauncherChoice::slurm, with(kSlurm, {{"SLURM_STEP_ID", "1"}})).port)
      << "two steps of a job do not meet each other";
  EXPECT_EQ(slot(LauncherChoice::slurm, with(kSlurm, {{"SLURM_STEP_RESV_PORTS", "12003-12004"}})).port, 12003);
}

TEST(Slot, LN1_AScriptOfSlurmIsNoTask) {
  Variables script = kSlurm;
  script.erase("SLURM_STEP_ID");
  EXPECT_THAT(refusal(LauncherChoice::slurm, script),
              HasSubstr("in job 77 of Slurm, but is no task of a step: start it "
                        "with srun"));
  EXPECT_THAT(refusal(LauncherChoice::slurm, {}), HasSubstr("SLURM_PROCID is not set"));
  EXPECT_THAT(refusal(LauncherChoice::slurm, with(kSlurm, {{"SLURM_STEP_NODELIST", "n[7"}})),
              HasSubstr("the variable SLURM_STEP_NODELIST: \"n[7\" is no list of nodes"));
}

TEST(Slot, LN2_AutoTakesTheInnermostLauncher) {
  EXPECT_EQ(slot(LauncherChoice::automatic, kSlurm).launcher, "slurm");
  EXPECT_EQ(slot(LauncherChoice::automatic, with(kSlurm, kOpenMpi)).launcher, "mpi");
  EXPECT_EQ(slot(LauncherChoice::automatic, with(with(kSlurm, kOpenMpi), kTorchrun)).launcher, "variables");
  Variables script = kSlurm;
  script.erase("SLURM_STEP_ID");
  EXPECT_THAT(refusal(LauncherChoice::automatic, script), HasSubstr("no launcher has started this process"));
  EXPECT_EQ(slot(LauncherChoice::slurm, with(kSlurm, kTorchrun)).launcher, "slurm") << "a choice in the file wins";
}

app::Application two_hosts(const std::string& first_address = "", std::uint16_t port = 0) {
  app::Application application;
  application.run.launcher = LauncherChoice::automatic;
  application.hosts.push_back({.name = "head", .address = first_address, .port = port, .interface = {}, .place = {}});
  application.hosts.push_back({.name = "node", .address = {}, .port = 0, .interface = {}, .place = {}});
  return application;
}

TEST(TakeSlot, LN3_TheRankIsTheHostOfTheFile) {
  app::Application application = two_hosts();
  const auto host = take_slot(application, {"slurm", 1, 2, "n07", 20001}, "192.0.2.8");
  ASSERT_TRUE(host) << host.error().message();
  EXPECT_EQ(*host, "node");
  EXPECT_EQ(application.hosts[0].address, "n07");
  EXPECT_EQ(application.hosts[0].port, 20001);
  EXPECT_EQ(application.hosts[1].address, "192.0.2.8");
}

TEST(TakeSlot, LN3_TheFirstListensWhereTheOthersDial) {
  app::Application application = two_hosts();
  const auto host = take_slot(application, {"slurm", 0, 2, "n07", 20001}, "192.0.2.7");
  ASSERT_TRUE(host);
  EXPECT_EQ(*host, "head");
  EXPECT_EQ(application.hosts[0].address, "n07");
}

TEST(TakeSlot, LN3_AnAddressOfTheFileWins) {
  app::Application application = two_hosts("192.0.2.1", 29500);
  application.hosts[1].address = "192.0.2.2";
  const auto host = take_slot(application, {"slurm", 1, 2, "n07", 20001}, "198.51.100.8");
  ASSERT_TRUE(host);
  EXPECT_EQ(application.hosts[0].address, "192.0.2.1");
  EXPECT_EQ(application.hosts[0].port, 29500);
  EXPECT_EQ(application.hosts[1].address, "192.0.2.2");
}

TEST(TakeSlot, LN4_AnotherNumberOfSlotsIsRefused) {
  for (const int size : {1, 3}) {
    app::Application application = two_hosts();
    const auto host = take_slot(application, {"mpi", 0, size, "n07", 20001}, "");
    ASSERT_FALSE(host);
    EXPECT_EQ(host.error().code(), Errc::invalid_config);
    EXPECT_THAT(host.error().text(),
                HasSubstr("the launcher mpi has " + std::string(size < 2 ? "too few" : "too many") +
                          " processes for the file: " + std::to_string(size) + " instead of 2"));
  }
}

TEST(TakeSlot, LN3_ALauncherThatDoesNotSayWhereTheFirstIs) {
  app::Application application = two_hosts();
  auto host = take_slot(application, {"mpi", 0, 2, "", 20001}, "");
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().text(), HasSubstr("set MASTER_ADDR, or address in [hosts.head]"));
  host = take_slot(application, {"mpi", 0, 2, "n07", 0}, "");
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().text(), HasSubstr("set MASTER_PORT, or address in [hosts.head]"));
}

TEST(SlotsText, LN4_PlanSaysWhatTheAllocationLacks) {
  app::Application application = two_hosts();
  const auto text = [&](LauncherChoice choice, const Variables& variables) {
    application.run.launcher = choice;
    return slots_text(application, Environment(variables));
  };
  EXPECT_EQ(text(LauncherChoice::automatic, {}), "launcher here: none yet; the file needs 2 processes\n");
  EXPECT_EQ(text(LauncherChoice::slurm, {}),
            "launcher here: slurm, not started yet; the file needs 2 processes: srun --ntasks=2\n");
  EXPECT_EQ(text(LauncherChoice::slurm, {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "1"}}),
            "launcher here: slurm, 1 process, too few: the file needs 2 processes: srun --ntasks=2\n");
  EXPECT_EQ(text(LauncherChoice::slurm, {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "2"}}),
            "launcher here: slurm, 2 processes, as many as the file needs\n");
  EXPECT_EQ(text(LauncherChoice::automatic, kOpenMpi),
            "launcher here: mpi, 3 processes, more than needed: the file needs 2 processes: mpirun -n 2\n");
}

TEST(Orphan, LN6_IsAProcessWhoseLauncherHasEndedBefore) {
  const Slot task{.launcher = "slurm", .is_child = true};
  EXPECT_FALSE(is_orphan(task, 4711, "slurmstepd"));
  EXPECT_FALSE(is_orphan(task, 4711, "sh"));
  EXPECT_TRUE(is_orphan(task, 1, "init"));
  EXPECT_FALSE(is_orphan(task, 1, "tini")) << "the init of a container may have started it";
  EXPECT_FALSE(is_orphan(task, 1, "mpirun")) << "the launcher is the first process of a container";
  EXPECT_TRUE(is_orphan(task, 1200, "systemd")) << "a user's own one";
  EXPECT_FALSE(is_orphan({.launcher = "variables"}, 1, "init")) << "plain variables say nothing of the parent";
}

TEST(Environment, ReadsNamesAndValues) {
  const std::array<const char*, 5> variables{"A=1", "B=x=y", "C=", "no equals sign", nullptr};
  const Environment environment = Environment::of(variables.data());
  EXPECT_EQ(environment.find("A"), "1");
  EXPECT_EQ(environment.find("B"), "x=y");
  EXPECT_FALSE(environment.has("C")) << "an empty variable counts as missing";
  EXPECT_FALSE(environment.has("D"));
}

}  // namespace
}  // namespace caftan::launchers::slot_test

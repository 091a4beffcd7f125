// How many threads of a process may spin, and why none may.
#include "caftan/transport/internal/spin_budget.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "folder.hpp"

namespace caftan::transport::spin_budget_test {
namespace {

using namespace std::chrono_literals;

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST(SpinBudget, SP5_AsManyAsTheWorkersHaveCoresEach) {
  const Cores cores{.machine = 64, .mask = 8, .granted = {}};
  EXPECT_EQ(spin_budget(cores, 1).options, (SpinOptions{.threads = 8, .cores = 64}));
  EXPECT_EQ(spin_budget(cores, 3).options.threads, 2U);
  EXPECT_EQ(spin_budget(cores, 8).options.threads, 1U);
  EXPECT_EQ(spin_budget(cores, 8).why_not, "");
  EXPECT_EQ(spin_budget(cores, 9).options, SpinOptions());
  EXPECT_EQ(spin_budget(cores, 9).why_not, "9 workers share 8 cores");
  EXPECT_EQ(spin_budget({.machine = 2, .mask = 2, .granted = {}}, 2).options.threads, 1U);
}

TEST(SpinBudget, SP5_NoneWithOneCore) {
  EXPECT_EQ(spin_budget({.machine = 8, .mask = 1, .granted = {}}, 1).why_not, "1 core");
  EXPECT_EQ(spin_budget({.machine = 8, .mask = 1, .granted = {}}, 1).options, SpinOptions());
}

TEST(SpinBudget, SP5_NoneWhereTheControlGroupGrantsFewerCores) {
  EXPECT_EQ(spin_budget({.machine = 8, .mask = 4, .granted = 1.5}, 1).why_not,
            "the control group grants 1.5 of 4 cores");
  EXPECT_EQ(spin_budget({.machine = 8, .mask = 4, .granted = 1.5}, 1).options, SpinOptions());
  EXPECT_EQ(spin_budget({.machine = 8, .mask = 4, .granted = 4.0}, 1).why_not, "");
}

TEST(SpinBudget, SP4_ADurationIsTheLimitAlways) {
  const SpinOptions options = spin_budget({.machine = 2, .mask = 2, .granted = {}}, 1, 20us).options;
  EXPECT_EQ(options.longest, 20us);
  EXPECT_FALSE(options.learns);
}

TEST(SpinBudget, SP5_TheLimitOfTheControlGroupIsReadInBothVersions) {
  const test::Folder folder;
  EXPECT_EQ(read_cores(folder / "none").granted, std::nullopt);
  write(folder / "two/cpu.max", "150000 100000\n");
  EXPECT_EQ(read_cores(folder / "two").granted, 1.5);
  write(folder / "two/cpu.max", "max 100000\n");
  EXPECT_EQ(read_cores(folder / "two").granted, std::nullopt);
  write(folder / "one/cpu/cpu.cfs_quota_us", "50000\n");
  write(folder / "one/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cores(folder / "one").granted, 0.5);
  write(folder / "one/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(read_cores(folder / "one").granted, std::nullopt);
}

TEST(SpinBudget, TheMachineHasTheCoresOfTheMask) {
  const Cores cores = read_cores();
  EXPECT_GE(cores.mask, 1U);
  EXPECT_LE(cores.mask, cores.machine);
}

}  // namespace
}  // namespace caftan::transport::spin_budget_test

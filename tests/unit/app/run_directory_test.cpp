#include "caftan/app/internal/run_directory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "as_nobody.hpp"
#include "caftan/app/internal/summary.hpp"

namespace caftan::app::run_directory_test {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::year_month_day kDate = 2026y / 11 / 21;

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class RunDirectories : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "caftan_runs_" + std::to_string(::getpid());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::filesystem::path root_;
};

TEST_F(RunDirectories, AreNumberedAndNeverOverwritten) {
  const RunDirectory first = RunDirectory::create(root_ / "a/runs", "cartpole", kDate, "caftan = 1\n").value();
  const RunDirectory second = RunDirectory::create(root_ / "a/runs", "cartpole", kDate, "caftan = 1 # 2\n").value();
  EXPECT_EQ(first.path(), root_ / "a/runs/cartpole-20261121-1");
  EXPECT_EQ(second.path(), root_ / "a/runs/cartpole-20261121-2");
  EXPECT_EQ(read(first.resolved_file()), "caftan = 1\n");
  EXPECT_TRUE(std::filesystem::is_directory(first.path() / "log"));
  EXPECT_EQ(first.log_file("observer-0"), first.path() / "log/observer-0.log");
}

TEST_F(RunDirectories, U2_WhetherARunCanBeMadeIsSeenWithoutMakingAnything) {
  EXPECT_TRUE(RunDirectory::check(root_ / "a/runs"));
  EXPECT_TRUE(RunDirectory::check("no-folder-of-this-name/runs"));
  EXPECT_FALSE(std::filesystem::exists(root_));
  std::filesystem::create_directories(root_ / "runs");
  std::ofstream(root_ / "file") << "";
  EXPECT_TRUE(RunDirectory::check(root_ / "runs/"));
  EXPECT_EQ(RunDirectory::check(root_ / "file/runs").error().text(),
            (root_ / "file/runs").string() + ": Not a directory");
  std::filesystem::create_symlink("gone", root_ / "link");
  EXPECT_EQ(
      RunDirectory::check(root_ / "link/runs").error().text(),
      (root_ / "link").string() + ": it is a link to gone, which does not exist; make that folder or remove the link");
  std::ofstream(root_ / "runs" / "latest") << "";
  EXPECT_NE(RunDirectory::check(root_ / "runs").error().text().find("has to be a link to the last run"),
            std::string::npos);
}

TEST_F(RunDirectories, U2_AFolderThatMayNotBeWrittenIsNamed) {
  std::filesystem::create_directories(root_ / "closed");
  using std::filesystem::perms;
  std::filesystem::permissions(root_ / "closed", perms::owner_read | perms::owner_exec | perms::group_read |
                                                     perms::group_exec | perms::others_read | perms::others_exec);
  const test::AsNobody nobody;
  if (!nobody.works()) GTEST_SKIP() << "root may write to every folder, and may not become another user here";
  EXPECT_EQ(RunDirectory::check(root_ / "closed/a/runs").error().text(),
            (root_ / "closed").string() + ": Permission denied");
}

TEST_F(RunDirectories, AFileThatCannotBeReplacedLeavesNothingBeside) {
  std::filesystem::create_directories(root_ / "summary.json" / "a folder of this name");
  const auto written = write_whole_file(root_ / "summary.json", "{}");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), Errc::io_error);
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(root_)) ++entries;
  EXPECT_EQ(entries, 1);
}

TEST_F(RunDirectories, LatestPointsToTheNewest) {
  RunDirectory::create(root_, "a", kDate, "").value();
  RunDirectory::create(root_, "b", 2027y / 1 / 2, "").value();
  EXPECT_EQ(std::filesystem::read_symlink(root_ / "latest"), "b-20270102-1");
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(root_)) ++entries;
  EXPECT_EQ(entries, 3) << "nothing is left beside two runs and the link";
}

TEST_F(RunDirectories, WhatIsNoFolderIsAnError) {
  std::filesystem::create_directories(root_);
  std::ofstream(root_ / "file") << "x";
  EXPECT_EQ(RunDirectory::create(root_ / "file", "a", kDate, "").error().code(), Errc::io_error);
  EXPECT_EQ(RunDirectory::open(root_ / "none").error().code(), Errc::io_error);
  EXPECT_TRUE(RunDirectory::open(root_));
}

TEST_F(RunDirectories, ALinkNamedLatestIsReplacedAFolderOrFileIsNotAndNoRunIsLeft) {
  const auto refused = [&](const std::string& is) {
    const Error error = RunDirectory::create(root_, "a", kDate, "").error();
    EXPECT_EQ(error.code(), Errc::io_error);
    EXPECT_EQ(error.text(), (root_ / "latest").string() + ": it is " + is +
                                ", but has to be a link to the last run; remove it or give it another name");
    EXPECT_FALSE(std::filesystem::exists(root_ / "a-20261121-1"));
  };
  std::filesystem::create_directories(root_ / "latest/x");
  refused("a folder");
  std::filesystem::remove_all(root_ / "latest");
  std::ofstream(root_ / "latest") << "mine";
  refused("a file");
  EXPECT_EQ(read(root_ / "latest"), "mine");
  std::filesystem::remove(root_ / "latest");
  std::filesystem::create_symlink("gone", root_ / "latest");
  EXPECT_TRUE(RunDirectory::create(root_, "a", kDate, ""));
}

TEST_F(RunDirectories, ALinkThatLeadsNowhereIsNamedWithItsEnd) {
  std::filesystem::create_directories(root_);
  std::filesystem::create_symlink("gone", root_ / "link");
  const std::string text =
      (root_ / "link").string() + ": it is a link to gone, which does not exist; make that folder or remove the link";
  EXPECT_EQ(RunDirectory::create(root_ / "link", "a", kDate, "").error().text(), text);
  EXPECT_EQ(RunDirectory::create(root_ / "link/runs", "a", kDate, "").error().text(), text);
}

TEST_F(RunDirectories, TheSummaryIsReplacedAsAWhole) {
  const RunDirectory run = RunDirectory::create(root_, "a", kDate, "").value();
  RunSummary summary{
      .name = "a", .outcome = "failure", .exit_code = 1, .duration_s = 2.5, .seed = 543, .placement = "processes"};
  write_whole_file(run.summary_file(), summary_text(summary)).value();
  summary.outcome = "success";
  summary.exit_code = 0;
  summary.fingerprint = "sha256:00";
  summary.lost = {{.name = "observer", .after_s = 1.5, .error = "was killed"}};
  summary.metrics = {{"reward", 475.5}, {"loss", std::numeric_limits<double>::quiet_NaN()}};
  summary.frames_sent = {{"call", {2, 300}}, {"rref.fork", {1, 99}}};
  summary.environment = {{"caftan", "0.1.0"}};
  summary.workers = {{.name = "agent", .pid = 7, .error = "\xff bad"}};
  write_whole_file(run.summary_file(), summary_text(summary)).value();
  EXPECT_EQ(read(run.summary_file()), R"({
  "name": "a",
  "outcome": "success",
  "exit_code": 0,
  "duration_s": 2.5,
  "seed": 543,
  "placement": "processes",
  "deterministic": false,
  "fingerprint": "sha256:00",
  "error": "",
  "error_code": "",
  "lost": [
    {
      "name": "observer",
      "after_s": 1.5,
      "error": "was killed"
    }
  ],
  "metrics": {
    "loss": null,
    "reward": 475.5
  },
  "frames_sent": {
    "call": {
      "frames": 2,
      "bytes": 300
    },
    "rref.fork": {
      "frames": 1,
      "bytes": 99
    }
  },
  "environment": {
    "caftan": "0.1.0"
  },
  "workers": [
    {
      "name": "agent",
      "host": "",
      "pid": 7,
      "error": ")"
                                      "\xEF\xBF\xBD"
                                      R"( bad"
    }
  ]
}
)");
}

}  // namespace
}  // namespace caftan::app::run_directory_test

// What users read when a run has failed: the process, and only logs that are there.
#include "launch/run_end.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "folder.hpp"

namespace caftan::actors::run_end_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunEnd : public ::testing::Test {
 protected:
  RunEnd() {
    application_.run.name = "run";
    application_.output.dir = folder_ / "runs";
    application_.output.progress = app::Progress::plain;
    plan_.processes = 2;
    plan_.workers.resize(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      plan_.workers[i].id = WorkerId{i};
      plan_.workers[i].name = i == 0 ? "agent" : "observer";
      plan_.workers[i].process = static_cast<int>(i);
      plan_.workers[i].host = i == 0 ? "one" : "two";
    }
  }
  /// Ends a run of the agent's host. Returns the output on standard error.
  std::string reported(std::size_t blame, const std::string& error, const std::string& log_of_agent) {
    auto record = RunRecord::create(application_, "", plan_.workers.size());
    EXPECT_TRUE(record);
    std::ofstream(record->directory().log_file("agent")) << log_of_agent;
    RunView view(application_.output.progress);
    ::testing::internal::CaptureStderr();
    const int code = report_end(
        {.launch = {.catalog = catalog_, .types = types_, .application = application_, .plan = plan_, .workers = here_},
         .record = *record,
         .view = view,
         .verdict = {.outcome = run::Verdict::Outcome::failure,
                     .exit_code = 1,
                     .error = error,
                     .blame = blame,
                     .death = death_},
         .pids = {1234, 5678},
         .errors = errors_,
         .losses = losses_});
    EXPECT_EQ(code, 1);
    std::ifstream stream(record->directory().summary_file(), std::ios::binary);
    summary_.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    return ::testing::internal::GetCapturedStderr();
  }
  const test::Folder folder_;
  app::Application application_;
  app::Plan plan_;
  RoleCatalog catalog_;
  app::RoleTypes types_;
  std::vector<WorkerId> here_{WorkerId{0}};
  std::vector<Error> errors_ = std::vector<Error>(2);
  std::vector<run::Loss> losses_;
  std::string death_;
  std::string summary_;  // summary of the run that was ended last
};

TEST_F(RunEnd, NamesTheProcessAndItsLog) {
  const std::string text = reported(0, "agent was killed by signal 9", "out of memory\n");
  EXPECT_THAT(text, HasSubstr("error: agent (pid 1234) was killed by signal 9. Its log ends: out of memory\n"));
  EXPECT_THAT(text, HasSubstr(", start with log/agent.log\n"));
}

TEST_F(RunEnd, ALogWithNothingInItIsNoStart) {
  const std::string text = reported(0, "start: agent has not come within 10s", "");
  EXPECT_THAT(text, HasSubstr("everything written so far is in "));
  EXPECT_THAT(text, Not(HasSubstr("start with")));
}

TEST_F(RunEnd, TheLogOfAWorkerElsewhereIsThere) {
  const std::string text = reported(1, "observer: peer_down: lost observer", "nothing of interest\n");
  EXPECT_THAT(text, HasSubstr("error: observer: peer_down: lost observer\n"));
  EXPECT_THAT(text, HasSubstr("; the log of observer is with its own launcher, on host two\n"));
  EXPECT_THAT(text, Not(HasSubstr("start with")));
}

TEST_F(RunEnd, U11_RN13_TheSummaryBlamesTheWorkerThatWasKilledAndNotTheOneThatLostIt) {
  here_ = {WorkerId{0}, WorkerId{1}};
  errors_[0] = Error(Errc::peer_down, "observer", "lost observer");
  death_ = "was killed by signal 9 (SIGKILL) after 1.0 s";
  reported(1, "observer " + death_ + "; agent: peer_down: observer: lost observer", "");
  EXPECT_THAT(summary_, HasSubstr("\"pid\": 1234,\n      \"error\": \"\"\n"));
  EXPECT_THAT(summary_, HasSubstr("\"pid\": 5678,\n      \"error\": \"" + death_ + "\"\n"));
}

TEST_F(RunEnd, RN13_TheSummaryHasTheErrorThatARoleReportedItself) {
  errors_[0] = Error(Errc::goal_missed, "agent", "not good enough");
  reported(0, "agent: goal_missed: not good enough", "");
  EXPECT_THAT(summary_, HasSubstr("\"pid\": 1234,\n      \"error\": \"" + errors_[0].message() + "\"\n"));
  errors_[0] = Error(Errc::peer_down, "observer", "lost observer");
  reported(0, "agent: peer_down: lost observer", "");
  EXPECT_THAT(summary_, HasSubstr(errors_[0].message())) << "nothing else is known";
}

TEST_F(RunEnd, RN17_TheLostWorkersAreNamedInTheSummaryAndAtTheEndWithTheTime) {
  here_ = {WorkerId{0}, WorkerId{1}};
  losses_ = {{.worker = 1, .after = std::chrono::milliseconds(1500), .why = "was killed by signal 9 (SIGKILL)"}};
  errors_[1] = Error(Errc::peer_down, "agent", "an echo");
  const std::string text = reported(0, "agent: goal_missed: not good enough", "");
  EXPECT_THAT(text, HasSubstr("lost: observer was killed by signal 9 (SIGKILL), after 1.5 s\n"));
  EXPECT_THAT(summary_, HasSubstr("\"lost\": [\n    {\n      \"name\": \"observer\",\n      \"after_s\": 1.5,\n      "
                                  "\"error\": \"was killed by signal 9 (SIGKILL)\"\n    }\n  ],"));
  EXPECT_THAT(summary_, HasSubstr("\"pid\": 5678,\n      \"error\": \"was killed by signal 9 (SIGKILL)\"\n"));
  losses_.resize(10, losses_.front());
  EXPECT_THAT(reported(0, "agent: goal_missed: not good enough", ""),
              HasSubstr("lost: 2 more; all are in summary.json\n"));
}

TEST_F(RunEnd, U22_ARunWithStepsLeavesItsCurveInOrderAndNamesThePicture) {
  auto record = RunRecord::create(application_, "", plan_.workers.size());
  ASSERT_TRUE(record);
  record->metric("observer", {.name = "reward", .value = 3, .step = 1});
  record->metric("agent", {.name = "loss", .value = 0.5, .step = 2});
  record->metric("agent", {.name = "loss", .value = 1, .step = 1});
  record->metric("agent", {.name = "calls", .value = 7});
  record->write_rows(std::chrono::seconds(1)).value();
  const std::filesystem::path run = record->directory().path();
  const auto read = [&](const char* name) {
    std::ifstream stream(run / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_EQ(read("curve.csv"), "step,name,value\r\n1,observer.reward,3\r\n2,agent.loss,0.5\r\n1,agent.loss,1\r\n")
      << "a killed run has what came so far";
  RunView view(application_.output.progress);
  ::testing::internal::CaptureStderr();
  report_end(
      {.launch = {.catalog = catalog_, .types = types_, .application = application_, .plan = plan_, .workers = here_},
       .record = *record,
       .view = view,
       .verdict = {.outcome = run::Verdict::Outcome::failure, .exit_code = 1, .error = "agent: failed"},
       .pids = {1234, 5678},
       .errors = errors_});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("curve: " + (run / "curve.svg").string() + "\n"));
  EXPECT_EQ(read("curve.csv"), "step,name,value\r\n1,agent.loss,1\r\n1,observer.reward,3\r\n2,agent.loss,0.5\r\n");
  EXPECT_THAT(read("curve.svg"), ::testing::StartsWith("<svg "));
  EXPECT_THAT(read("metrics.csv"), HasSubstr("1,agent,loss,2,1,0.75,0.5,1\r\n"))
      << "all values, also those with a step";
}

TEST_F(RunEnd, NamesWhatRolesHaveWritten) {
  auto record = RunRecord::create(application_, "", plan_.workers.size());
  ASSERT_TRUE(record);
  const std::filesystem::path run = record->directory().path();
  std::filesystem::create_directory(run / "checkpoints");
  std::ofstream(run / "scalars.csv") << "name,value\n";
  for (const bool succeeds : {true, false}) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    {
      RunView view(application_.output.progress);
      report_end(
          {.launch =
               {.catalog = catalog_, .types = types_, .application = application_, .plan = plan_, .workers = here_},
           .record = *record,
           .view = view,
           .verdict = {.outcome = succeeds ? run::Verdict::Outcome::success : run::Verdict::Outcome::failure,
                       .exit_code = succeeds ? 0 : 1},
           .pids = {1234, 5678},
           .errors = errors_});
    }
    const std::string errors = testing::internal::GetCapturedStderr();
    const std::string out = testing::internal::GetCapturedStdout();
    if (succeeds) {
      EXPECT_THAT(out, HasSubstr("metrics.jsonl checkpoints/ scalars.csv summary.json log/\n"));
    } else {
      EXPECT_THAT(errors, HasSubstr(", checkpoints to resume from in " + (run / "checkpoints").string()));
    }
  }
}

TEST_F(RunEnd, TheLastLineNamesThePictureIfThereIsOne) {
  for (const bool has_steps : {true, false}) {
    auto record = RunRecord::create(application_, "", plan_.workers.size());
    ASSERT_TRUE(record);
    if (has_steps) record->metric("agent", {.name = "loss", .value = 1, .step = 1});
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    {
      RunView view(application_.output.progress);
      report_end(
          {.launch =
               {.catalog = catalog_, .types = types_, .application = application_, .plan = plan_, .workers = here_},
           .record = *record,
           .view = view,
           .pids = {1234, 5678},
           .errors = errors_});
    }
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              record->directory().path().string() + ": resolved.toml metrics.csv metrics.jsonl " +
                  (has_steps ? "curve.csv curve.svg " : "") + "summary.json log/\n");
  }
}

}  // namespace
}  // namespace caftan::actors::run_end_test

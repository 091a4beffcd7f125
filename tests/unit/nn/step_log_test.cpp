// Step logs and the options of consistency modes.
#include "caftan/nn/step_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/internal/settings_document.hpp"
#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/nn/consistency.hpp"
#include "file_limit.hpp"
#include "folder.hpp"

namespace caftan::nn::step_log_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Contribution of(std::uint32_t trainer, std::uint64_t read, std::uint64_t batch = 9) {
  return {{trainer}, {WorkerId{trainer + 1}, Incarnation{0xab12}, 40 + read}, batch, {read}};
}

/// A log whose later steps have rates.
StepLog log_with_rates() {
  return {.mode = ConsistencyMode::versioned,
          .first = {0},
          .steps = {{{1}, {of(0, 0)}},
                    {{2}, {of(1, 0)}, StepRates{.lr = 0.1}},
                    {{3}, {of(0, 1)}, StepRates{.lr = 0.1 + 0.2, .momentum = 0.95}}}};
}

StepLog sync_log() {
  return {.mode = ConsistencyMode::sync,
          .first = {4},
          .steps = {{{5}, {of(0, 4), of(2, 4, 18'000'000'000'000'000'000U)}}, {{6}, {of(1, 5)}}}};
}

Error error_of(const std::string& text) {
  const Result<StepLog> log = parse_step_log(text, "steps.log");
  return log ? Error() : log.error();
}

TEST(StepLog, CM16_ReadsBackWhatWasWritten) {
  const StepLog log = sync_log();
  const std::string text = format_step_log(log);
  EXPECT_THAT(text, HasSubstr("caftan-step-log 1 sync 4 #"));
  EXPECT_THAT(text, HasSubstr("\n5 0:9@4=1.44.ab12 2:18000000000000000000@4=3.44.ab12 #"));
  EXPECT_EQ(parse_step_log(text, "").value(), log);
  EXPECT_EQ(log.last(), ModelVersion{6});
}

TEST(StepLog, CM16_WritesEachLineAtOnceAndNoOtherStepThanTheNext) {
  const test::Folder folder;
  const std::string path = folder / "steps.log";
  const StepLog log = sync_log();
  StepLogWriter writer = StepLogWriter::create(path, log.mode, log.first).value();
  EXPECT_EQ(StepLogWriter::create(path, log.mode).error().code(), Errc::io_error) << "it exists";
  EXPECT_EQ(writer.append(log.steps[1]).error().code(), Errc::bad_arguments);
  for (const StepRecord& step : log.steps) ASSERT_TRUE(writer.append(step));
  EXPECT_EQ(read_step_log(path).value(), log) << "while the writer is open";
  EXPECT_EQ(read_step_log(folder / "none.log").error().code(), Errc::io_error);
  EXPECT_EQ(StepLogWriter::create(folder / "no/folder", log.mode).error().code(), Errc::io_error);
}

TEST(StepLog, CM25_HasTheRatesOfStepsFromVersionTwoOn) {
  const StepLog log = log_with_rates();
  const std::string text = format_step_log(log);
  EXPECT_THAT(text, HasSubstr("caftan-step-log 2 versioned 0 #"));
  EXPECT_THAT(text, HasSubstr("\n2 1:9@0=2.40.ab12 lr=0.1 #"));
  EXPECT_THAT(text, HasSubstr("\n3 0:9@1=1.41.ab12 lr=0.30000000000000004 momentum=0.95 #")) << "each bit of a rate";
  EXPECT_EQ(parse_step_log(text, "").value(), log);
  const std::string header = format_step_log({.mode = ConsistencyMode::versioned, .first = {0}, .steps = {}});
  const std::string line = text.substr(text.find("\n1 ") + 1);
  EXPECT_THAT(error_of(header + line).text(), HasSubstr("steps.log:3: this is no step")) << "version 1 has no rates";
}

TEST(StepLog, CM25_TheWriterRaisesTheVersionWithTheFirstRates) {
  const test::Folder folder;
  const std::string path = folder / "steps.log";
  const StepLog log = log_with_rates();
  StepLogWriter writer = StepLogWriter::create(path, log.mode, log.first).value();
  ASSERT_TRUE(writer.append(log.steps[0]));
  EXPECT_THAT(folder.read("steps.log"), HasSubstr("caftan-step-log 1 "));
  for (std::size_t step = 1; step < log.steps.size(); ++step) ASSERT_TRUE(writer.append(log.steps[step]));
  EXPECT_EQ(folder.read("steps.log"), format_step_log(log));
  for (const StepRates& wrong : {StepRates{.lr = -0.1}, StepRates{.lr = std::nan("")},
                                 StepRates{.lr = 0.1, .momentum = std::numeric_limits<double>::infinity()}}) {
    EXPECT_EQ(writer.append({{4}, {of(0, 3)}, wrong}).error().code(), Errc::bad_arguments);
  }
  EXPECT_EQ(read_step_log(path).value(), log);
}

TEST(StepLog, CM24_ALogWhoseVersionCouldNotBeRaisedSaysSoWithEachLaterStep) {
  const test::Folder folder;
  const StepLog log = log_with_rates();
  StepLogWriter writer = StepLogWriter::create(folder / "steps.log", log.mode, log.first).value();
  ASSERT_TRUE(writer.append(log.steps[0]));
  {
    const test::FileLimit full(0);
    EXPECT_EQ(writer.append(log.steps[1]).error().code(), Errc::io_error);
  }
  const Error later = writer.append(log.steps[1]).error();
  EXPECT_EQ(later.code(), Errc::io_error);
  EXPECT_THAT(later.text(), AllOf(HasSubstr("File too large at step 2"), HasSubstr("any more")));
}

TEST(StepLog, CM24_ALogOfAStepThatWasNotMadeSaysSoWithEachLaterStep) {
  const test::Folder folder;
  const StepLog log = sync_log();
  StepLogWriter writer = StepLogWriter::create(folder / "steps.log", log.mode, log.first).value();
  ASSERT_TRUE(writer.append(log.steps[0]));
  writer.give_up(Error(Errc::remote_exception, "no memory"));
  for (const StepRecord& step : log.steps) {
    const Error refused = writer.append(step).error();
    EXPECT_EQ(refused.code(), Errc::remote_exception);
    EXPECT_THAT(refused.text(), AllOf(HasSubstr("steps.log: step 5 failed after its line was written (no memory)"),
                                      HasSubstr("with another log")));
  }
  EXPECT_EQ(read_step_log(folder / "steps.log").value().steps.size(), 1U);
}

class StepLogTexts : public ::testing::TestWithParam<bool> {
 protected:
  const std::string text_ = format_step_log(GetParam() ? log_with_rates() : sync_log());
};
INSTANTIATE_TEST_SUITE_P(WithRates, StepLogTexts, ::testing::Bool());

TEST_P(StepLogTexts, CM16_EveryCutIsFoundUnlessItIsBetweenTwoLines) {
  const std::string& text = text_;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const Error error = error_of(text.substr(0, size));
    if (size > 0 && text[size - 1] == '\n') {
      EXPECT_EQ(error.code(), Errc::ok) << size;
      continue;
    }
    EXPECT_EQ(error.code(), Errc::malformed_payload) << size;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    EXPECT_THAT(error.text(), HasSubstr("steps.log:" + std::to_string(line) + ":"));
  }
}

TEST_P(StepLogTexts, CM16_EveryChangedByteIsFound) {
  const std::string& text = text_;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const Error error = error_of(damaged);
    EXPECT_TRUE(error.code() == Errc::malformed_payload || error.code() == Errc::protocol_mismatch) << at;
    EXPECT_THAT(error.text(), HasSubstr("steps.log:"));
  }
}

TEST(StepLog, CM16_ANewerVersionIsRefusedBeforeAnythingElse) {
  EXPECT_EQ(error_of("caftan-step-log 3 other things\n").code(), Errc::protocol_mismatch);
  EXPECT_EQ(error_of("caftan-step-log 0 sync 4\n").code(), Errc::malformed_payload);
  EXPECT_EQ(error_of("").code(), Errc::malformed_payload);
}

TEST(StepLog, CM16_RefusesStepsThatItsModeDoesNotMake) {
  const auto why = [](ConsistencyMode mode, std::vector<StepRecord> steps) {
    return error_of(format_step_log({.mode = mode, .first = {4}, .steps = std::move(steps)})).text();
  };
  const ConsistencyMode locked = ConsistencyMode::locked, versioned = ConsistencyMode::versioned,
                        sync = ConsistencyMode::sync;
  EXPECT_THAT(why(locked, {{{5}, {of(0, 4)}}, {{7}, {of(0, 5)}}}), HasSubstr(":3: step 7 after version 5"));
  EXPECT_THAT(why(sync, {{{5}, {}}}), HasSubstr("step 5 has no contribution"));
  EXPECT_THAT(why(versioned, {{{5}, {of(0, 4), of(1, 4)}}}), HasSubstr("2 contributions"));
  EXPECT_THAT(why(sync, {{{5}, {of(1, 4), of(0, 4)}}}), HasSubstr("out of order"));
  EXPECT_THAT(why(sync, {{{5}, {of(1, 4), of(1, 4)}}}), HasSubstr("out of order"));
  EXPECT_THAT(why(versioned, {{{5}, {of(0, 5)}}}), HasSubstr("reads version 5"));
  EXPECT_THAT(why(versioned, {{{5}, {of(0, 3)}}}), HasSubstr("reads version 3")) << "before the log begins";
  EXPECT_THAT(why(locked, {{{5}, {of(0, 4)}}, {{6}, {of(0, 4)}}}), HasSubstr("it reads version 5"));
  EXPECT_EQ(why(versioned, {{{5}, {of(0, 4)}}, {{6}, {of(0, 4)}}}), "");
}

TEST(StepLog, CM10_TheHistogramCountsHowFarGradientsWereBehind) {
  const StepLog log{.mode = ConsistencyMode::versioned,
                    .first = {0},
                    .steps = {{{1}, {of(0, 0)}}, {{2}, {of(1, 0)}}, {{3}, {of(2, 0)}}, {{4}, {of(0, 3)}}}};
  EXPECT_THAT(staleness_histogram(log), ElementsAre(2U, 1U, 1U));
  EXPECT_THAT(staleness_histogram({}), ElementsAre());
}

// ---- options

TEST(Consistency, NamesTheNearestMode) {
  EXPECT_EQ(parse_consistency_mode("sync").value(), ConsistencyMode::sync);
  EXPECT_EQ(to_string(parse_consistency_mode("versioned").value()), "versioned");
  const Result<ConsistencyMode> wrong = parse_consistency_mode("lokced");
  EXPECT_EQ(wrong.error().code(), Errc::invalid_config);
  EXPECT_THAT(wrong.error().text(), HasSubstr("did you mean 'locked'?"));
  EXPECT_THAT(parse_consistency_mode("eventual").error().text(), HasSubstr("locked, versioned, sync"));
}

TEST(Consistency, IsATableOfAnApplicationFile) {
  const auto read = [](const char* text, ConsistencyOptions& options) {
    Diagnostics diagnostics("f");
    std::vector<SettingField> fields = bind_settings(options);
    read_settings(parse_settings(text, diagnostics), fields, {}, diagnostics);
    return diagnostics.render(false);
  };
  ConsistencyOptions options;
  EXPECT_EQ(read("mode = 'sync'\nquorum = 3\nstraggler_timeout = '250ms'\n", options), "");
  EXPECT_EQ(options,
            (ConsistencyOptions{
                .mode = ConsistencyMode::sync, .quorum = 3, .straggler_timeout = std::chrono::milliseconds(250)}));
  EXPECT_THAT(read("mode = 'verioned'\n", options), HasSubstr("versioned"));
}

TEST(Consistency, RefusesKeysOfOtherModesAndNamesThem) {
  const auto why = [](const ConsistencyOptions& options) {
    const Result<void> checked = check_consistency(options, 4);
    return checked ? std::string() : checked.error().text();
  };
  const auto second = std::chrono::seconds(1);
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.mode = ConsistencyMode::sync, .quorum = 4, .straggler_timeout = second}), "");
  EXPECT_THAT(why({.lease = LeaseOrder::oldest_waits}), HasSubstr("lease is a key of mode 'locked'"));
  EXPECT_THAT(why({.mode = ConsistencyMode::sync, .max_staleness = 1}), HasSubstr("max_staleness is a key of mode"));
  EXPECT_THAT(why({.quorum = 1, .straggler_timeout = second}), HasSubstr("quorum is a key of mode 'sync'"));
  EXPECT_THAT(why({.straggler_timeout = second}), HasSubstr("straggler_timeout is a key of mode 'sync'"));
  EXPECT_THAT(why({.mode = ConsistencyMode::sync, .quorum = 2}), HasSubstr("quorum without straggler_timeout"));
  EXPECT_THAT(why({.mode = ConsistencyMode::sync, .straggler_timeout = second}), HasSubstr("without quorum"));
  EXPECT_THAT(why({.mode = ConsistencyMode::sync, .quorum = 5, .straggler_timeout = second}),
              HasSubstr("it is 1 to 4"));
  EXPECT_EQ(check_consistency({}, 0).error().code(), Errc::invalid_config);
}

TEST(Consistency, RefusesNumbersThatAPeerCouldBreakTheOwnerWith) {
  const ConsistencyOptions any;
  EXPECT_TRUE(check_consistency(any, 65536));
  EXPECT_THAT(check_consistency(any, 65537).error().text(), HasSubstr("trainers is 65537, it is 1 to 65536"));
  EXPECT_THAT(check_consistency(any, static_cast<std::uint32_t>(-1)).error().text(), HasSubstr("trainers is"));
  ConsistencyOptions sync{.mode = ConsistencyMode::sync, .quorum = 1, .straggler_timeout = std::chrono::hours(24)};
  EXPECT_TRUE(check_consistency(sync, 2));
  for (const std::chrono::nanoseconds wrong : {std::chrono::nanoseconds(-1), std::chrono::nanoseconds::max()}) {
    sync.straggler_timeout = wrong;
    EXPECT_THAT(check_consistency(sync, 2).error().text(), HasSubstr("ns, it is 0 to 24 hours"));
  }
}

}  // namespace
}  // namespace caftan::nn::step_log_test

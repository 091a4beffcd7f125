#include "caftan/results/internal/plot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "folder.hpp"

namespace caftan::results::plot_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

class Runs : public ::testing::Test {
 protected:
  /// Makes the folder of a run. Returns its path.
  std::string make_run(const std::string& name, int seed, const std::string& rows,
                       const std::string& config = "lr = 0.1", const std::string& start = "") const {
    std::filesystem::create_directory(folder_.path() / name);
    folder_.write(name + "/resolved.toml",
                  "# Resolved from \"" + name +
                      ".toml\"\ncaftan = 1\n\n[run]\nname = \"learn\"\nseed = " + std::to_string(seed) + "\n" + start +
                      "\n[roles.agent.config]\n" + config + "\n\n[output]\ndir = \"" + name + "\"\n");
    folder_.write(name + "/curve.csv", "step,name,value\r\n" + rows);
    return folder_ / name;
  }
  static std::string draw(const std::vector<std::string>& folders, const PlotOptions& options = {}) {
    std::vector<RunCurves> runs;
    for (const std::string& folder : folders) runs.push_back(read_run(folder, options.axis, options.metric).value());
    const auto picture = plot(runs, options);
    return picture ? *picture : "error: " + picture.error().text();
  }
  const test::Folder folder_;
};

TEST_F(Runs, AreReadWithNameSeedAndCurves) {
  const std::string run = make_run("a", 7, "1,agent.loss,3\r\n1,observer-0.reward.mean,5\r\n2,agent.loss,2\r\n");
  const RunCurves read = read_run(run, Axis::step).value();
  EXPECT_EQ(read.folder, "a");
  EXPECT_EQ(read.name, "learn");
  EXPECT_EQ(read.seed, 7);
  ASSERT_EQ(read.curves.size(), 2U);
  EXPECT_EQ(read.curves[0].worker, "agent");
  EXPECT_EQ(read.curves[0].metric, "loss");
  EXPECT_THAT(read.curves[0].x, ElementsAre(1, 2));
  EXPECT_THAT(read.curves[0].y, ElementsAre(3, 2));
  EXPECT_EQ(read.curves[1].metric, "reward.mean") << "the worker ends at the first dot";
  EXPECT_THAT(read.metrics, ElementsAre("loss", "reward.mean"));
}

TEST_F(Runs, RowsThatCameInAnyOrderAreOrderedAndTheLastOfAStepCounts) {
  const std::string run = make_run("a", 7, "3,a.x,30\r\n1,a.x,10\r\n3,a.x,31\r\n2,a.x,20\r\n");
  const RunCurves read = read_run(run, Axis::step).value();
  EXPECT_THAT(read.curves.front().x, ElementsAre(1, 2, 3));
  EXPECT_THAT(read.curves.front().y, ElementsAre(10, 20, 31));
}

TEST_F(Runs, ALinkIsNamedAfterItsFolder) {
  make_run("a", 7, "1,a.x,1\r\n");
  std::filesystem::create_symlink("a", folder_.path() / "latest");
  EXPECT_EQ(read_run(folder_ / "latest", Axis::step).value().folder, "a");
}

TEST_F(Runs, OverTimeTheMeansOfMetricsCsvAreRead) {
  const std::string run = make_run("a", 7, "");
  folder_.write(
      "a/metrics.csv",
      "time_s,worker,metric,count,last,mean,min,max\r\n0.5,agent,loss,2,9,3,1,9\r\n1.5,agent,loss,1,2,2,2,2\r\n");
  const RunCurves read = read_run(run, Axis::time).value();
  EXPECT_THAT(read.curves.front().x, ElementsAre(0.5, 1.5));
  EXPECT_THAT(read.curves.front().y, ElementsAre(3, 2));
  EXPECT_THAT(draw({run}, {.axis = Axis::time}), HasSubstr(">time (s)</text>"));
  folder_.write("a/metrics.csv", "time_s,worker,metric,count,last,mean,min,max\r\nsoon,agent,loss,2,9,3,1,9\r\n");
  EXPECT_EQ(read_run(run, Axis::time).error().text(), run + "/metrics.csv:2: time_s is a number, here it is 'soon'");
}

TEST_F(Runs, EachMetricHasAChartAndOneMayBeChosen) {
  const std::string run = make_run("a", 7, "1,agent.loss,3\r\n1,agent.reward,5\r\n2,agent.loss,2\r\n");
  const std::string both = draw({run});
  EXPECT_THAT(both, AllOf(StartsWith("<svg "), HasSubstr(">loss</text>"), HasSubstr(">reward</text>")));
  for (const std::string metric : {"loss", "agent.loss"}) {
    const std::string one = draw({run}, {.metric = metric});
    EXPECT_THAT(one, AllOf(HasSubstr(">loss</text>"), Not(HasSubstr(">reward</text>")))) << metric;
  }
}

TEST_F(Runs, SideBySideAreInOneChart) {
  const std::string a = make_run("a", 7, "1,agent.loss,3\r\n2,agent.loss,2\r\n");
  const std::string b = make_run("b", 7, "1,agent.loss,4\r\n2,agent.loss,1\r\n", "lr = 0.2");
  const std::string svg = draw({a, b});
  EXPECT_EQ(count(svg, "<g "), 1U);
  EXPECT_EQ(count(svg, "stroke-linejoin"), 2U);
  EXPECT_THAT(svg,
              AllOf(HasSubstr(">lr=0.1 (a)</text>"), HasSubstr(">lr=0.2 (b)</text>"), Not(HasSubstr("fill-opacity"))));
}

TEST_F(Runs, OfDifferentSeedsAreOneBandWhereverTheyWereWritten) {
  const std::string a = make_run("a", 1, "1,agent.loss,3\r\n2,agent.loss,2\r\n");
  const std::string b = make_run("b", 2, "1,agent.loss,4\r\n2,agent.loss,1\r\n");
  const std::string other = make_run("c", 3, "1,agent.loss,5\r\n2,agent.loss,5\r\n", "lr = 0.2");
  const std::string svg = draw({a, b, other});
  EXPECT_EQ(count(svg, "stroke-linejoin"), 2U);
  EXPECT_EQ(count(svg, "fill-opacity"), 1U);
  EXPECT_THAT(svg, AllOf(HasSubstr(">lr=0.1 (2 seeds)</text>"), HasSubstr(">lr=0.2 (c)</text>")));
  EXPECT_THAT(draw({a, b}), HasSubstr(">learn, 2 seeds</text>")) << "there is nothing to distinguish it from";
}

TEST_F(Runs, OfOneSeedTwiceAreNoBand) {
  const std::string a = make_run("a", 1, "1,agent.loss,3\r\n2,agent.loss,2\r\n");
  const std::string b = make_run("b", 1, "1,agent.loss,3\r\n2,agent.loss,2\r\n");
  EXPECT_EQ(count(draw({a, b}), "fill-opacity"), 0U);
}

TEST_F(Runs, TheLegendNamesTheSettingsInWhichTheLinesDiffer) {
  const std::string rows = "1,agent.loss,3\r\n";
  const std::string a = make_run("a", 1, rows, "rule = \"sgd\"\n\n[roles.agent.config.optimizer]\nlr = 0.1");
  const std::string b = make_run("b", 2, rows, "rule = \"sgd\"\n\n[roles.agent.config.optimizer]\nlr = 0.1");
  const std::string other = make_run("c", 1, rows, "rule = \"adam\"\n\n[roles.agent.config.optimizer]\n# lr: none");
  EXPECT_THAT(draw({a, b, other}), AllOf(HasSubstr(">optimizer.lr=0.1 rule=sgd (2 seeds)</text>"),
                                         HasSubstr(">no optimizer.lr rule=adam (c)</text>")));
}

TEST_F(Runs, TheLegendNamesSettingsOfTheStartOnlyWhereTheOthersDoNotDistinguishTheLines) {
  const std::string rows = "1,agent.loss,3\r\n";
  const std::string a = make_run("a", 1, rows, "lr = 0.1", "placement = \"processes\"\n");
  const std::string b = make_run("b", 1, rows, "lr = 0.2", "placement = \"one_process\"\n");
  const std::string c = make_run("c", 1, rows, "lr = 0.1", "placement = \"one_process\"\n");
  EXPECT_THAT(draw({a, b}), AllOf(HasSubstr(">lr=0.1 (a)</text>"), HasSubstr(">lr=0.2 (b)</text>")));
  EXPECT_THAT(draw({a, c}), AllOf(HasSubstr(">run.placement=processes (a)</text>"),
                                  HasSubstr(">run.placement=one_process (c)</text>")));
  EXPECT_THAT(draw({a, b, c}), HasSubstr(">lr=0.1 run.placement=one_process (c)</text>"))
      << "the rate alone would not distinguish them";
}

TEST_F(Runs, AKeyThatTwoRolesHaveIsNamedWithItsRole) {
  const std::string rows = "1,agent.loss,3\r\n";
  const std::string a = make_run("a", 1, rows, "lr = 0.1\n\n[roles.critic.config]\nlr = 1.0");
  const std::string b = make_run("b", 1, rows, "lr = 0.2\n\n[roles.critic.config]\nlr = 2.0");
  EXPECT_THAT(draw({a, b}), HasSubstr(">roles.agent.config.lr=0.1 roles.critic.config.lr=1.0 (a)</text>"));
}

TEST_F(Runs, BandsThatDifferInMoreThanFourSettingsAreNamedAfterTheirFirstFolders) {
  std::vector<std::string> folders;
  for (int i = 0; i < 4; ++i) {
    std::string config;
    for (const char* const key : {"a", "b", "c", "d", "e"}) config += key + std::string(i < 2 ? " = 1\n" : " = 2\n");
    folders.push_back(make_run("r" + std::to_string(i), i, "1,agent.loss,3\r\n", config));
  }
  EXPECT_THAT(draw(folders),
              AllOf(HasSubstr(">learn, 2 seeds (r0 ...)</text>"), HasSubstr(">learn, 2 seeds (r2 ...)</text>")));
}

/// The folder of a sweep over two rates and two seeds: 001/ has two tries of its run, 004/ has none yet.
class RunsOfASweep : public Runs {
 protected:
  RunsOfASweep() {
    std::filesystem::create_directory(folder_.path() / "s");
    folder_.write("s/sweep.toml", "sweep = 1\n");
    for (const char* const run : {"001", "002", "003", "004"})
      std::filesystem::create_directory(folder_.path() / "s" / run);
    make_run("s/001/learn-1", 1, "1,agent.loss,9\r\n");
    make_run("s/001/learn-2", 1, rows_);
    make_run("s/002/learn-1", 2, rows_);
    make_run("s/003/learn-1", 1, rows_, "lr = 0.2");
    for (const auto& [run, newest] :
         {std::pair("001", "learn-2"), std::pair("002", "learn-1"), std::pair("003", "learn-1")}) {
      std::filesystem::create_symlink(newest, folder_.path() / "s" / run / "latest");
    }
  }
  static std::vector<std::string> found(const std::string& folder) {
    const std::vector<std::filesystem::path> runs = find_runs(folder, Axis::step).value();
    std::vector<std::string> paths;
    for (const std::filesystem::path& run : runs) paths.push_back(run.string());
    return paths;
  }
  const std::string rows_ = "1,agent.loss,3\r\n2,agent.loss,2\r\n";
};

TEST_F(RunsOfASweep, AreFoundWithTheirNewestTries) {
  const std::string s = folder_ / "s";
  EXPECT_THAT(found(s), ElementsAre(s + "/001/latest", s + "/002/latest", s + "/003/latest"));
  EXPECT_THAT(found(s + "/001"), ElementsAre(s + "/001/latest"));
  EXPECT_THAT(found(s + "/001/learn-1"), ElementsAre(s + "/001/learn-1"));
  EXPECT_EQ(find_runs(s, Axis::time).error().text(), s + ": no run of this sweep has a metrics.csv yet");
}

TEST_F(RunsOfASweep, AreNamedAfterTheirSettingsAlone) {
  const std::vector<std::string> runs = found(folder_ / "s");
  EXPECT_THAT(draw(runs), AllOf(HasSubstr(">lr=0.1 (2 seeds)</text>"), HasSubstr(">lr=0.2</text>")));
  EXPECT_THAT(draw({runs[1], runs[2], runs[2]}),
              AllOf(HasSubstr(">lr=0.1</text>"), HasSubstr(">lr=0.2 (003/learn-1)</text>")))
      << "the last two have one label, and all have folders of one name";
}

struct TwoPoints {
  std::array<double, 2> x{};
  std::array<double, 2> y{};
  bool is_faint = false;
};

/// Returns the lines of a picture, which have two points each.
std::vector<TwoPoints> lines_of(const std::string& svg) {
  std::vector<TwoPoints> lines;
  for (std::size_t at = svg.find("<path d=\"M"); at != std::string::npos; at = svg.find("<path d=\"M", at + 1)) {
    const std::string path = svg.substr(at, svg.find("/>", at) - at);
    if (path.find("stroke-linejoin") == std::string::npos) continue;
    TwoPoints line{.is_faint = path.find(" opacity=") != std::string::npos};
    char after = 0;
    EXPECT_EQ(std::sscanf(path.c_str(), "<path d=\"M%lf,%lfL%lf,%lf%c", &line.x[0], &line.y[0], &line.x[1], &line.y[1],
                          &after),
              5);
    EXPECT_EQ(after, '"') << path;
    lines.push_back(line);
  }
  return lines;
}

TEST_F(Runs, TheMeanEndsWithTheFirstRunThatEndsAndTheOthersGoOnFaintly) {
  // At step 2 the first run counts with the value between its two points; at step 3 only the first run has a value.
  const std::string a = make_run("a", 1, "1,w.x,0\r\n3,w.x,4\r\n");
  const std::string b = make_run("b", 2, "1,w.x,2\r\n2,w.x,10\r\n");
  const std::vector<TwoPoints> lines = lines_of(draw({a, b}));
  ASSERT_EQ(lines.size(), 2U);
  const TwoPoints& faint = lines[0];
  const TwoPoints& mean = lines[1];
  EXPECT_TRUE(faint.is_faint);
  EXPECT_FALSE(mean.is_faint);
  // The means are 1 and 6; the first run alone goes on with 2 and 4. The units of the axes are not known.
  const double unit = (mean.y[0] - mean.y[1]) / 5;
  EXPECT_NEAR(mean.y[0] - faint.y[0], unit, 0.05);
  EXPECT_NEAR(mean.y[0] - faint.y[1], 3 * unit, 0.05);
  EXPECT_NEAR(mean.x[1], faint.x[0], 0.02);
  EXPECT_NEAR(mean.x[1] - mean.x[0], faint.x[1] - faint.x[0], 0.02);
}

TEST_F(Runs, WhereOneRunHasNoFiniteValueThereIsNoMean) {
  const std::string a = make_run("a", 1, "1,w.x,0\r\n2,w.x,1\r\n3,w.x,nan\r\n4,w.x,1\r\n5,w.x,1\r\n");
  const std::string b = make_run("b", 2, "1,w.x,2\r\n2,w.x,3\r\n4,w.x,3\r\n5,w.x,3\r\n");
  const std::string svg = draw({a, b});
  EXPECT_EQ(count(svg, "fill-opacity=\"0.18\""), 2U) << "a band before the gap and one behind";
  EXPECT_EQ(count(svg, " opacity=\"0.25\""), 1U) << "the second run, through the gap of the first";
}

TEST_F(Runs, WorkersThatReportOneMetricAreNamed) {
  const std::string run = make_run("a", 1, "1,observer-0.reward,3\r\n1,observer-1.reward,2\r\n");
  EXPECT_THAT(draw({run}), AllOf(HasSubstr(">a observer-0</text>"), HasSubstr(">a observer-1</text>")));
}

TEST_F(Runs, AnUnknownMetricIsNamedWithThoseThereAre) {
  const std::string run = make_run("a", 1, "1,agent.loss,3\r\n1,agent.reward,3\r\n");
  EXPECT_EQ(draw({run}, {.metric = "los"}),
            "error: no run has a metric 'los'; did you mean 'loss'? There are: loss, reward");
  EXPECT_EQ(draw({run}, {.metric = "entropy"}), "error: no run has a metric 'entropy'. There are: loss, reward");
}

TEST_F(Runs, AFolderWithoutCurvesIsNamedWithTheWayOut) {
  const std::string run = make_run("a", 1, "");
  std::filesystem::remove(folder_.path() / "a/curve.csv");
  const Error without = read_run(run, Axis::step).error();
  EXPECT_EQ(without.code(), Errc::io_error);
  EXPECT_THAT(without.text(), AllOf(StartsWith(run + ": it has no curve.csv: no role"), HasSubstr("--x time")));
  EXPECT_EQ(read_run(run, Axis::time).error().text(), run + ": it has no metrics.csv");
  EXPECT_THAT(read_run(folder_ / "b", Axis::step).error().text(), HasSubstr("there is no such folder"));
  std::filesystem::create_directory(folder_.path() / "c");
  EXPECT_EQ(read_run(folder_ / "c", Axis::step).error().text(),
            folder_ / "c" +
                ": it has no curve.csv and no resolved.toml, so it is no folder of a run; give one, as "
                "runs/latest, or that of a sweep");
}

TEST_F(Runs, AMalformedRowIsNamedWithFileAndLine) {
  const std::string run = make_run("a", 1, "1,agent.loss,3\r\n2,agent.loss,much\r\n");
  const Error error = read_run(run, Axis::step).error();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_EQ(error.text(), run + "/curve.csv:3: the value is a number, here it is 'much'");
}

TEST_F(Runs, AWrongWeightIsRefused) {
  const std::string run = make_run("a", 1, "1,agent.loss,3\r\n");
  EXPECT_EQ(draw({run}, {.smooth = 1}), "error: the smoothing (--smooth) has to be >=0..<1");
  EXPECT_EQ(plot({}, {}).error().code(), Errc::bad_arguments);
}

}  // namespace
}  // namespace caftan::results::plot_test

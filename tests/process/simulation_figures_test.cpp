// The figures of the simulations that ship, as theory has them, in all placements. The long form runs the whole files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "command.hpp"
#include "lines.hpp"
#include "programs.hpp"
#include "quarter_car/quarter_car.hpp"
#include "soak_size.hpp"

namespace caftan::test::simulation_figures_test {
namespace {

const std::string kClock = "roles.clock.config.";

bool is_long() { return soak_size("CAFTAN_SIM_FIGURES", 0) > 0; }

Finished run(const Folder& folder, const std::string& file, std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"run", kConfigs + "/" + file});
  Command command(folder, kCaftan, overrides);
  // A whole file takes longer than a Command waits at once.
  for (int waited = 0; waited < (is_long() ? 40 : 4) && !command.wait_for_line("fingerprint "); ++waited) {
  }
  const int code = command.wait();
  return {code, command.out(), command.err()};
}
std::string fingerprint_of(const Finished& run) { return line_with(run.out, "fingerprint sha256:"); }

/// Returns the events of the line "virtual time 100, 813056 events in 0.21 s".
double events_of(const Finished& run) {
  const std::size_t end = run.out.find(" events in ");
  return end == std::string::npos ? 0 : std::stod(run.out.substr(run.out.rfind(' ', end - 1)));
}

/// Returns one measure of scalars.csv.
double scalar(const Folder& folder, const std::string& statistic, const std::string& measure) {
  std::istringstream lines(folder.read("runs/latest/scalars.csv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(statistic + ",") && line.find("," + measure + ",") != std::string::npos)
      return std::stod(line.substr(line.rfind(',') + 1));
  }
  return -1;
}

/// Returns the values of series.csv.
std::vector<double> series(const Folder& folder) {
  std::vector<double> values;
  std::istringstream lines(folder.read("runs/latest/series.csv"));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) values.push_back(std::stod(line.substr(line.rfind(',') + 1)));
  return values;
}

TEST(SimulationFigures, PholdHasAsManyEventsAsTheTheorySaysAndOneFingerprint) {
  const double end = is_long() ? 1000 : 20;
  // A process handles an event each 1 + 1 units, the first one late by what is left of the first delay.
  const double expected = 16'384 * (end / 2 - 0.375);
  std::vector<std::vector<std::string>> all{{"roles.partition.replicas=1"},
                                            {"roles.partition.replicas=2"},
                                            {"roles.partition.replicas=4", "run.placement=one_process"},
                                            {"roles.partition.replicas=4", kClock + "sync=null_message",
                                             kClock + "checkpoint.every=" + std::to_string(end / 10)}};
  if (is_long()) {
    for (const char* const placement : {"one_process", "processes"}) {
      for (const char* const sync : {"window", "null_message"}) {
        for (const char* const replicas : {"1", "2", "4"}) {
          all.push_back({std::string("roles.partition.replicas=") + replicas, std::string("run.placement=") + placement,
                         kClock + "sync=" + sync});
        }
      }
    }
  }
  std::string fingerprint;
  for (auto overrides : all) {
    overrides.push_back(kClock + "end_time=" + std::to_string(end));
    const Folder folder;
    const Finished done = run(folder, "phold.toml", overrides);
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_NEAR(events_of(done), expected, is_long() ? 5000 : 2000);
    if (fingerprint.empty()) fingerprint = fingerprint_of(done);
    EXPECT_NE(fingerprint, "");
    EXPECT_EQ(fingerprint_of(done), fingerprint) << ::testing::PrintToString(overrides);
  }
}

TEST(SimulationFigures, CqnHasWhatTheQueueingTheorySays) {
  const double end = is_long() ? 100'000 : 30'000;
  std::string fingerprint;
  for (const std::string replicas : {"1", "2", "4"}) {
    if (!is_long() && replicas != "2") continue;
    const Folder folder;
    const Finished done =
        run(folder, "cqn.toml", {kClock + "end_time=" + std::to_string(end), "roles.partition.replicas=" + replicas});
    ASSERT_EQ(done.code, 0) << done.err;
    // Exact by mean value analysis of the whole network, behind a warm-up of 10,000.
    EXPECT_NEAR(scalar(folder, "services", "count") / (end - 10'000), 69.28, 0.005 * 69.28);
    EXPECT_NEAR(scalar(folder, "jobs in queue", "mean"), 1.3649, 0.005 * 1.3649);
    if (fingerprint.empty()) fingerprint = fingerprint_of(done);
    EXPECT_EQ(fingerprint_of(done), fingerprint) << replicas;
  }
}

TEST(SimulationFigures, AQuarterCarHasTheErrorsOfItsSteps) {
  // The undivided system: both equations in one loop.
  const auto undivided = [] {
    quarter_car::Wheel wheel;
    quarter_car::Chassis chassis;
    std::vector<double> positions;
    for (std::int64_t i = 0; i < 500'000; ++i) {
      if (i % 1000 == 0) positions.push_back(chassis.position);
      wheel.chassis_position = chassis.position;
      wheel.chassis_velocity = chassis.velocity;
      chassis.wheel_position = wheel.position;
      chassis.wheel_velocity = wheel.velocity;
      wheel.step(static_cast<double>(i) * 1e-5, 1e-5);
      chassis.step(0, 1e-5);
    }
    return positions;
  }();
  const auto error_of = [&](const std::string& step, const std::string& algorithm) {
    const Folder folder;
    const Finished done = run(folder, "quarter_car.toml",
                              {"roles.car.config.base_step=" + step, "roles.car.config.algorithm=" + algorithm});
    EXPECT_EQ(done.code, 0) << done.err;
    const std::vector<double> found = series(folder);
    EXPECT_EQ(found.size(), undivided.size());
    double largest = 0;
    for (std::size_t i = 0; i < std::min(found.size(), undivided.size()); ++i)
      largest = std::max(largest, std::abs(found[i] - undivided[i]));
    return largest;
  };
  if (is_long()) {
    EXPECT_EQ(error_of("1e-5", "jacobi"), 0) << "500,000 exchanges give the same bits";
  }
  EXPECT_NEAR(error_of("1e-4", "jacobi"), 2.7e-5, 0.02 * 2.7e-5);
  EXPECT_NEAR(error_of("1e-3", "jacobi"), 3.06e-4, 0.02 * 3.06e-4);
  EXPECT_NEAR(error_of("1e-2", "jacobi"), 4.02e-3, 0.02 * 4.02e-3);
  EXPECT_NEAR(error_of("1e-3", "gauss_seidel"), 2.56e-4, 0.02 * 2.56e-4);
}

}  // namespace
}  // namespace caftan::test::simulation_figures_test

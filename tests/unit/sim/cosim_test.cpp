// Co-simulation: two components of a quarter car against the undivided system; connections and scenarios that are
// wrong.
#include "caftan/sim/cosim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "caftan/sim/internal/kernel.hpp"
#include "caftan/sim/sequential.hpp"
#include "folder.hpp"

namespace caftan::sim::cosim_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kInner = 1e-5;

struct Wheel {
  double mass = 40, tyre = 150000, spring = 15000, damper = 1000, zc = 0, vc = 0, z = 0, v = 0;
  static void variables(auto& x, Wheel& w) {
    x.parameter("tyre", w.tyre, "N/m");
    x.input("chassis_position", w.zc, "m");
    x.input("chassis_velocity", w.vc, "m/s");
    x.output("position", w.z, "m");
    x.output("velocity", w.v, "m/s");
  }
  void step(double from, double by) {
    for (long i = 0, n = std::lround(by / kInner); i < n; ++i) {
      const double ground = from + static_cast<double>(i) * kInner < 0.1 ? 0 : 0.1;
      const double a = (tyre * (ground - z) - spring * (z - zc) - damper * (v - vc)) / mass;
      z += kInner * v;
      v += kInner * a;
    }
  }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& z& v;
  }
};
struct Chassis {
  double mass = 400, spring = 15000, damper = 1000, zw = 0, vw = 0, z = 0, v = 0;
  static void variables(auto& x, Chassis& c) {
    x.input("wheel_position", c.zw, "m");
    x.input("wheel_velocity", c.vw, "m/s");
    x.output("position", c.z, "m");
    x.output("velocity", c.v, "m/s");
  }
  void step(double, double by) {
    for (long i = 0, n = std::lround(by / kInner); i < n; ++i) {
      const double a = (spring * (zw - z) + damper * (vw - v)) / mass;
      z += kInner * v;
      v += kInner * a;
    }
  }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& z& v;
  }
};

CosimConfig quarter_car(double step) {
  return {.base_step = step,
          .connections = {"wheel.position -> chassis.wheel_position", "wheel.velocity -> chassis.wheel_velocity",
                          "chassis.position -> wheel.chassis_position", "chassis.velocity -> wheel.chassis_velocity"}};
}

void build_car(Builder& builder, const CosimConfig& config, bool wheel_first = false) {
  Cosim cosim(builder, config);
  if (wheel_first) cosim.component<Wheel>("wheel");
  cosim.component<Chassis>("chassis");
  if (!wheel_first) cosim.component<Wheel>("wheel");
}

constexpr double kEnd = 1.5;

/// The position of the chassis over time in the undivided system, by explicit Euler; by tick.
const std::map<std::int64_t, double>& undivided() {
  static const std::map<std::int64_t, double> positions = [] {
    std::map<std::int64_t, double> all;
    Wheel wheel;
    Chassis chassis;
    for (std::int64_t tick = 0; tick < static_cast<std::int64_t>(kEnd * kTicksPerUnit); tick += 10'000) {
      all[tick] = chassis.z;
      wheel.zc = chassis.z, wheel.vc = chassis.v, chassis.zw = wheel.z, chassis.vw = wheel.v;
      wheel.step(Time{tick}.units(), kInner);
      chassis.step(0, kInner);
    }
    return all;
  }();
  return positions;
}

/// Returns the largest difference of the chassis from the undivided system.
double error_of(const CosimConfig& config, bool wheel_first = false) {
  const auto run = run_sequential([&](Builder& builder) { build_car(builder, config, wheel_first); },
                                  {.end_time = kEnd, .record = {.series = {"chassis.position"}}});
  EXPECT_TRUE(run) << (run ? Error() : run.error());
  double largest = 0;
  for (const Record& record : run->records) {
    // A component that steps later within the base step records then what holds from the begin of the step.
    const std::int64_t step = time_of(config.base_step)->ticks;
    largest = std::max(largest, std::abs(record.value - undivided().at(record.time.ticks / step * step)));
  }
  EXPECT_EQ(run->records.size(), std::lround(kEnd / config.base_step));
  return largest;
}

TEST(Cosim, WithTheInnerStepItIsTheUndividedSystemBitForBit) { EXPECT_EQ(error_of(quarter_car(1e-5)), 0); }

TEST(Cosim, TheErrorOfJacobiIsOfOrderOne) {
  EXPECT_NEAR(error_of(quarter_car(1e-4)), 2.7e-5, 0.02 * 2.7e-5);
  EXPECT_NEAR(error_of(quarter_car(1e-3)), 3.06e-4, 0.02 * 3.06e-4);
  EXPECT_NEAR(error_of(quarter_car(1e-2)), 4.02e-3, 0.02 * 4.02e-3);
}

TEST(Cosim, GaussSeidelSeesTheOutputsOfTheComponentsBefore) {
  CosimConfig config = quarter_car(1e-3);
  config.algorithm = CosimAlgorithm::gauss_seidel;
  EXPECT_NEAR(error_of(config), 2.695e-4, 0.01 * 2.695e-4);
  EXPECT_NEAR(error_of(config, true), 2.562e-4, 0.01 * 2.562e-4);
}

TEST(Cosim, TheChassisPeaksWhereThePhysicsSays) {
  const auto run = run_sequential([](Builder& builder) { build_car(builder, quarter_car(1e-4)); },
                                  {.end_time = kEnd, .record = {.series = {"chassis.position"}}});
  ASSERT_TRUE(run) << (run ? Error() : run.error());
  const auto peak = std::max_element(run->records.begin(), run->records.end(),
                                     [](const Record& a, const Record& b) { return a.value < b.value; });
  EXPECT_NEAR(peak->value, 0.161845, 2e-4);
  EXPECT_NEAR(peak->time.units(), 0.581, 2e-3);
}

/// A component that adds one to its input at each step.
struct Counter {
  double in = 0, gain = 1, out = 5;
  static void variables(auto& x, Counter& c) {
    x.input("in", c.in), x.parameter("gain", c.gain), x.output("out", c.out);
  }
  void step(double, double) { out = in + gain; }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& out;
  }
};

std::function<void(Builder&)> counters(CosimConfig config) {
  return [config](Builder& builder) {
    Cosim cosim(builder, config);
    cosim.component<Counter>("one");
    cosim.component<Counter>("two");
  };
}

Error wrong(CosimConfig config) { return make_kernel(counters(std::move(config)), {}).error(); }

TEST(Cosim, ConnectionsThatCannotBeAreNamed) {
  EXPECT_THAT(wrong({.connections = {"one.out > two.in"}}).text(), HasSubstr("component.output -> component.input"));
  EXPECT_THAT(wrong({.connections = {"one.oot -> two.in"}}).text(),
              AllOf(HasSubstr("'one.oot'"), HasSubstr("did you mean 'one.out'?")));
  EXPECT_THAT(wrong({.connections = {"one.out -> two.out"}}).text(), HasSubstr("'two.out' is no input"));
  EXPECT_THAT(wrong({.connections = {"one.in -> two.in"}}).text(), HasSubstr("'one.in' is no output"));
  EXPECT_THAT(wrong({.connections = {"one.out -> one.in"}}).text(), HasSubstr("to itself"));
  EXPECT_THAT(wrong({.connections = {"one.out -> two.in", "one.out->two.in"}}).text(), HasSubstr("two sources"));
}

TEST(Cosim, StepsThatAreNotWholeTicksAreNamed) {
  EXPECT_THAT(wrong({.base_step = 1.5e-9}).text(), HasSubstr("whole number of ticks"));
  EXPECT_THAT(wrong({.base_step = 1e-12}).text(), HasSubstr("whole number of ticks"));
  EXPECT_THAT(wrong({.base_step = 3e-9, .algorithm = CosimAlgorithm::gauss_seidel}).text(),
              HasSubstr("no whole ticks"));
}

TEST(Cosim, AnInputWithoutASourceIsAWarning) {
  const auto kernel = make_kernel(counters({.connections = {"one.out -> two.in"}}), {}).value();
  ASSERT_EQ(kernel->layout().warnings().size(), 1);
  EXPECT_THAT(kernel->layout().warnings()[0], HasSubstr("'one.in' has no source"));
}

TEST(Cosim, AScenarioChangesInputsAndParametersAtItsTimes) {
  const caftan::test::Folder folder;
  const std::filesystem::path file = folder.path() / "scenario.toml";
  std::ofstream(file) << "[[at]]\ntime = 2\nset = { \"two.in\" = 100.0 }\n"
                         "[[at]]\ntime = 3.0\nbias = { \"two.in\" = 0.5 }\n"
                         "[[at]]\ntime = 4\nreset = [\"two.in\"]\nset = { \"two.gain\" = -1 }\n";
  const auto run = run_sequential(counters({.base_step = 1, .connections = {"one.out -> two.in"}, .scenario = file}),
                                  {.end_time = 6, .record = {.series = {"two.out"}}});
  ASSERT_TRUE(run) << (run ? Error() : run.error());
  std::vector<double> seen;
  for (const Record& record : run->records) seen.push_back(record.value);
  // The output at t; the first is the initial one. The input is 5 at first, then 1.
  EXPECT_THAT(seen, testing::ElementsAre(5, 6, 2, 101, 101.5, 0));
}

TEST(Cosim, AScenarioThatIsWrongHasItsLine) {
  const caftan::test::Folder folder;
  const std::filesystem::path file = folder.path() / "scenario.toml";
  const auto with = [&](const std::string& text) {
    std::ofstream(file) << text;
    return wrong({.scenario = file}).text();
  };
  EXPECT_THAT(with("[[at]]\ntime = 1\nset = { \"two.gian\" = 1 }\n"),
              AllOf(HasSubstr(":3:"), HasSubstr("did you mean 'two.gain'?")));
  EXPECT_THAT(with("[[at]]\ntime = 1\nset = { \"two.out\" = 1 }\n"),
              AllOf(HasSubstr(":3:"), HasSubstr("is an output")));
  EXPECT_THAT(with("[[at]]\ntime = 1\nsett = { \"two.gain\" = 1 }\n"),
              AllOf(HasSubstr(":3:"), HasSubstr("did you mean 'set'?")));
  EXPECT_THAT(with("[[at]]\nset = { \"two.gain\" = 1 }\n"), HasSubstr("needs `time`"));
  EXPECT_THAT(with("[[at]]\ntime = 1\nset = { \"two.gain\" = \"x\" }\n"), HasSubstr("changed to a number"));
  std::filesystem::remove(file);
  EXPECT_THAT(wrong({.scenario = file}).text(), HasSubstr("scenario"));
}

}  // namespace
}  // namespace caftan::sim::cosim_test

// Courses of Gymnasium's environments, recorded with NumPy whose vector instructions were off: the sines are those of
// the C library.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "caftan/rl/acrobot.hpp"
#include "caftan/rl/mountain_car.hpp"
#include "caftan/rl/pendulum.hpp"

namespace caftan::rl::classic_test {
namespace {

TEST(Pendulum, EpisodeOfSeed42IsGymnasiums) {
  Pendulum environment;
  ASSERT_TRUE(environment.reset(42));
  EXPECT_EQ(environment.state(), (PendulumState{1.721316619099806, -0.12224312049589536}));
  double reward = 0;
  for (int step = 0; step < 200; ++step) {
    const auto taken = environment.step_continuous(std::array{step % 2 == 0 ? 2.0F : -1.0F});
    ASSERT_TRUE(taken);
    EXPECT_FALSE(taken->ended());
    reward += taken->reward;
    if (step == 49) {
      EXPECT_NEAR(environment.state()[0], 3.944385826615683, 1e-9);
      EXPECT_NEAR(environment.state()[1], 4.903890760365451, 1e-9);
    }
  }
  EXPECT_EQ(environment.state(), (PendulumState{2.712551576804016, 4.761255047952961}));
  EXPECT_EQ(reward, -1200.9754919239933);
}

TEST(Pendulum, ClipsTorqueAndSpeed) {
  Pendulum clipped;
  Pendulum greatest;
  ASSERT_TRUE(clipped.reset(1));
  ASSERT_TRUE(greatest.reset(1));
  for (int step = 0; step < 100; ++step) {
    const auto one = clipped.step_continuous(std::array{50.0F});
    const auto other = greatest.step_continuous(std::array{2.0F});
    EXPECT_EQ(one->reward, other->reward);
    EXPECT_LE(std::abs(clipped.state()[1]), 8.0);
  }
  EXPECT_EQ(clipped.state(), greatest.state());
}

TEST(MountainCar, EpisodeOfSeed42IsGymnasiums) {
  MountainCar environment;
  ASSERT_TRUE(environment.reset(42));
  EXPECT_EQ(environment.state(), (MountainCarState{-0.44520879028880733, 0}));
  int steps = 0;
  for (bool ended = false; !ended; ++steps) {
    const auto taken = environment.step(environment.state()[1] >= 0 ? 2 : 0);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->reward, -1.0);
    ended = taken->terminated;
  }
  EXPECT_EQ(steps, 121);
  EXPECT_EQ(environment.state(), (MountainCarState{0.515810360735619, 0.03958084070841278}));
}

TEST(MountainCar, TheLeftEndStopsTheCar) {
  MountainCar environment;
  ASSERT_TRUE(environment.reset(42));
  bool stopped = false;
  for (int step = 0; step < 150 && !stopped; ++step) {
    ASSERT_TRUE(environment.step(environment.state()[1] > 0 && environment.state()[0] < -0.2 ? 2 : 0));
    stopped = environment.state()[0] == -1.2;
  }
  ASSERT_TRUE(stopped);
  EXPECT_EQ(environment.state()[1], 0.0);
}

TEST(MountainCarContinuous, EpisodeOfSeed42HasGymnasiumsLengthAndReturn) {
  MountainCarContinuous environment;
  ASSERT_TRUE(environment.reset(42));
  EXPECT_EQ(environment.state(), (MountainCarState{-0.44520879028880733, 0}));
  int steps = 0;
  double reward = 0;
  for (bool ended = false; !ended; ++steps) {
    const auto taken = environment.step_continuous(std::array{environment.state()[1] >= 0 ? 1.0F : -1.0F});
    ASSERT_TRUE(taken);
    reward += taken->reward;
    ended = taken->terminated;
  }
  EXPECT_EQ(steps, 105);
  EXPECT_NEAR(reward, 89.5, 1e-9);
  EXPECT_NEAR(environment.state()[0], 0.5020867586135864, 1e-4);  // NumPy 2 computes a step in float32
}

TEST(MountainCarContinuous, WhatIsAskedForCostsAndNotWhatIsGiven) {
  MountainCarContinuous environment;
  ASSERT_TRUE(environment.reset(1));
  EXPECT_EQ(environment.step_continuous(std::array{3.0F})->reward, -(9.0 * 0.1));
}

TEST(Acrobot, EpisodeOfSeed42IsGymnasiums) {
  Acrobot environment;
  ASSERT_TRUE(environment.reset(42));
  const AcrobotState start = {0.05479120835661888, -0.01222431194037199, 0.07171958684921265, 0.039473604410886765};
  EXPECT_EQ(environment.state(), start);
  int steps = 0;
  double reward = 0;
  for (bool ended = false; !ended; ++steps) {
    const auto taken = environment.step(environment.state()[3] >= 0 ? 2 : 0);
    ASSERT_TRUE(taken);
    reward += taken->reward;
    ended = taken->terminated;
    if (steps != 49) continue;
    const AcrobotState after = {1.4012124819448228, -2.0436355373760096, 2.1750639860748837, -3.2133107565277994};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(environment.state()[i], after[i], 1e-9);
  }
  EXPECT_EQ(steps, 67);
  EXPECT_EQ(reward, -66.0);
  const AcrobotState end = {1.7845565312445202, 1.7421769014040007, 0.8380412099881518, -0.7302625694282834};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(environment.state()[i], end[i], 1e-8);
}

/// The starts of seeds 0 to 999, as NumPy draws these.
TEST(Resets, AreBitEqualToNumPysForAThousandSeeds) {
  const std::string program = R"(
import sys
try:
    import numpy as np
except ImportError:
    sys.exit(3)
for seed in range(1000):
    cart = np.random.Generator(np.random.PCG64(seed)).uniform(-0.05, 0.05, 4)
    pendulum = np.random.Generator(np.random.PCG64(seed)).uniform(low=-np.array([np.pi, 1.0]), high=np.array([np.pi, 1.0]))
    car = np.random.Generator(np.random.PCG64(seed)).uniform(-0.6, -0.4)
    acrobot = np.random.Generator(np.random.PCG64(seed)).uniform(-0.1, 0.1, 4).astype(np.float32)
    print(*[float(v).hex() for v in (*pendulum, car, *acrobot)])
)";
  const std::string command = "python3 -c '" + program + "' 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  Pendulum pendulum;
  MountainCar car;
  Acrobot acrobot;
  int seeds = 0;
  std::array<double, 7> drawn{};
  const auto read = [&] {
    for (double& value : drawn) {
      if (std::fscanf(pipe, "%la", &value) != 1) return false;
    }
    return true;
  };
  while (read()) {
    const auto seed = static_cast<std::uint64_t>(seeds++);
    ASSERT_TRUE(pendulum.reset(seed));
    ASSERT_TRUE(car.reset(seed));
    ASSERT_TRUE(acrobot.reset(seed));
    EXPECT_EQ(pendulum.state(), (PendulumState{drawn[0], drawn[1]})) << seed;
    EXPECT_EQ(car.state()[0], drawn[2]) << seed;
    EXPECT_EQ(acrobot.state(), (AcrobotState{drawn[3], drawn[4], drawn[5], drawn[6]})) << seed;
  }
  if (::pclose(pipe) != 0 && seeds == 0) GTEST_SKIP() << "no NumPy for python3";
  EXPECT_EQ(seeds, 1000);
}

}  // namespace
}  // namespace caftan::rl::classic_test

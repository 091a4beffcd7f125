/// A quarter car as a co-simulation: a wheel and a chassis, each with equations of its own, exchange positions and
/// velocities at fixed steps. After 0.1 s the road rises by 0.1 m.
///
/// A component says which variables it has and makes steps; which output belongs to which input stands in the file.
#pragma once

#include <cmath>

#include "caftan/sim/cosim.hpp"

namespace caftan::quarter_car {

/// The mass between the road and the spring.
struct Wheel {
  double mass = 40;
  double tyre = 150'000;
  double spring = 15'000;
  double damper = 1'000;
  double inner = 1e-5;  ///< step inside of the component, s
  double chassis_position = 0;
  double chassis_velocity = 0;
  double position = 0;
  double velocity = 0;

  /// The names that connections, scenario and record use.
  static void variables(auto& x, Wheel& w) {
    x.parameter("mass", w.mass, "kg");
    x.parameter("tyre", w.tyre, "N/m");
    x.input("chassis_position", w.chassis_position, "m");
    x.input("chassis_velocity", w.chassis_velocity, "m/s");
    x.output("position", w.position, "m");
    x.output("velocity", w.velocity, "m/s");
  }

  /// Goes on from one exchange to the next, in small steps of the explicit Euler method. Inputs are held meanwhile.
  void step(double from, double by) {
    const long steps = std::lround(by / inner);
    const long first = std::lround(from / inner);
    for (long i = 0; i < steps; ++i) {
      const double time = static_cast<double>(first + i) * inner;
      const double ground = time < 0.1 ? 0 : 0.1;
      const double force =
          tyre * (ground - position) - spring * (position - chassis_position) - damper * (velocity - chassis_velocity);
      const double acceleration = force / mass;
      position += inner * velocity;
      velocity += inner * acceleration;
    }
  }

  /// The state of the component. Its inputs and parameters are kept for it.
  void serialize(auto& archive, unsigned) { archive& position& velocity; }
};

/// The mass above the spring.
struct Chassis {
  double mass = 400;
  double spring = 15'000;
  double damper = 1'000;
  double inner = 1e-5;
  double wheel_position = 0;
  double wheel_velocity = 0;
  double position = 0;
  double velocity = 0;

  static void variables(auto& x, Chassis& c) {
    x.parameter("mass", c.mass, "kg");
    x.input("wheel_position", c.wheel_position, "m");
    x.input("wheel_velocity", c.wheel_velocity, "m/s");
    x.output("position", c.position, "m");
    x.output("velocity", c.velocity, "m/s");
  }

  void step(double, double by) {
    const long steps = std::lround(by / inner);
    for (long i = 0; i < steps; ++i) {
      const double force = spring * (wheel_position - position) + damper * (wheel_velocity - velocity);
      const double acceleration = force / mass;
      position += inner * velocity;
      velocity += inner * acceleration;
    }
  }

  void serialize(auto& archive, unsigned) { archive& position& velocity; }
};

/// The model: two components, each of which may be in a partition of its own.
struct QuarterCar {
  using Config = sim::CosimConfig;

  static void build(sim::Builder& builder, const Config& config) {
    sim::Cosim cosim(builder, config);
    cosim.component<Wheel>("wheel");
    cosim.component<Chassis>("chassis");
  }
};

}  // namespace caftan::quarter_car

/// Co-simulation with fixed steps: components with variables and a `step`, coupled by values at moments. Start with
/// `Cosim` in `Model::build`; a component is a plain class, each of which becomes a logical process and a group.
///
///     struct Wheel {
///       double mass = 40, position = 0, road = 0;
///       static void variables(auto& x, Wheel& w) {
///         x.parameter("mass", w.mass, "kg"), x.input("road", w.road, "m"), x.output("position", w.position, "m");
///       }
///       void step(double from, double by);  // inputs are held
///       void serialize(auto& a, unsigned) { a & position; }  // the state; inputs and parameters are kept for it
///     };
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/sim/model.hpp"

namespace caftan::sim {

/// When a component sees the outputs of the others: of the last step, or of this one if they come before it.
enum class CosimAlgorithm { jacobi, gauss_seidel };

/// The config of a model that is a co-simulation.
struct CosimConfig {
  double base_step = 1e-3;  ///< units; a whole number of ticks
  CosimAlgorithm algorithm = CosimAlgorithm::jacobi;
  std::vector<std::string> connections{};  ///< "wheel.position -> chassis.wheel_position"
  std::filesystem::path scenario{};        ///< a TOML file of timed changes; empty = none

  static void settings(auto& s, CosimConfig& c) {
    s("base_step", c.base_step, "time between two exchanges of values; a whole number of ticks")
        .greater_than(0)
        .unit("units");
    s("algorithm", c.algorithm, "which outputs a component sees")
        .one_of({{"jacobi", "those of the last step"}, {"gauss_seidel", "of components before it those of this step"}});
    s("connections", c.connections, "output -> input, each component.variable");
    s("scenario", c.scenario, "file of timed changes").default_text("none");
  }
};

/// What a variable of a component is for.
enum class VariableKind : std::uint8_t { parameter, input, output };

/// A variable of a component.
struct CosimVariable {
  std::string name{};
  std::string unit{};
  VariableKind kind = VariableKind::parameter;
  double* value = nullptr;  ///< in the component; null in what describes a class
};

/// The object that `variables` functions receive as `x`.
class VariablesVisitor {
 public:
  /// Declares a number that a scenario may change.
  void parameter(std::string name, double& value, std::string unit = "") {
    add(std::move(name), value, std::move(unit), VariableKind::parameter);
  }
  /// Declares a number that comes from another component.
  void input(std::string name, double& value, std::string unit = "") {
    add(std::move(name), value, std::move(unit), VariableKind::input);
  }
  /// Declares a number that `step` sets, and that others and the record may read. It is recorded before each step of
  /// its component, at the moment when that component steps.
  void output(std::string name, double& value, std::string unit = "") {
    add(std::move(name), value, std::move(unit), VariableKind::output);
  }
  /// Returns the variables in the order of their declaration.
  std::vector<CosimVariable> take() && { return std::move(all_); }

 private:
  void add(std::string name, double& value, std::string unit, VariableKind kind) {
    all_.push_back({std::move(name), std::move(unit), kind, &value});
  }
  std::vector<CosimVariable> all_;
};

class CosimPlan;

/// Values that arrive at inputs of a component.
struct CosimValues {
  std::vector<std::pair<std::uint32_t, double>> values{};  ///< position of the variable, value

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& values;
  }
};

/// A component makes its next step.
struct CosimStep {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

/// The inputs and parameters of one component in a run, and what a scenario has changed of them.
class CosimPort {
 public:
  /// @param position  of the component in the plan
  CosimPort(std::shared_ptr<const CosimPlan> plan, std::uint32_t position)
      : plan_(std::move(plan)), position_(position) {}
  /// Takes the initial values of the component and of what it is connected to, and schedules its first step.
  void start(const std::vector<CosimVariable>& variables, LpContext& lp);
  /// Takes values that arrived.
  void on_values(const CosimValues& values);
  /// Applies what the scenario has up to now, sets inputs and parameters, records outputs. Returns the moment from
  /// which the component steps.
  Time before_step(const std::vector<CosimVariable>& variables, LpContext& lp);
  /// Sends the outputs and schedules the next step.
  void after_step(const std::vector<CosimVariable>& variables, LpContext& lp) const;
  /// Returns the length of a step.
  Time step() const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& received_& set_& biases_& first_& changes_;
  }

 private:
  /// Whether a scenario has set a variable, and to what.
  struct Set {
    bool is_set = false;
    double value = 0;

    template <class Archive>
    void serialize(Archive& archive, unsigned) {
      archive& is_set& value;
    }
  };
  std::shared_ptr<const CosimPlan> plan_;
  std::uint32_t position_;
  std::vector<double> received_;  // by variable: inputs as they came
  std::vector<Set> set_;
  std::vector<double> biases_;
  std::vector<double> first_;  // values at the start
  std::uint64_t changes_ = 0;  // of the scenario that were applied
};

/// A component as a logical process.
template <class T>
class CosimProcess {
 public:
  /// What a process of a component handles.
  using Events = sim::Events<CosimValues, CosimStep>;
  CosimProcess(std::shared_ptr<const CosimPlan> plan, std::uint32_t position, T component)
      : port_(std::move(plan), position), component_(std::move(component)) {}
  /// Schedules the first step.
  void start(LpContext& lp) { port_.start(variables(), lp); }
  /// Takes values for inputs.
  void on(const CosimValues& values, LpContext&) { port_.on_values(values); }
  /// Makes a step.
  void on(const CosimStep&, LpContext& lp) {
    const Time from = port_.before_step(variables(), lp);
    component_.step(from.units(), port_.step().units());
    port_.after_step(variables(), lp);
  }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& component_& port_;
  }

 private:
  std::vector<CosimVariable> variables() {
    VariablesVisitor visitor;
    T::variables(visitor, component_);
    return std::move(visitor).take();
  }
  CosimPort port_;
  T component_;
};

/// Collects the components of a model. Its end connects them: names that are wrong are an error of the model then.
class Cosim {
 public:
  /// Both outlive it.
  Cosim(Builder& builder, const CosimConfig& config);
  Cosim(const Cosim&) = delete;
  Cosim& operator=(const Cosim&) = delete;
  ~Cosim();

  /// Adds a component. Components step in the order in which they are added, where that counts.
  /// @param name  as connections, scenario and records name it
  /// @param component  its initial state
  /// @param every  a slower component: it steps once in that many base steps, and its step is as much longer
  template <class T>
  void component(std::string name, T component = T{}, std::uint32_t every = 1) {
    VariablesVisitor visitor;
    T::variables(visitor, component);
    const std::uint32_t position = add(std::move(name), std::move(visitor).take(), every);
    builder_.group();
    builder_.add<CosimProcess<T>>([&] { return CosimProcess<T>(plan_, position, component); });
  }

 private:
  std::uint32_t add(std::string name, std::vector<CosimVariable> variables, std::uint32_t every);

  Builder& builder_;
  std::shared_ptr<CosimPlan> plan_;
};

}  // namespace caftan::sim

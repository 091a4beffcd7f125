/// `CosimPlan`: which output goes to which input, and the changes of a scenario, with names resolved. All partitions
/// have the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/sim/cosim.hpp"

namespace caftan::sim {

/// Threads: filled by one, then read by any.
class CosimPlan {
 public:
  /// An output's way to an input.
  struct Link {
    std::uint32_t output = 0;     ///< position of the variable in its component
    std::uint32_t component = 0;  ///< that has the input
    std::uint32_t input = 0;
  };
  /// A change of a scenario.
  struct Change {
    enum class Kind { set, bias, reset };
    Time time{};
    std::uint32_t component = 0;
    std::uint32_t variable = 0;
    Kind kind = Kind::set;
    double value = 0;
  };
  struct Component {
    std::string name{};
    std::vector<CosimVariable> variables{};  ///< without pointers
    std::vector<double> first{};             ///< the initial values
    std::vector<bool> has_source{};          ///< by variable
    std::uint32_t every = 1;
    std::vector<Link> links{};      ///< from its outputs, by the component that has the input
    std::vector<Change> changes{};  ///< in the order of time
  };

  explicit CosimPlan(const CosimConfig& config) : config_(config) {}
  /// Adds a component.
  void add(Component component) { components_.push_back(std::move(component)); }
  /// Connects all components. Errors: invalid_config: names, sources, the step, the scenario.
  Result<void> connect();
  /// Returns what is no error but probably wrong: inputs without a source.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  const std::vector<Component>& components() const noexcept { return components_; }
  Time base_step() const noexcept { return base_step_; }
  /// Returns the delay of outputs: the lookahead.
  Time delay() const noexcept { return delay_; }
  /// Returns when the first step of a component is.
  Time offset(std::uint32_t component) const noexcept {
    return config_.algorithm == CosimAlgorithm::jacobi ? Time{} : Time{delay_.ticks * component};
  }

 private:
  /// A variable by its position.
  struct Place {
    std::uint32_t component = 0;
    std::uint32_t variable = 0;
  };
  Result<void> set_step();
  Result<Place> find(std::string_view name, std::string_view what) const;
  Result<void> connect_one(const std::string& text);
  Result<void> read_scenario();

  CosimConfig config_;
  std::vector<Component> components_;
  std::vector<std::string> warnings_;
  Time base_step_{};
  Time delay_{};
};

}  // namespace caftan::sim

/// `GroupRates`: what the groups of a DistributedOptimizer are stepped by, as its user sets it between steps.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/optim/algorithms.hpp"
#include "caftan/optim/step_messages.hpp"
#include "saved_state.hpp"

namespace caftan::optim {

/// Precondition of all methods with a group: group < groups(). Threads: any.
class GroupRates {
 public:
  explicit GroupRates(std::vector<Algorithm> algorithms)
      : algorithms_(std::move(algorithms)), made_with_(algorithms_) {}

  std::size_t groups() const noexcept;
  /// Returns whether steps are by closures.
  bool need_closure() const noexcept;
  double lr(std::size_t group) const;
  void set_lr(std::size_t group, double lr);
  std::optional<double> momentum(std::size_t group) const;
  void set_momentum(std::size_t group, double momentum);
  std::vector<double> initial_lrs();
  /// Adds a group behind the others. Its initial rate is its rate now.
  void add(const Algorithm& algorithm);

  /// Returns the rates of some groups, in their order.
  std::vector<double> lrs_of(std::span<const std::uint32_t> groups) const;
  /// Returns the momenta of some groups; empty before the first was set.
  Momenta momenta_of(std::span<const std::uint32_t> groups) const;

  void write_to(SavedState& saved) const;
  /// Takes over the rates of a saved state. Where no momentum had been set before it was saved, the momenta are those
  /// that the groups were made with. Precondition: `saved` has as many groups.
  void take(const SavedState& saved);

 private:
  mutable base::Mutex mutex_;
  std::vector<Algorithm> algorithms_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<Algorithm> made_with_ CAFTAN_GUARDED_BY(mutex_);  // as they were before anything was set
  std::vector<double> initial_lrs_ CAFTAN_GUARDED_BY(mutex_);   // of each group; empty before the first schedule
  bool momenta_set_ CAFTAN_GUARDED_BY(mutex_) = false;
};

}  // namespace caftan::optim

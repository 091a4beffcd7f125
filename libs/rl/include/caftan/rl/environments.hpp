/// `Environments`: the environments that a program knows, by name. Those that ship are in each one;
/// `Program::environment` adds a user's, and a role makes what its file names by
/// `context.environments().make(config.environment)`.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/checked_environment.hpp"
#include "caftan/rl/environment.hpp"
#include "caftan/rl/gymnasium.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan::rl {

/// What the program knows of an environment beside its class.
struct EnvironmentOptions {
  int max_steps = 0;  ///< its episodes are truncated at this step; 0 = as its spec says
};

/// A value. Threads: one while it is filled; then any.
class Environments {
 public:
  /// Makes n environments that are stepped together.
  using MakeVector = std::function<Result<std::unique_ptr<VectorEnvironment>>(std::size_t n)>;

  /// With the environments that ship.
  Environments();

  /// Adds an environment.
  /// @param id    letters, digits and `_ . - /`
  /// Errors: bad_arguments (an id that is taken or has other letters, a negative max_steps).
  Result<void> add(std::string id, MakeEnvironment make, EnvironmentOptions options = {});

  /// Adds an environment of class T, made by T().
  template <std::derived_from<Environment> T>
  requires std::default_initializable<T> Result<void> add(std::string id, EnvironmentOptions options = {}) {
    return add(
        std::move(id),
        []() -> Result<std::unique_ptr<Environment>> { return std::unique_ptr<Environment>(std::make_unique<T>()); },
        options);
  }

  /// Returns nothing where there is an environment of that name. Of "gymnasium:ID" only the form is looked at: whether
  /// Gymnasium knows the ID is seen when it is made.
  /// Errors: bad_arguments, with the nearest name and the list of all.
  Result<void> check(std::string_view name) const;

  /// Makes an environment, held to its spec by a CheckedEnvironment.
  /// @param name  an id, or "gymnasium:ID" for one of Gymnasium, in a process of its own
  /// Errors: those of `check`, of make_checked and of make_gymnasium.
  Result<std::unique_ptr<Environment>> make(std::string_view name, const GymnasiumOptions& gymnasium = {}) const;

  /// Makes n environments that are stepped together: CartPole's in one loop, Gymnasium's in one process, others one
  /// after the other.
  /// @param n  at least 1
  /// Errors: those of `make`; bad_arguments (no environment).
  Result<std::unique_ptr<VectorEnvironment>> make_vector(std::string_view name, std::size_t n,
                                                         const GymnasiumOptions& gymnasium = {}) const;

  /// Returns the ids, sorted.
  std::vector<std::string> ids() const;

 private:
  struct Entry {
    MakeEnvironment make;
    MakeVector make_vector;  // empty: one after the other
  };

  Result<std::unique_ptr<VectorEnvironment>> make_sequential(const std::string& id, const Entry& entry,
                                                             std::size_t n) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace caftan::rl

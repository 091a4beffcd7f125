/// A wrapper that holds an environment to its own spec, and a test of the rules that each environment keeps
/// (docs/protocols/environments.md). `Environments::make` wraps each environment; call `check_environment` in the test
/// of your own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"

namespace caftan::rl {

/// Makes an environment. It may throw.
using MakeEnvironment = std::function<Result<std::unique_ptr<Environment>>()>;

/// Turns what an environment does wrong into an error that names the environment, the step and the field:
/// user_error of kind "environment.threw", "environment.shape", "environment.not_finite" or "environment.spec". An
/// error that the environment returns, or throws as RpcException, keeps its code and kind, and gets the same names in
/// front. After such an error the next call is a reset.
class CheckedEnvironment final : public Environment {
 public:
  /// @param inner  not null
  /// @param id     by which its spec goes; empty = the one of `inner`
  explicit CheckedEnvironment(std::unique_ptr<Environment> inner, std::string id = {});

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;
  Result<Transition> step_continuous(std::span<const float> action) override;

 private:
  FirstObservation begin(const std::function<FirstObservation()>& reset);
  template <class F>
  Result<Transition> take(F step);
  Result<void> check_observation(std::span<const float> observation) const;
  Result<void> check_spec() const;
  Error wrong(std::string_view kind, const std::string& what) const;
  Error with_place(const Error& own) const;
  std::string place() const;

  std::unique_ptr<Environment> inner_;
  EnvironmentSpec inner_spec_;
  EnvironmentSpec spec_;
  std::int64_t steps_ = 0;
  bool ended_ = true;
};

/// Calls `make`, checks the spec of what it makes, and wraps it.
/// @param id  by which its spec goes; empty = its own
/// Errors: those of `make`; user_error of kind "environment.threw" (it threw), "environment.spec" (the spec has no
/// observations, no actions, negative sizes, bounds of different numbers, or there is no environment).
Result<std::unique_ptr<Environment>> make_checked(const MakeEnvironment& make, std::string id = {});

/// How `check_environment` plays.
struct CheckOptions {
  int episodes = 5;
  int most_steps = 2000;  ///< of one episode: after these it is cut
  std::uint64_t seed = 0;
};

/// Plays episodes with random actions, and holds the environment to all rules that can be seen from outside: EN-1 to
/// EN-7. Errors: the first rule that is broken, by its number, with the step; those of `make`.
Result<void> check_environment(const MakeEnvironment& make, const CheckOptions& options = {});

}  // namespace caftan::rl

/// Makes the environments that a file names, with its action_repeat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "caftan/base/result.hpp"
#include "caftan/rl/environments.hpp"

namespace caftan::agents {

/// Which environment, and how often it takes each action.
struct EnvironmentChoice {
  std::string name{};
  std::int64_t action_repeat = 1;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& action_repeat;
  }
};

/// Makes one environment. Errors: those of Environments::make.
Result<std::unique_ptr<rl::Environment>> make_environment(const rl::Environments& known,
                                                          const EnvironmentChoice& choice,
                                                          const rl::GymnasiumOptions& gymnasium);

/// Makes n environments that are stepped together; with an action_repeat above 1 one after the other, those of
/// Gymnasium in a process each. Errors: those of Environments::make_vector.
Result<std::unique_ptr<rl::VectorEnvironment>> make_environments(const rl::Environments& known,
                                                                 const EnvironmentChoice& choice, std::size_t n,
                                                                 const rl::GymnasiumOptions& gymnasium);

}  // namespace caftan::agents

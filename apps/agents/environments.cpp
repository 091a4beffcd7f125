#include "agents/environments.hpp"

#include <utility>
#include <vector>

#include "caftan/rl/repeated_action.hpp"

namespace caftan::agents {

Result<std::unique_ptr<rl::Environment>> make_environment(const rl::Environments& known,
                                                          const EnvironmentChoice& choice,
                                                          const rl::GymnasiumOptions& gymnasium) {
  auto made = known.make(choice.name, gymnasium);
  if (!made || choice.action_repeat == 1) return made;
  return std::unique_ptr<rl::Environment>(
      std::make_unique<rl::RepeatedAction>(*std::move(made), static_cast<int>(choice.action_repeat)));
}

Result<std::unique_ptr<rl::VectorEnvironment>> make_environments(const rl::Environments& known,
                                                                 const EnvironmentChoice& choice, std::size_t n,
                                                                 const rl::GymnasiumOptions& gymnasium) {
  if (choice.action_repeat == 1) return known.make_vector(choice.name, n, gymnasium);
  std::vector<std::unique_ptr<rl::Environment>> environments;
  for (std::size_t i = 0; i < n; ++i) {
    auto made = make_environment(known, choice, gymnasium);
    if (!made) return made.error();
    environments.push_back(*std::move(made));
  }
  return std::unique_ptr<rl::VectorEnvironment>(std::make_unique<rl::SequentialEnvironments>(std::move(environments)));
}

}  // namespace caftan::agents

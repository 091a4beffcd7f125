#include "caftan/rl/environments.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/rl/acrobot.hpp"
#include "caftan/rl/cartpole.hpp"
#include "caftan/rl/mountain_car.hpp"
#include "caftan/rl/mujoco.hpp"
#include "caftan/rl/pendulum.hpp"
#include "caftan/rl/small_worlds.hpp"

namespace caftan::rl {
namespace {

bool is_id(std::string_view id) noexcept {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("_.-/").find(static_cast<char>(letter)) != std::string_view::npos;
  });
}

/// Returns the id of Gymnasium where the name is of that kind.
std::optional<std::string_view> gymnasium_id(std::string_view name) noexcept {
  if (!name.starts_with(kGymnasiumPrefix)) return std::nullopt;
  return name.substr(kGymnasiumPrefix.size());
}

std::unique_ptr<Environment> with_limit(std::unique_ptr<Environment> environment, int max_steps) {
  return std::make_unique<TimeLimit>(std::move(environment), max_steps);
}

Result<std::unique_ptr<Environment>> limited(const MakeEnvironment& make, int max_steps) {
  auto made = make();
  if (!made || !*made || max_steps == 0) return made;
  return with_limit(*std::move(made), max_steps);
}

CartPoleOptions cartpole_options(const std::string& id, double solved_at) {
  CartPoleOptions options;
  options.id = id;
  options.solved_at = solved_at;
  return options;
}

}  // namespace

Environments::Environments() {
  const auto add_cartpole = [&](const std::string& id, int max_steps, double solved_at) {
    const CartPoleOptions options = cartpole_options(id, solved_at);
    entries_[id] = {[=]() -> Result<std::unique_ptr<Environment>> {
                      return with_limit(std::make_unique<CartPole>(options), max_steps);
                    },
                    [=](std::size_t n) -> Result<std::unique_ptr<VectorEnvironment>> {
                      return std::unique_ptr<VectorEnvironment>(std::make_unique<CartPoles>(options, n, max_steps));
                    }};
  };
  add_cartpole("CartPole-v0", 200, 195.0);
  add_cartpole("CartPole-v1", 500, 475.0);
  const auto add_shipped = [&]<class T>(const std::string& id, int max_steps) {
    entries_[id] = {
        [=]() -> Result<std::unique_ptr<Environment>> { return with_limit(std::make_unique<T>(), max_steps); },
        nullptr};
  };
  add_shipped.operator()<Acrobot>("Acrobot-v1", 500);
  add_shipped.operator()<Catch>("Catch", 9);
  add_shipped.operator()<GridWorld>("GridWorld", 50);
  add_shipped.operator()<MountainCar>("MountainCar-v0", 200);
  add_shipped.operator()<MountainCarContinuous>("MountainCarContinuous-v0", 999);
  add_shipped.operator()<Pendulum>("Pendulum-v1", 200);
  entries_["MujocoCartPole"] = {[] { return limited(make_mujoco_cart_pole, 500); }, nullptr};
  entries_["MujocoReacher"] = {[] { return limited(make_mujoco_reacher, 50); }, nullptr};
}

Result<void> Environments::add(std::string id, MakeEnvironment make, EnvironmentOptions options) {
  if (!is_id(id)) {
    return Error(Errc::bad_arguments, "the name of an environment has letters, digits and _ . - /, not '" + id + "'");
  }
  if (entries_.contains(id)) return Error(Errc::bad_arguments, "there is an environment '" + id + "' already");
  if (options.max_steps < 0) {
    return Error(Errc::bad_arguments,
                 "environment '" + id + "': max_steps is " + std::to_string(options.max_steps) + "; 0 is no limit");
  }
  entries_[std::move(id)] = {
      [make = std::move(make), max_steps = options.max_steps] { return limited(make, max_steps); }, nullptr};
  return {};
}

Result<void> Environments::check(std::string_view name) const {
  if (const auto id = gymnasium_id(name)) {
    if (!id->empty()) return {};
    return Error(Errc::bad_arguments,
                 "'gymnasium:' is followed by the name of an environment, as in gymnasium:LunarLander-v3");
  }
  if (entries_.contains(name)) return {};
  std::string known;
  for (const auto& [id, entry] : entries_) known += (known.empty() ? "" : ", ") + id;
  return Error(Errc::bad_arguments, "no environment '" + std::string(name) + "'" + did_you_mean(name, ids()) +
                                        " (there are: " + known + ", and gymnasium:ID)");
}

Result<std::unique_ptr<Environment>> Environments::make(std::string_view name,
                                                        const GymnasiumOptions& gymnasium) const {
  if (auto known = check(name); !known) return known.error();
  if (const auto id = gymnasium_id(name)) {
    auto single = make_single_gymnasium(*id, gymnasium);
    if (!single) return single;
    return std::unique_ptr<Environment>(std::make_unique<CheckedEnvironment>(*std::move(single), std::string(name)));
  }
  return make_checked(entries_.find(name)->second.make, std::string(name));
}

Result<std::unique_ptr<VectorEnvironment>> Environments::make_vector(std::string_view name, std::size_t n,
                                                                     const GymnasiumOptions& gymnasium) const {
  if (auto known = check(name); !known) return known.error();
  if (n == 0) return Error(Errc::bad_arguments, "a vector environment has 1 environment at least, not 0");
  if (const auto id = gymnasium_id(name)) return make_gymnasium(*id, n, gymnasium);
  const auto& [id, entry] = *entries_.find(name);
  if (entry.make_vector) return entry.make_vector(n);
  return make_sequential(id, entry, n);
}

Result<std::unique_ptr<VectorEnvironment>> Environments::make_sequential(const std::string& id, const Entry& entry,
                                                                         std::size_t n) const {
  std::vector<std::unique_ptr<Environment>> environments;
  for (std::size_t i = 0; i < n; ++i) {
    auto made = make_checked(entry.make, id);
    if (!made) return made.error();
    if (i > 0 && !((*made)->spec() == environments.front()->spec())) {
      return user_error("environment.spec", "environment '" + id + "': two of them have different specs");
    }
    environments.push_back(*std::move(made));
  }
  return std::unique_ptr<VectorEnvironment>(std::make_unique<SequentialEnvironments>(std::move(environments)));
}

std::vector<std::string> Environments::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, entry] : entries_) ids.push_back(id);
  return ids;
}

}  // namespace caftan::rl

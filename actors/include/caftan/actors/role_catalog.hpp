/// The role classes of a program, type-erased: how to make a role object, how to run it, and what peers may call of it.
/// `Program` fills a `RoleCatalog`; workers are started from it.
#pragma once

#include <any>
#include <concepts>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "caftan/actors/role_context.hpp"
#include "caftan/app/role_type.hpp"
#include "caftan/rl/environments.hpp"
#include "caftan/rpc/registry.hpp"

namespace caftan::actors {

/// A role with `Result<void> run(std::stop_token)` drives: the application ends when run() of all such roles has
/// returned.
template <class T>
concept Drives = requires(T& role, std::stop_token stop) {
  { role.run(stop) } -> std::same_as<Result<void>>;
};

namespace detail {
struct NamedConfig {
  struct Config {};
};
template <class T>
struct WithNamedConfig : T, NamedConfig {};
struct NamedRun {
  int run;
};
template <class T>
struct WithNamedRun : T, NamedRun {};
/// Whether T has a member Config, a private one too: the name is ambiguous then.
template <class T>
concept NamesConfig = !std::is_final_v<T> && !requires {
  typename WithNamedConfig<T>::Config;
};
/// Whether T has a member run, private and overloaded ones too: the name is ambiguous then.
template <class T>
concept NamesRun = !std::is_final_v<T> && !requires {
  &WithNamedRun<T>::run;
};
}  // namespace detail

/// The role that a worker plays, as far as what it registers depends on it. The pointer is valid during the call.
struct PlayedRole {
  std::string type{};  ///< empty: none is known, and limits that depend on a config are those of no batch
  const std::any* config = nullptr;
  app::RolePlace place{};
};

/// A role class, type-erased.
struct RoleDefinition {
  /// Another role class that this one calls, and how many replicas of it.
  struct Use {
    std::string name{};
    rpc::TypeKey type{};
    int min = 1;
    int max = 1;
  };
  /// A method that peers may call.
  struct Method {
    std::string name{};
    std::string_view function{};  ///< as it is written: "&Counter::add"
  };
  /// A config key that names an environment of the program.
  struct EnvironmentKey {
    std::string key{};
    std::function<std::string(const std::any& config)> name{};
  };
  /// Registers one method, or another entry of a registry.
  /// @param played  the role that the worker plays
  using Registration = std::function<void(Registry&, const std::string& role, const PlayedRole& played)>;
  std::string name{};
  std::string doc{};
  rpc::TypeKey type{};
  SettingsDeclaration config{};
  bool own_cores = false;  ///< computes nearly all of the time, on cores that the run divides (`run.own_cores`)
  std::vector<Use> uses{};
  std::vector<Method> methods{};
  std::vector<EnvironmentKey> environments{};
  std::vector<Registration> registrations{};
  std::function<std::vector<app::MissingRequirement>(const std::any& config, const app::RolePlace& place)>
      requirements{};
  /// Constructs the role object, which has the first turn of its own strand meanwhile. Throws what the constructor
  /// throws.
  std::shared_ptr<rpc::HostedObject> (*make)(std::shared_ptr<RoleContext> context, const std::any& config, RRefId id,
                                             base::Executor& executor) = nullptr;
  /// Calls run() of the role object; null if the role has none. Throws what run() throws. Threads: the object's strand.
  Result<void> (*run)(rpc::HostedObject& object, std::stop_token stop) = nullptr;
};

/// A role object; keeps its context alive.
template <class T>
class HostedRole final : public rpc::HostedObject {
 public:
  HostedRole(std::shared_ptr<RoleContext> context, const std::any& config, RRefId id,
             std::shared_ptr<rpc::Strand> strand)
      : rpc::HostedObject(rpc::detail::kTypeDescriptor<T>, id, std::move(strand)),
        context_(std::move(context)),
        role_(construct(*context_, config)) {
    value_ = &role_;
  }

 private:
  static T construct(RoleContext& context, const std::any& config) {
    if constexpr (requires { typename T::Config; }) {
      static_assert(std::is_constructible_v<T, RoleContext&, typename T::Config>,
                    "a role with a Config has the constructor T(RoleContext&, Config)");
      return T(context, std::any_cast<const typename T::Config&>(config));
    } else {
      static_assert(std::is_constructible_v<T, RoleContext&>, "a role has the constructor T(RoleContext&)");
      return T(context);
    }
  }

  std::shared_ptr<RoleContext> context_;
  T role_;
};

/// Returns the definition of the role class T, without methods.
template <class T>
RoleDefinition make_role_definition(std::string_view name) {
  constexpr bool kSeesConfig = requires { typename T::Config; };
  static_assert(kSeesConfig || !detail::NamesConfig<T>, "the Config of a role is private: make it public");
  constexpr bool kHasRun = detail::NamesRun<T> || requires { &T::run; };
  static_assert(Drives<T> || !kHasRun,
                "run() of a role is public and has the form: caftan::Result<void> run(std::stop_token stop)");
  RoleDefinition definition;
  definition.name = name;
  definition.type = rpc::type_key<T>();
  definition.config = app::role_settings<T>();
  definition.make = [](std::shared_ptr<RoleContext> context, const std::any& config, RRefId id,
                       base::Executor& executor) -> std::shared_ptr<rpc::HostedObject> {
    auto strand = std::make_shared<rpc::Strand>(executor, id);
    const rpc::FirstTurn turn(*strand);
    return std::make_shared<HostedRole<T>>(std::move(context), config, id, strand);
  };
  if constexpr (Drives<T>) {
    definition.run = [](rpc::HostedObject& object, std::stop_token stop) { return object.as<T>()->run(stop); };
  }
  if constexpr (requires { typename T::Config; }) {
    using Config = typename T::Config;
    if constexpr (requires(const Config& c, const app::RolePlace& p) { T::requirements(c, p); }) {
      definition.requirements = [](const std::any& config, const app::RolePlace& place) {
        return T::requirements(std::any_cast<const Config&>(config), place);
      };
    } else if constexpr (requires(const Config& c) { T::requirements(c); }) {
      definition.requirements = [](const std::any& config, const app::RolePlace&) {
        return T::requirements(std::any_cast<const Config&>(config));
      };
    }
  }
  definition.registrations.push_back([](Registry& registry, const std::string& role, const PlayedRole&) {
    registry.add_role<T>(role);
    registry.add<&role_of<T>>("caftan.role." + role, brief);
  });
  return definition;
}

/// Threads: one while it is filled; then any.
class RoleCatalog {
 public:
  /// Adds a role class. The reference is valid as long as the catalog.
  RoleDefinition& add(RoleDefinition definition);
  void add(std::function<void(Registry&)> more) { more_.push_back(std::move(more)); }
  /// Adds an environment by `add`. What that refuses, `types` returns.
  void add_environment(const std::function<Result<void>(rl::Environments&)>& add) {
    auto added = add(*environments_);
    if (!added && environment_refused_) environment_refused_ = added;
  }
  /// Returns the environments that ship, and those that were added.
  std::shared_ptr<const rl::Environments> environments() const noexcept { return environments_; }

  /// Returns what an application file may name. Errors: bad_arguments (a name or a class twice, a use of a class that
  /// is no role, a number of replicas that cannot be, two methods under one name, what RoleTypes::add refuses, and an
  /// environment that Environments::add refused).
  Result<app::RoleTypes> types() const;
  /// Returns a new registry with all role classes, and with what the functions given to `add` register.
  /// @param played  the role of the worker that gets the registry
  Registry make_registry(const PlayedRole& played = {}) const;
  /// Returns the definition of the role type `name`, or null.
  const RoleDefinition* find(std::string_view name) const;

 private:
  Result<void> check_methods() const;

  std::deque<RoleDefinition> roles_;
  std::vector<std::function<void(Registry&)>> more_;
  std::shared_ptr<rl::Environments> environments_ = std::make_shared<rl::Environments>();
  Result<void> environment_refused_{};
};

}  // namespace caftan::actors

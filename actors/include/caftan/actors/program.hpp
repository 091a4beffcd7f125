/// `Program`: a command line for applications described by files. A user's main registers its role classes and calls
/// `main`:
///     caftan::Program program("counting");
///     program.role<Counter>("counter").method<&Counter::add>("add");
///     program.role<Driver>("driver").uses<Counter>("counters", at_least(1));
///     return program.main(argc, argv);
#pragma once

#include <any>
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/actors/role_catalog.hpp"

namespace caftan {

/// How many replicas a use may name: see `exactly`, `at_least` and `at_most`.
struct Replicas {
  int min = 1;  ///< 0 = the file may leave the use out
  int max = 1;
};
/// As many replicas as given.
constexpr Replicas exactly(int replicas) { return {replicas, replicas}; }
/// @param replicas  0 = the file may leave the use out
constexpr Replicas at_least(int replicas) { return {replicas, app::RoleUse::kAnyNumber}; }
/// @param least  0 = the file may leave the use out
constexpr Replicas at_most(int replicas, int least = 1) { return {least, replicas}; }

/// Goes on describing a role class. Methods are registered as in `ClassBuilder`. A method's name stands once in a role:
/// `Program::main` refuses a second one before anything starts.
template <class T>
class RoleBuilder {
 public:
  explicit RoleBuilder(actors::RoleDefinition& role) : role_(role) {}

  /// One sentence for `help`.
  RoleBuilder& doc(std::string text) { return role_.doc = std::move(text), *this; }

  /// Declares that this role computes nearly all of the time: the cores of a host are divided between the processes of
  /// such roles, unless the file has `own_cores = false` in [run].
  RoleBuilder& own_cores() { return role_.own_cores = true, *this; }

  /// Declares that this role calls another one, of class X: `[roles.NAME.uses] name = "a role"`, or a list of roles.
  /// X may be registered later.
  /// @param replicas  how many replicas the roles of the list may have together
  template <class X>
  RoleBuilder& uses(std::string_view name, Replicas replicas = exactly(1)) {
    role_.uses.push_back({std::string(name), rpc::type_key<X>(), replicas.min, replicas.max});
    return *this;
  }

  /// Declares that a config key names an environment of the program: `check` refuses a file that names another one,
  /// with its line and the nearest name.
  /// @param key   the key, for the place of the error
  /// @param name  a member of T::Config, or a function that returns the name from a `const T::Config&`
  template <class F>
  RoleBuilder& environment(std::string key, F name) {
    role_.environments.push_back({std::move(key), [name](const std::any& config) -> std::string {
                                    return std::invoke(name, std::any_cast<const typename T::Config&>(config));
                                  }});
    return *this;
  }

  /// Registers a method that runs alone on its object, and gives the turn back while it waits.
  /// @param blocking  `brief`, or nothing
  template <auto M>
  RoleBuilder& method(std::string name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    return add<M>(name, [name, blocking](ClassBuilder<T>& builder) { builder.template method<M>(name, blocking); });
  }
  /// Registers a method that keeps its turn while it waits. A call that comes back to the object meanwhile fails with
  /// would_deadlock.
  template <auto M>
  RoleBuilder& exclusive(std::string name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    return add<M>(name, [name, blocking](ClassBuilder<T>& builder) { builder.template exclusive<M>(name, blocking); });
  }
  /// Registers a method that may overlap with other concurrent methods of the same object.
  template <auto M>
  RoleBuilder& concurrent(std::string name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    return add<M>(name, [name, blocking](ClassBuilder<T>& builder) { builder.template concurrent<M>(name, blocking); });
  }
  /// Registers a method that takes a Batch: calls of it are collected, and one run answers several.
  /// @param mode  how a run shares the object with other methods
  template <auto M>
  RoleBuilder& batched(std::string name, BatchLimits limits,
                       TurnMode mode = TurnMode::serial) {  // no overload, no template
    return add<M>(name,
                  [name, limits, mode](ClassBuilder<T>& builder) { builder.template batched<M>(name, limits, mode); });
  }
  /// As batched, with limits that follow from the role's settings, and from who it uses: `limits(config, place)` with
  /// those of the replica, as `requirements` gets them. Limits out of range end the start of the worker:
  /// invalid_config.
  template <auto M, class F, class Role = T>  // Role: looked at where the method is named, not in each RoleBuilder
  requires std::is_invocable_r_v<BatchLimits, F, const typename Role::Config&, const app::RolePlace&> RoleBuilder&
  batched(std::string name, F limits, TurnMode mode = TurnMode::serial) {
    role_.methods.push_back({name, rpc::function_name<M>()});
    role_.registrations.push_back(
        [name, limits, mode](Registry& registry, const std::string& role, const actors::PlayedRole& played) {
          // At a worker that plays another role nothing calls the method: any limits do.
          BatchLimits chosen{.max_size = 1};
          if (played.type == role) {
            chosen = limits(std::any_cast<const typename T::Config&>(*played.config), played.place);
          }
          ClassBuilder<T>(registry, role).template batched<M>(name, chosen, mode);
        });
    return *this;
  }

 private:
  template <auto M, class F>
  RoleBuilder& add(const std::string& name, F describe) {
    role_.methods.push_back({name, rpc::function_name<M>()});
    role_.registrations.push_back([describe](Registry& registry, const std::string& role, const actors::PlayedRole&) {
      ClassBuilder<T> builder(registry, role);
      describe(builder);
    });
    return *this;
  }

  actors::RoleDefinition& role_;
};

/// The roles of a program, and its command line. Threads: one at a time.
class Program {
 public:
  /// @param name  of the command, for messages
  explicit Program(std::string name) : name_(std::move(name)) {}

  /// Registers the class T as role type `name`. T is made by T(RoleContext&, T::Config), or T(RoleContext&) if it has
  /// no Config; the keys of Config are declared by `static void settings(auto& s, Config& c)`. A T with `Result<void>
  /// run(std::stop_token)` drives. A T with `static std::vector<app::MissingRequirement> requirements(const Config&)`,
  /// or with a second parameter `const app::RolePlace&`, says what it misses on this machine.
  template <class T>
  RoleBuilder<T> role(std::string_view name) {
    return RoleBuilder<T>(catalog_.add(actors::make_role_definition<T>(name)));
  }

  /// Registers the class T, made by T(), as an environment: a role makes it by
  /// `context.environments().make("name")`, and files name it. `main` refuses a name that is taken.
  template <std::derived_from<rl::Environment> T>
  void environment(std::string name, rl::EnvironmentOptions options = {}) {
    catalog_.add_environment([&](rl::Environments& known) { return known.add<T>(std::move(name), options); });
  }
  /// Registers an environment that a function makes.
  void environment(std::string name, rl::MakeEnvironment make, rl::EnvironmentOptions options = {}) {
    catalog_.add_environment(
        [&](rl::Environments& known) { return known.add(std::move(name), std::move(make), options); });
  }

  /// Registers further functions and classes: `add` is called once for each worker of this process, with its registry.
  void provide(std::function<void(Registry&)> add) { catalog_.add(std::move(add)); }

  /// Adds a command of the program's own beside `run`, `check` and the others.
  /// @param usage  how it is written, its name first: "new NAME [--from PROGRAM]"
  /// @param run    gets all arguments of `main` when the first one is that name; returns the exit code. `help NAME`
  /// calls
  ///               it as `NAME --help` would
  void command(std::string usage, std::function<int(int argc, char** argv)> run) {
    commands_.push_back({std::move(usage), std::move(run)});
  }

  const std::string& name() const noexcept { return name_; }
  const actors::RoleCatalog& catalog() const noexcept { return catalog_; }

  /// Runs the command line: `run FILE`, `check FILE`, `plan FILE`, `help [TOPIC]`, with key=value overrides,
  /// `sweep FILE KEY=VALUES ...`, and the commands that were added.
  /// Returns the exit code: 0 success, 1 the application failed, 2 bad file or command line, 130 interrupted.
  /// Threads: the main thread, before any other was started. Blocks signals while an application runs.
  int main(int argc, char** argv);

 private:
  struct Command {
    std::string usage;
    std::function<int(int, char**)> run;
  };

  std::string name_;
  actors::RoleCatalog catalog_;
  std::vector<Command> commands_;
};

}  // namespace caftan

/// `Program`: a command line for applications described by files. A user's main registers its role classes and calls
/// `main`:
///     caftan::Program program("counting");
///     program.role<Counter>("counter").method<&Counter::add>("add");
///     program.role<Driver>("driver").uses<Counter>("counters").at_least(1);
///     return program.main(argc, argv);
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "caftan/actors/role_catalog.hpp"

namespace caftan {

/// Goes on describing a role class. Methods are registered as in `ClassBuilder`; `at_least` and its like belong to the
/// use before them, `brief` to the method before it.
template <class T>
class RoleBuilder {
 public:
  explicit RoleBuilder(actors::RoleDefinition& role) : role_(role) {}

  /// One sentence for `help`.
  RoleBuilder& doc(std::string text) { return role_.doc = std::move(text), *this; }

  /// Declares that this role calls another one, of class X: `[roles.NAME.uses] name = "a role"`. Without more, exactly
  /// one replica of it. X may be registered later.
  template <class X>
  RoleBuilder& uses(std::string_view name) {
    role_.uses.push_back({std::string(name), rpc::type_key<X>(), 1, 1});
    return *this;
  }
  RoleBuilder& exactly(int replicas) { return bounds(replicas, replicas); }
  RoleBuilder& at_least(int replicas) { return bounds(replicas, app::RoleUse::kAnyNumber); }
  /// With `least` = 0 the file may leave the use out.
  RoleBuilder& at_most(int replicas, int least = 1) { return bounds(least, replicas); }
  RoleBuilder& any_number() { return bounds(0, app::RoleUse::kAnyNumber); }

  /// A method that runs alone on its object, and gives the turn back while it waits.
  template <auto M>
  RoleBuilder& method(std::string name) {
    return add([name](ClassBuilder<T>& builder) { builder.template method<M>(name); });
  }
  /// A method that keeps its turn while it waits. A call that comes back meanwhile answers would_deadlock.
  template <auto M>
  RoleBuilder& exclusive(std::string name) {
    return add([name](ClassBuilder<T>& builder) { builder.template exclusive<M>(name); });
  }
  /// A method that may overlap with other concurrent methods of the same object.
  template <auto M>
  RoleBuilder& concurrent(std::string name) {
    return add([name](ClassBuilder<T>& builder) { builder.template concurrent<M>(name); });
  }
  /// The method before is short and never blocks: it may run in place on the thread that serves the protocol.
  RoleBuilder& brief() {
    if (!has_method_) role_.misplaced = "brief() belongs behind a method";
    role_.registrations.back().brief = has_method_;
    return *this;
  }

 private:
  template <class F>
  RoleBuilder& add(F describe) {
    role_.registrations.push_back({[describe](Registry& registry, const std::string& role, bool brief) {
                                     ClassBuilder<T> builder(registry, role);
                                     describe(builder);
                                     if (brief) builder.brief();
                                   },
                                   false});
    has_method_ = true;
    return *this;
  }
  RoleBuilder& bounds(int min, int max) {
    if (role_.uses.empty()) {
      role_.misplaced = "a number of replicas belongs behind uses<...>(...)";
      return *this;
    }
    role_.uses.back().min = min;
    role_.uses.back().max = max;
    return *this;
  }

  actors::RoleDefinition& role_;
  bool has_method_ = false;
};

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

  /// Registers further functions and classes: `add` is called once for each worker of this process, with its registry.
  void provide(std::function<void(Registry&)> add) { catalog_.add(std::move(add)); }

  const std::string& name() const noexcept { return name_; }
  const actors::RoleCatalog& catalog() const noexcept { return catalog_; }

  /// Runs the command line: `run FILE`, `check FILE`, `plan FILE`, `help [TOPIC]`, with key=value overrides.
  /// Returns the exit code: 0 success, 1 the application failed, 2 bad file or command line, 130 interrupted.
  /// Threads: the main thread, before any other was started. Blocks signals while an application runs.
  int main(int argc, char** argv);

 private:
  std::string name_;
  actors::RoleCatalog catalog_;
};

}  // namespace caftan

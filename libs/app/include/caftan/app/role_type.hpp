/// Role types: what a program's classes look like to an application file. A `RoleTypes` is filled once by the program
/// (`Program::role`) and then only read; `check`, `plan` and `help` need nothing else.
#pragma once

#include <any>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/base/settings.hpp"

namespace caftan::app {

/// Other roles that a role type calls: `[roles.NAME.uses] name = "a role"`, or a list of roles.
struct RoleUse {
  /// As `max`: no upper limit.
  static constexpr int kAnyNumber = std::numeric_limits<int>::max();
  std::string name{};
  std::string role_type{};
  int min = 1;  ///< replicas; 0 = the use may be left out
  int max = 1;  ///< replicas
};

/// Something that a role needs and does not find, for example a data package on this machine, or a point in which the
/// role would not follow its config.
struct MissingRequirement {
  /// How serious it is.
  enum class Kind {
    here,   ///< this machine lacks something: a warning of `check`, an error of `run`
    file,   ///< the file is wrong on every machine: an error
    doubt,  ///< what the file asks for is possible, but hardly intended: a warning
    note,   ///< nothing is missing, a value of the config is not the one used: a comment in the resolved file
  };
  /// The config keys that ask for what is missing ("corpus.path"), the likeliest first. If the file has none of them,
  /// the finding concerns the role as a whole.
  std::vector<std::string> keys{};
  std::string text{};  ///< what is missing and how to get it
  Kind kind = Kind::here;
};

/// Where in the application a config stands whose requirements are asked for.
struct RolePlace {
  std::string role{};           ///< its name
  std::uint64_t root_seed = 0;  ///< run.seed
  bool deterministic = false;   ///< run.deterministic
  /// The config of each replica that the role uses, by the name of the use. The pointers are valid during the call.
  std::map<std::string, std::vector<const std::any*>> uses{};
};

/// A kind of role that files can name, as its program has registered it.
struct RoleType {
  std::string name{};  ///< "cartpole.agent"
  std::string doc{};
  SettingsDeclaration config{};  ///< of [roles.NAME.config]
  std::vector<RoleUse> uses{};
  bool drives = false;     ///< has run(): the application ends when all of these have returned
  bool own_cores = false;  ///< computes nearly all of the time, on cores that the run divides (`run.own_cores`)
  /// Returns what the role lacks. Called with the role's config, or with a replica's own one, after all roles were
  /// read, if the config has no errors.
  std::function<std::vector<MissingRequirement>(const std::any& config, const RolePlace& place)> requirements{};
};

/// The role types of a program, by name. Threads: one at a time.
class RoleTypes {
 public:
  /// Errors: bad_arguments (a name that is taken or is not made of letters, digits, `_ . -`; two uses of one name; a
  ///         default outside its own range; an enum without one_of).
  Result<void> add(RoleType type);
  /// Returns the type of that name, or null. The pointer is valid until the next add.
  const RoleType* find(std::string_view name) const;
  RoleType* find(std::string_view name);
  /// Returns all role types in the order in which they were added.
  const std::vector<RoleType>& all() const noexcept { return types_; }
  /// Returns their names, sorted.
  std::vector<std::string> names() const;
  /// Reads and checks a TorchScript file. The text of an error says what is wrong with the file.
  /// @param is_module  of [roles.NAME.modules], not of [roles.NAME.scripts]
  using ScriptCheck = std::function<Result<void>(const std::filesystem::path& file, bool is_module)>;
  /// Sets how files of scripts are checked, which this library, without libtorch, cannot do.
  void set_script_check(ScriptCheck check) { script_check_ = std::move(check); }
  /// Sets what returns the names of all functions, constructors and methods that the program registers, sorted.
  void set_functions(std::function<std::vector<std::string>()> names) { functions_ = std::move(names); }
  /// Returns what was set; empty = names of functions are not looked at.
  const std::function<std::vector<std::string>()>& functions() const noexcept { return functions_; }
  /// Returns what was set; empty = files of scripts are not looked at.
  const ScriptCheck& script_check() const noexcept { return script_check_; }

 private:
  std::vector<RoleType> types_;
  ScriptCheck script_check_;
  std::function<std::vector<std::string>()> functions_;
};

/// Returns what `Role::Config` declares: by `Role::settings(s, config)` or by `Config::settings(s, config)`; no keys if
/// there is no `Config`.
template <class Role>
SettingsDeclaration role_settings() {
  if constexpr (requires { typename Role::Config; }) {
    using Config = typename Role::Config;
    if constexpr (requires(SettingsBuilder & s, Config & c) { Role::settings(s, c); }) {
      return SettingsDeclaration::of<Config, Role>();
    } else {
      static_assert(HasSettings<Config>,
                    "a role with a Config needs `static void settings(auto& s, Config& c)`, in the "
                    "role or in the Config");
      return SettingsDeclaration::of<Config>();
    }
  } else {
    return {};
  }
}

/// Returns what `caftan help TYPE` prints: the type, its config with defaults and its uses as a piece of a file.
std::string help_role_type(const RoleType& type);
/// Returns what `caftan help` lists: one line per type.
std::string list_role_types(const RoleTypes& types);

}  // namespace caftan::app

/// `Permissions`: what the peers of one worker may do there. A run from a file makes them of `[permissions]` and of
/// what roles use; a Worker without any lets every member do everything. Rules: docs/protocols/permissions.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace caftan {

/// What a rule allows, and the name of the rule for errors: "[permissions.observer] functions (cartpole.toml:31)".
template <class T>
struct PermissionRule {
  T allowed{};
  std::string name{};
};

/// What one peer may do at a worker. A rule that is not set leaves the default in place.
struct PeerPermissions {
  /// The default: whether the peer may call all functions here, find the role of this worker, and run operators.
  /// Without that it may call functions that the registry marks open. Methods, also of the role, it may call on each
  /// object of which it holds a reference.
  PermissionRule<bool> uses{};
  /// The functions, constructors and methods that the peer may call, by their registered names, or by the beginning of
  /// several and a `*`. Methods of the role are allowed by `role`, too.
  std::optional<PermissionRule<std::vector<std::string>>> functions{};
  /// Whether the peer may find the role of this worker and call its methods.
  std::optional<PermissionRule<bool>> role{};
  /// Whether the peer may have operators of ATen run here.
  std::optional<PermissionRule<bool>> operators{};
  /// Whether the peer may refer to objects here: make them, get references to them, and fetch them.
  std::optional<PermissionRule<bool>> references{};
};

/// What the members of a job may do at a worker, by their names. A worker may do everything at itself.
struct Permissions {
  std::map<std::string, PeerPermissions, std::less<>> peers{};
  PeerPermissions others{};  ///< of members that are not in `peers`
};

}  // namespace caftan

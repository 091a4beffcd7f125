/// `PermissionTable`: what each member of the job may do at this worker, worked out once from the rules and the
/// registry, so that a call costs one look. Rules PM-1 to PM-10: docs/protocols/permissions.md.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/base/permissions.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::rpc {

/// Threads: any, all methods.
class PermissionTable {
 public:
  struct Setup {
    WorkerId self;
    std::vector<std::string> members;  ///< names by id
    /// What the rules are about, of the registry of this worker. Other entries belong to Caftan's own services, which
    /// act on what the caller has a reference to already (PM-6).
    std::vector<const FunctionEntry*> entries;
    std::function<void(const std::string& line)> log;
  };
  PermissionTable(const Permissions& rules, const Registry& registry, Setup setup);

  /// Errors of all checks: not_permitted, naming the caller, what it asked for, and the rule. The first refusal of each
  /// kind is logged (PM-8).

  /// @param refers  the call makes an object to which the caller gets a reference
  Result<void> check_call(const Peer& caller, const FunctionEntry& entry, bool refers) const;
  Result<void> check_operator(const Peer& caller, bool refers) const;
  /// Whether the peer may refer to objects of this worker.
  Result<void> check_reference(const Peer& peer) const;
  /// Returns the error of a call by one that holds no reference to its object, and logs it.
  Error refuse_without_reference(const Peer& caller, const Error& error) const;

 private:
  /// What peers of the same rules may not do, and by which rule; an empty name of a rule allows.
  struct Group {
    std::unordered_map<const FunctionEntry*, std::string> refused;
    std::string operators;
    std::string references;
  };
  static Group make_group(const PeerPermissions& rules, const Registry& registry,
                          const std::vector<const FunctionEntry*>& entries);
  /// Returns null for this worker itself.
  const Group* group_of(const Peer& peer) const noexcept { return group_of_[peer.id().value]; }
  Error refuse(const Peer& caller, const std::string& what, const std::string& rule) const;

  std::vector<Group> groups_;
  std::vector<const Group*> group_of_;  // by id
  const std::function<void(const std::string&)> log_;
  mutable base::Mutex mutex_;
  mutable std::set<std::string> logged_ CAFTAN_GUARDED_BY(mutex_);
};

/// Checks rules that were made by hand: that each names members, and functions of the registry.
/// Errors: invalid_config, with the nearest name.
Result<void> check_permissions(const Permissions& rules, const std::vector<std::string>& members,
                               const Registry& registry);

}  // namespace caftan::rpc

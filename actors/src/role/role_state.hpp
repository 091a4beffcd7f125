/// The data of a RoleContext, which the role's actor and host share.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/base/internal/log.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rl/environments.hpp"
#include "caftan/rpc/rref_handle.hpp"
#include "role/run_reporter.hpp"

namespace caftan::actors {

/// What a role knows of its place in the run; never changes.
struct RoleFacts {
  std::string worker{};
  std::string role{};
  int replica = 0;
  int replicas = 1;
  std::uint64_t root_seed = 0;
  bool deterministic = false;
  std::filesystem::path output_directory{};
  std::map<std::string, std::vector<std::string>, std::less<>> uses{};  ///< key -> names of workers
  std::set<std::string, std::less<>> may_be_lost{};  ///< keys of uses all of whose workers may be lost (RN-15)
};

struct RoleState {
  RoleFacts facts{};
  std::weak_ptr<rpc::Caller> caller{};
  std::shared_ptr<RunReporter> reporter{};
  Log log{};
  std::shared_ptr<const rl::Environments> environments = std::make_shared<rl::Environments>();
  std::stop_source stop{};
  std::vector<std::string> drivers_elsewhere{};  ///< names of the driving workers of other launchers

  base::Mutex mutex{};
  std::shared_ptr<rpc::RRefHandle> self CAFTAN_GUARDED_BY(mutex) = nullptr;  ///< null once the worker leaves
};

}  // namespace caftan::actors

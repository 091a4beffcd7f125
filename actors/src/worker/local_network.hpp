/// The inside of a `LocalNetwork`: the workers of one process, by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/base/mutex.hpp"
#include "worker/joiner.hpp"

namespace caftan {

struct LocalNetwork::State {
  struct Neighbour {
    std::shared_ptr<actors::Joiner> joiner;
    std::uint64_t connection;  ///< the number of the session with this neighbour
  };
  /// Enters a worker and returns those that entered before and have not ended. Threads: any.
  /// Errors: invalid_config (there is a worker of this name).
  Result<std::vector<Neighbour>> enter(const std::string& name, const std::shared_ptr<actors::Joiner>& joiner,
                                       const std::vector<WorkerAddress>& members);

  Connect connect;  // constant

 private:
  base::Mutex mutex_;
  std::map<std::string, std::weak_ptr<actors::Joiner>> members_ CAFTAN_GUARDED_BY(mutex_);
  std::uint64_t next_connection_ CAFTAN_GUARDED_BY(mutex_) = 1;
};

}  // namespace caftan

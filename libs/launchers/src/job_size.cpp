#include "job_size.hpp"

#include <algorithm>

namespace caftan::launchers {

std::int64_t cores_of_a_host(const app::Application& application, const app::Plan& plan) {
  std::int64_t most = 1;
  for (const app::HostSpec& host : application.hosts) {
    std::int64_t threads = 0;
    for (const app::PlannedWorker& worker : plan.workers)
      threads += worker.host == host.name ? worker.torch_threads : 0;
    most = std::max(most, threads);
  }
  return most;
}

base::Duration longest_run(const app::RunSettings& run) {
  return *run.wall + 2 * run.start_timeout +
         run.stop_timeout;  // run.wall begins with the start; constructors have their own time
}

}  // namespace caftan::launchers

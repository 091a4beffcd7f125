#include "role/spin_of_run.hpp"

#include <algorithm>

namespace caftan::actors {

SpinOfRun spin_of_run(const app::Application& application, const app::Plan& plan, std::string_view host,
                      const transport::Cores& cores) {
  const bool has_rings = application.run.placement == app::Placement::processes &&
                         std::string_view(app::channel_on_host(application.cluster.channel).name) == "shm";
  const auto choice = app::spin_choice(application.cluster.spin);
  if (!has_rings || !choice) return {};
  if (choice->off) return {.options = {}, .text = "off"};
  const auto workers = std::ranges::count(plan.workers, host, &app::PlannedWorker::host);
  auto budget = transport::spin_budget(cores, static_cast<std::size_t>(workers), choice->longest);
  if (!budget.why_not.empty()) return {.options = {}, .text = "off (" + budget.why_not + ")"};
  return {.options = budget.options, .text = application.cluster.spin};
}

}  // namespace caftan::actors

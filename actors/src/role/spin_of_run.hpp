/// What `cluster.spin` does on this machine. Rule: docs/protocols/spin.md, SP-5.
#pragma once

#include <string>
#include <string_view>

#include "caftan/app/internal/plan.hpp"
#include "caftan/transport/internal/spin_budget.hpp"

namespace caftan::actors {

struct SpinOfRun {
  transport::SpinOptions options;
  std::string text;  ///< "auto", "20us", "off (3 workers share 2 cores)"; empty: no channel of the run has rings
};

/// @param host  the workers' host, as the plan names it
SpinOfRun spin_of_run(const app::Application& application, const app::Plan& plan, std::string_view host,
                      const transport::Cores& cores = transport::read_cores());

}  // namespace caftan::actors

#include "worker/services.hpp"

#include "collectives/collective_service.hpp"
#include "modules/module_service.hpp"
#include "optim/optimizer_service.hpp"
#include "sim/simulation_service.hpp"

namespace caftan::actors {

std::vector<std::unique_ptr<Service>> make_services() {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<OptimizerService>());
  services.push_back(std::make_unique<ModuleService>());
  services.push_back(std::make_unique<CollectiveService>());
  services.push_back(std::make_unique<SimulationService>());
  return services;
}

}  // namespace caftan::actors

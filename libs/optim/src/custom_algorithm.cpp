#include "caftan/optim/custom_algorithm.hpp"

#include <utility>

#include "caftan/rpc/registry.hpp"

namespace caftan::optim {
namespace {

/// Prefix of the names of algorithms among the extensions of a registry.
constexpr std::string_view kPrefix = "caftan.algorithm.";

std::string list_algorithms(const Registry& registry) {
  std::string list;
  for (const std::string_view name : registry.extensions()) {
    if (!name.starts_with(kPrefix)) continue;
    list += (list.empty() ? "" : ", ") + std::string(name.substr(kPrefix.size()));
  }
  return list.empty() ? "none" : list;
}

}  // namespace

void add_algorithm(Registry& registry, std::string_view name, std::shared_ptr<const CustomAlgorithm> code) {
  registry.extend(std::string(kPrefix) + std::string(name), std::move(code));
}

Result<void> resolve(Algorithm& algorithm, const Registry& registry) {
  Custom* const custom = std::get_if<Custom>(&algorithm);
  if (!custom) return {};
  custom->code =
      std::dynamic_pointer_cast<const CustomAlgorithm>(registry.extension(std::string(kPrefix) + custom->name));
  if (custom->code) return {};
  return Error(Errc::bad_arguments, "the algorithm " + custom->name +
                                        " is not registered here (registered: " + list_algorithms(registry) +
                                        "): call optim::add_algorithm at each owner of parameters");
}

}  // namespace caftan::optim

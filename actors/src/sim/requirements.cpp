#include <utility>

#include "caftan/actors/simulation.hpp"
#include "caftan/sim/internal/grant_rule.hpp"
#include "caftan/sim/internal/kernel.hpp"
#include "caftan/sim/internal/layout.hpp"

namespace caftan::sim {

std::vector<app::MissingRequirement> model_requirements(const std::function<void(Builder&)>& build,
                                                        std::size_t partitions) {
  using Missing = app::MissingRequirement;
  const auto laid_out = lay_out(build, static_cast<std::uint32_t>(partitions));
  if (!laid_out) return {{.keys = {}, .text = laid_out.error().text(), .kind = Missing::Kind::file}};
  const Layout& layout = **laid_out;
  std::vector<Missing> missing;
  for (const std::string& warning : layout.warnings()) {
    const bool is_of_placement = partitions > layout.groups() && &warning == &layout.warnings().back();
    missing.push_back({.keys = is_of_placement ? std::vector<std::string>{"partitions"} : std::vector<std::string>(),
                       .text = warning,
                       .kind = Missing::Kind::doubt});
  }
  return missing;
}

std::vector<app::MissingRequirement> clock_requirements(const ClockConfig& config, std::size_t partitions) {
  using Missing = app::MissingRequirement;
  const auto rule = GrantRule::make({.end_time = config.end_time,
                                     .checkpoint_every = config.checkpoint.every,
                                     .warmup = config.warmup,
                                     .pause_at = {},
                                     .real_time = config.real_time},
                                    static_cast<std::uint32_t>(partitions));
  if (rule) return {};
  const std::string& text = rule.error().text();
  return {{.keys = {text.substr(0, text.find(' '))}, .text = text, .kind = Missing::Kind::file}};
}

}  // namespace caftan::sim

#include <algorithm>
#include <utility>

#include "caftan/actors/simulation.hpp"
#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/sim/internal/grant_rule.hpp"
#include "caftan/sim/internal/kernel.hpp"
#include "caftan/sim/internal/layout.hpp"
#include "sim/simulation_checkpoint.hpp"

namespace caftan::sim {

namespace {

/// Returns the key that the text of an error begins with: "base_step" of "base_step = 1e-12: it is...".
std::string first_word(const std::string& text) { return text.substr(0, text.find_first_of(" ,:")); }

}  // namespace

std::vector<app::MissingRequirement> model_requirements(const std::function<void(Builder&)>& build,
                                                        std::size_t partitions, Time end) {
  using Missing = app::MissingRequirement;
  const auto laid_out = lay_out(build, static_cast<std::uint32_t>(partitions));
  if (!laid_out) {
    const std::string& text = laid_out.error().text();
    return {{.keys = {first_word(text)}, .text = text, .kind = Missing::Kind::file}};
  }
  const Layout& layout = **laid_out;
  std::vector<Missing> missing;
  for (const std::string& warning : layout.warnings()) {
    const bool is_of_placement = partitions > layout.groups() && &warning == &layout.warnings().back();
    missing.push_back({.keys = is_of_placement ? std::vector<std::string>{"partitions"} : std::vector<std::string>(),
                       .text = warning,
                       .kind = Missing::Kind::doubt});
  }
  for (const Layout::Plan& plan : layout.plans()) {
    if (plan.at < end) continue;
    missing.push_back({.keys = {"end_time"},
                       .text = plan.what + " at " + to_string(plan.at) + ", but the run ends at " + to_string(end),
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
  return {{.keys = {first_word(text)}, .text = text, .kind = Missing::Kind::file}};
}

std::vector<app::MissingRequirement> resume_requirements(const ClockConfig& config, std::uint64_t seed,
                                                         const std::string& model,
                                                         const std::function<void(Builder&)>& build) {
  using Missing = app::MissingRequirement;
  if (!config.resume) return {};
  const auto found = actors::find_simulation_checkpoint(*config.resume);
  if (!found) return {{.keys = {"resume"}, .text = found.error().text()}};
  const actors::SimulationManifest& manifest = found->manifest;
  const auto differs = [&](const std::string& what) {
    return std::vector<Missing>{
        {.keys = {"resume"}, .text = found->folder.string() + ": the checkpoint " + what, .kind = Missing::Kind::file}};
  };
  const Result<Time> end = time_of(config.end_time);
  if (end && *end <= manifest.border)
    return differs("is at virtual time " + to_string(manifest.border) + ", and end_time is " + to_string(*end) +
                   ": there is nothing left to do; raise end_time");
  if (manifest.seed != seed)
    return differs("is of a run with another seed: run.seed = " + std::to_string(manifest.seed) + ", not " +
                   std::to_string(seed));
  const auto keys = actors::keys_of(model);
  for (const std::string& key : config.changed) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    return {{.keys = {"changed"},
             .text = "`changed` lists '" + key + "', which is no key of the model's config" + did_you_mean(key, keys),
             .kind = Missing::Kind::file}};
  }
  if (const std::string other = actors::config_difference(model, manifest.config, config.changed); !other.empty())
    return differs("is of a run with another config: " + other + "; take over its value, or list the key in `changed`");
  if (const Result<Time> warmup = time_of(config.warmup)) {
    if (const std::string why = actors::warmup_difference(manifest, *warmup); !why.empty()) return differs(why);
  }
  if (const auto whole = actors::check_files(*found); !whole) {
    return {{.keys = {"resume"}, .text = whole.error().text(), .kind = Missing::Kind::file}};
  }
  if (!build) return {};
  const auto laid_out = lay_out(build, 1);
  if (laid_out && (*laid_out)->digest() != manifest.digest)
    return differs("is of another model: its processes, events, groups or lookahead differ");
  return {};
}

}  // namespace caftan::sim

#include "pipeline/cuts.hpp"

#include <algorithm>

#include "models/mlp.hpp"
#include "models/resnet.hpp"

namespace caftan::pipeline {
namespace {

/// Returns the cuts that a model has: its units but the first, and "layer3" for "layer3.0".
std::string possible_cuts(const std::vector<std::string>& units) {
  std::string list;
  for (std::size_t i = 1; i < units.size(); ++i) {
    std::string name = units[i];
    if (name.ends_with(".0")) name.resize(name.size() - 2);
    list += (list.empty() ? "" : ", ") + name;
  }
  return list;
}

}  // namespace

std::vector<std::string> unit_names(const MasterConfig& config) {
  if (config.model == ModelName::mlp) return models::Mlp::unit_names(config.mlp.hidden.size() + 1);
  return models::ResNet::unit_names(config.model == ModelName::resnet18 ? models::ResNetDepth::eighteen
                                                                        : models::ResNetDepth::fifty);
}

Result<std::vector<models::UnitRange>> cut_model(const MasterConfig& config) {
  const std::vector<std::string> units = unit_names(config);
  const std::string possible = name_of(config.model) + " can be cut before: " + possible_cuts(units);
  if (config.cuts.empty()) return Error(Errc::invalid_config, "cuts is empty, a pipeline has two stages; " + possible);
  std::vector<models::UnitRange> ranges;
  std::size_t first = 0;
  for (const std::string& cut : config.cuts) {
    auto found = std::ranges::find(units, cut);
    if (found == units.end()) found = std::ranges::find(units, cut + ".0");
    if (found == units.end()) {
      return Error(Errc::invalid_config, "cuts: there is no layer \"" + cut + "\"; " + possible);
    }
    const auto end = static_cast<std::size_t>(found - units.begin());
    if (end <= first) {
      return Error(Errc::invalid_config, "cuts: nothing is left for the stage before \"" + cut +
                                             "\"; cuts stand in the order of the layers; " + possible);
    }
    ranges.push_back({first, end});
    first = end;
  }
  ranges.push_back({first, units.size()});
  return ranges;
}

std::string range_name(const std::vector<std::string>& units, const models::UnitRange& range) {
  const std::string& first = units[range.first];
  return range.end - range.first == 1 ? first : first + ".." + units[range.end - 1];
}

}  // namespace caftan::pipeline

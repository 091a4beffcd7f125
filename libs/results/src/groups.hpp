#pragma once

#include <span>
#include <string>
#include <vector>

#include "caftan/results/internal/run_curves.hpp"

namespace caftan::results {

/// Runs that are drawn as one line.
struct Group {
  std::string label{};  ///< for the legend
  std::vector<const RunCurves*> runs{};
};

/// Returns the groups in the order of their first runs. Runs whose settings are equal and whose seeds are all different
/// are one group; any other run is a group of its own.
///
/// The settings that are not the same in all groups name a group, "lr=0.1 (3 seeds)"; a group of one run has the run's
/// folder instead of the seeds, where no two runs have folders of one name. Where no setting or more than four differ,
/// run.name or the folder names a group. Groups that would have one label also get the folder of their first run.
/// @param runs  must outlive the groups
std::vector<Group> groups_of(std::span<const RunCurves> runs);

}  // namespace caftan::results

/// Slurm's lists of nodes: "gpu[01-03,7],login" is gpu01, gpu02, gpu03, gpu7, login.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::launchers {

/// The most nodes that a list may name: a list is short text that may describe very many.
inline constexpr std::size_t kMostNodes = 65536;

/// Returns the nodes in the order of the list. A name may have several brackets, "r[1-2]n[1-4]": the last one counts
/// fastest. Leading zeros are kept. Errors: invalid_config (no such list, or more than kMostNodes).
Result<std::vector<std::string>> expand_node_list(std::string_view list);

}  // namespace caftan::launchers

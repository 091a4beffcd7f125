/// Which owner gets what of a saved DistributedOptimizer: the state of a parameter follows it to the owner that has it
/// now.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "saved_state.hpp"

namespace caftan::optim {

/// The parameters of one owner, as a user has listed them.
struct Placed {
  std::string worker;
  std::vector<std::uint32_t> groups;      ///< those that have parameters here
  std::vector<std::uint64_t> parameters;  ///< their numbers in the user's list, in the owner's order
  std::vector<std::string> names;         ///< of the parameters, or empty
};

/// Returns ", which are 2 3 of the list": which parameters an owner means by its own numbers.
std::string numbers_of(std::span<const std::uint64_t> parameters);

/// Returns the part of each owner here: the one that it has saved where its parameters are the same, else one that is
/// put together from the parts of all owners that had its parameters.
///
/// Parameters are the same by their names where the saved optimizer and all owners here have some, else by their
/// numbers. Errors: bad_arguments (of another model, or placed otherwise by a build that did not save which parameters
/// an owner had;
///   the text names the first difference), malformed_payload (a part that is damaged or does not fit its manifest).
Result<std::vector<wire::Bytes>> place_parts(const SavedState& saved, std::span<const Placed> here);

}  // namespace caftan::optim

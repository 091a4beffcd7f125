#include "placement.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "state_parts.hpp"

namespace caftan::optim {
namespace {

Error another_placement(const std::string& difference) {
  return Error(Errc::bad_arguments, "the saved optimizer is of another model or placement: " + difference);
}

/// Identifies a parameter: by its name, or by its number.
using Key = std::string;

Key key_of(std::uint64_t number, const std::vector<std::string>& names, std::size_t at) {
  return names.empty() ? "parameter " + std::to_string(number) : names[at];
}

bool same_placement(const SavedOwner& saved, const Placed& here) {
  return saved.worker == here.worker && saved.groups == here.groups && saved.parameters == here.parameters &&
         saved.names == here.names;
}

/// What one parameter had.
struct Found {
  StateParts::Piece piece;
  std::uint32_t group;  // of the user's list
};

/// The parts of all owners, by parameter.
class Pieces {
 public:
  /// @param by_name  whether parameters have the same names here
  static Result<Pieces> read(const SavedState& saved, bool by_name) {
    Pieces pieces;
    for (const SavedOwner& owner : saved.owners) {
      if (Result<void> added = pieces.add(owner, by_name); !added) {
        return Error(added.error().code(), added.error().text() + " (the part of " + owner.worker + ")");
      }
    }
    return pieces;
  }

  const std::map<Key, Found>& all() const noexcept { return pieces_; }
  std::size_t size() const noexcept { return pieces_.size(); }

  /// Returns the part of an owner. Errors: bad_arguments (another model).
  Result<wire::Bytes> part_for(const Placed& here, bool by_name) const {
    StateParts parts;
    parts.version = version_;
    for (const std::uint32_t group : here.groups) {
      const auto algorithm = algorithms_.find(group);
      if (algorithm == algorithms_.end()) return another_placement("it has no group " + std::to_string(group));
      parts.algorithms.push_back(algorithm->second);
      if (const auto initial = initial_lrs_.find(group); initial != initial_lrs_.end()) {
        parts.initial_lrs.push_back(initial->second);
      }
    }
    for (std::size_t i = 0; i < here.parameters.size(); ++i) {
      const Key key = key_of(here.parameters[i], by_name ? here.names : std::vector<std::string>(), i);
      const auto found = pieces_.find(key);
      if (found == pieces_.end())
        return another_placement("it has no state of " + key + ", which is at " + here.worker);
      const auto group = std::find(here.groups.begin(), here.groups.end(), found->second.group);
      if (group == here.groups.end()) return another_placement(key + " is in another group");
      StateParts::Piece piece = found->second.piece;
      piece.entry.group = static_cast<std::uint32_t>(group - here.groups.begin());
      parts.pieces.push_back(std::move(piece));
    }
    return put_together(parts);
  }

 private:
  Result<void> add(const SavedOwner& owner, bool by_name) {
    auto parts = take_apart(owner.state);
    if (!parts) return parts.error();
    if (parts->algorithms.size() != owner.groups.size() || parts->pieces.size() != owner.parameters.size() ||
        (by_name && owner.names.size() != owner.parameters.size())) {
      return Error(Errc::malformed_payload, "the saved optimizer has a part that does not fit its manifest");
    }
    if (parts->version == StateVersion::lbfgs)
      return another_placement("the memory of LBFGS is that of all parameters in their order");
    version_ = std::max(version_, parts->version);
    for (std::size_t i = 0; i < owner.groups.size(); ++i) {
      algorithms_.emplace(owner.groups[i], parts->algorithms[i]);
      if (!parts->initial_lrs.empty()) initial_lrs_.emplace(owner.groups[i], parts->initial_lrs[i]);
    }
    for (std::size_t i = 0; i < parts->pieces.size(); ++i) {
      const Key key = key_of(owner.parameters[i], by_name ? owner.names : std::vector<std::string>(), i);
      const std::uint32_t group = owner.groups[parts->pieces[i].entry.group];
      if (pieces_.emplace(key, Found{std::move(parts->pieces[i]), group}).second) continue;
      return Error(Errc::malformed_payload, "the saved optimizer has " + key + " twice");
    }
    return {};
  }

  std::map<Key, Found> pieces_;
  std::map<std::uint32_t, Algorithm> algorithms_;
  std::map<std::uint32_t, double> initial_lrs_;
  StateVersion version_ = StateVersion::first;
};

/// Returns the part of the only owner, whatever its worker was called; the memory of LBFGS stays whole so.
std::optional<wire::Bytes> whole_part(const SavedState& saved, std::span<const Placed> here) {
  if (saved.owners.size() != 1 || here.size() != 1) return std::nullopt;
  const SavedOwner& owner = saved.owners[0];
  const bool named = !owner.names.empty() && !here[0].names.empty();
  const bool same = named ? owner.names == here[0].names : owner.parameters == here[0].parameters;
  return same && owner.groups == here[0].groups ? std::optional(owner.state) : std::nullopt;
}

/// Finds a parameter that is saved and not here.
Result<void> check_all_used(const Pieces& pieces, std::span<const Placed> here, bool by_name) {
  std::size_t count = 0;
  for (const Placed& owner : here) count += owner.parameters.size();
  if (count == pieces.size()) return {};
  if (!by_name) {
    return another_placement(std::to_string(pieces.size()) + " parameters, here are " + std::to_string(count));
  }
  for (const auto& piece : pieces.all()) {
    const std::string& key = piece.first;
    const bool used = std::any_of(here.begin(), here.end(), [&key](const Placed& owner) {
      return std::find(owner.names.begin(), owner.names.end(), key) != owner.names.end();
    });
    if (!used) return another_placement("it has a state of " + key + ", which is not here");
  }
  return {};
}

/// Compares a state of a build that did not save which parameters an owner had.
Result<void> check_same_owners(const SavedState& saved, std::span<const Placed> here) {
  if (saved.owners.size() != here.size()) {
    return another_placement(std::to_string(saved.owners.size()) + " owners, here are " + std::to_string(here.size()));
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (saved.owners[i].worker == here[i].worker && saved.owners[i].groups == here[i].groups) continue;
    return another_placement(
        "owner " + std::to_string(i) + " was " + saved.owners[i].worker + ", here it is " + here[i].worker +
        ", or it has parameters of other groups; an older build has saved it: load it where it was "
        "saved, save it again, and that state fits other owners");
  }
  return {};
}

std::vector<wire::Bytes> parts_of(const SavedState& saved) {
  std::vector<wire::Bytes> parts;
  for (const SavedOwner& owner : saved.owners) parts.push_back(owner.state);
  return parts;
}

}  // namespace

std::string numbers_of(std::span<const std::uint64_t> parameters) {
  std::string text = ", which are";
  for (const std::uint64_t number : parameters) text += " " + std::to_string(number);
  return text + " of the list";
}

Result<std::vector<wire::Bytes>> place_parts(const SavedState& saved, std::span<const Placed> here) {
  if (!saved.has_parameters()) {
    if (Result<void> same = check_same_owners(saved, here); !same) return same.error();
    return parts_of(saved);
  }
  if (std::equal(saved.owners.begin(), saved.owners.end(), here.begin(), here.end(), same_placement)) {
    return parts_of(saved);
  }
  if (auto whole = whole_part(saved, here)) return std::vector<wire::Bytes>{*std::move(whole)};
  const auto has_names = [](const auto& owner) { return !owner.names.empty(); };
  const bool by_name = std::all_of(saved.owners.begin(), saved.owners.end(), has_names) &&
                       std::all_of(here.begin(), here.end(), has_names);
  const auto pieces = Pieces::read(saved, by_name);
  if (!pieces) return pieces.error();
  if (Result<void> used = check_all_used(*pieces, here, by_name); !used) return used.error();
  std::vector<wire::Bytes> parts;
  for (const Placed& owner : here) {
    auto part = pieces->part_for(owner, by_name);
    if (!part) return part.error();
    parts.push_back(*std::move(part));
  }
  return parts;
}

}  // namespace caftan::optim

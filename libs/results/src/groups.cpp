#include "groups.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "caftan/base/internal/joined.hpp"

namespace caftan::results {
namespace {

constexpr std::size_t kMostKeys = 4;  ///< that a label names
/// Settings that say how a run is started, placed and ended: a label names them only where the others do not
/// distinguish the groups.
constexpr std::array<std::string_view, 3> kOfTheStart{"run.placement", "run.start_timeout", "run.stop_timeout"};

bool have_different_seeds(const std::vector<const RunCurves*>& runs) {
  std::set<std::int64_t> seeds;
  for (const RunCurves* const run : runs) seeds.insert(run->seed);
  return seeds.size() == runs.size();
}

std::vector<Group> unnamed_groups(std::span<const RunCurves> runs) {
  std::map<std::string, std::vector<const RunCurves*>> alike;
  for (const RunCurves& run : runs) alike[run.settings].push_back(&run);
  std::vector<Group> groups;
  for (const RunCurves& run : runs) {
    const auto& others = alike[run.settings];
    if (!have_different_seeds(others)) {
      groups.push_back({.runs = {&run}});
    } else if (others.front() == &run) {
      groups.push_back({.runs = others});
    }
  }
  return groups;
}

/// Returns the value of a key as the runs of the group have it; nothing if they have no such key.
std::optional<std::string> value_of(const Group& group, const std::string& key) {
  const auto& values = group.runs.front()->values;
  const auto found = values.find(key);
  if (found == values.end()) return std::nullopt;
  return found->second;
}

/// Returns whether no two groups have the same values of these keys.
bool distinguish(const std::vector<Group>& groups, const std::set<std::string>& keys) {
  std::set<std::vector<std::optional<std::string>>> found;
  for (const Group& group : groups) {
    std::vector<std::optional<std::string>> values;
    for (const std::string& key : keys) values.push_back(value_of(group, key));
    found.insert(std::move(values));
  }
  return found.size() == groups.size();
}

/// Returns the keys whose values are not the same in all groups; those of the start only if the others do not
/// distinguish the groups.
std::set<std::string> differing_keys(const std::vector<Group>& groups) {
  std::set<std::string> keys;
  for (const Group& group : groups) {
    for (const auto& [key, value] : group.runs.front()->values) keys.insert(key);
  }
  std::erase_if(keys, [&](const std::string& key) {
    const auto first = value_of(groups.front(), key);
    return std::ranges::all_of(groups, [&](const Group& group) { return value_of(group, key) == first; });
  });
  std::set<std::string> others = keys;
  for (const std::string_view key : kOfTheStart) others.erase(std::string(key));
  return distinguish(groups, others) ? others : keys;
}

/// Returns "optimizer.lr" of "roles.trainer.config.optimizer.lr", other keys as they are.
std::string without_role(const std::string& key) {
  constexpr std::string_view kConfig = ".config.";
  const std::size_t at = key.starts_with("roles.") ? key.find(kConfig) : std::string::npos;
  return at == std::string::npos ? key : key.substr(at + kConfig.size());
}

/// Returns a value of a file for people: a string without its quotes.
std::string plain(const std::string& value) {
  const bool is_quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  const std::string inner = is_quoted ? value.substr(1, value.size() - 2) : value;
  return inner.find_first_of("\"\\") == std::string::npos ? inner : value;
}

/// Returns "optimizer.lr=0.1 decay=1.0" for each group; without such texts if the keys do not name the groups.
std::vector<std::string> setting_texts(const std::vector<Group>& groups) {
  const std::set<std::string> keys = differing_keys(groups);
  std::vector<std::string> texts(groups.size());
  if (keys.size() > kMostKeys) return texts;
  std::map<std::string, int> times;
  for (const std::string& key : keys) ++times[without_role(key)];
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::string> words;
    for (const std::string& key : keys) {
      const std::string brief = without_role(key);
      const std::string& name = times[brief] == 1 ? brief : key;
      const auto value = value_of(groups[i], key);
      words.push_back(value ? name + "=" + plain(*value) : "no " + name);
    }
    texts[i] = base::joined(words, " ");
  }
  return texts;
}

bool have_different_folders(std::span<const RunCurves> runs) {
  std::set<std::string> folders;
  for (const RunCurves& run : runs) folders.insert(run.folder);
  return folders.size() == runs.size();
}

/// Names the groups; those that would have one label also after the folder of their first run.
/// @param settings       of each group; empty = they do not name it
/// @param with_parents   the folders of several runs have one name, as those of a sweep
void name_groups(std::vector<Group>& groups, const std::vector<std::string>& settings, bool with_parents) {
  const auto folder_of = [with_parents](const RunCurves& run) {
    return with_parents ? run.parent + "/" + run.folder : run.folder;
  };
  std::map<std::string, int> times;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t count = groups[i].runs.size();
    const RunCurves& first = *groups[i].runs.front();
    const std::string seeds = std::to_string(count) + " seeds";
    std::string& label = groups[i].label;
    if (settings[i].empty()) {
      label = count > 1 ? first.name + ", " + seeds : folder_of(first);
    } else if (count > 1) {
      label = settings[i] + " (" + seeds + ")";
    } else {
      label = settings[i] + (with_parents ? "" : " (" + first.folder + ")");
    }
    ++times[label];
  }
  for (Group& group : groups) {
    const bool is_band = group.runs.size() > 1;
    if (times[group.label] > 1) group.label += " (" + folder_of(*group.runs.front()) + (is_band ? " ...)" : ")");
  }
}

}  // namespace

std::vector<Group> groups_of(std::span<const RunCurves> runs) {
  std::vector<Group> groups = unnamed_groups(runs);
  name_groups(groups, setting_texts(groups), !have_different_folders(runs));
  return groups;
}

}  // namespace caftan::results

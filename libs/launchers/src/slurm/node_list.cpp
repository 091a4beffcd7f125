#include "caftan/launchers/internal/node_list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "caftan/base/settings_io.hpp"

namespace caftan::launchers {
namespace {

using Names = std::vector<std::string>;

Error no_list(std::string_view list, const std::string& why) {
  return {Errc::invalid_config, "\"" + printable(std::string(list)) + "\" is no list of nodes: " + why};
}

std::optional<std::size_t> number_in(std::string_view text) {
  constexpr std::size_t kMostDigits = 20;  // zeros in front included
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > kMostDigits) return std::nullopt;
  return value;
}

/// Returns where the item that begins at `at` ends: at the next comma outside of brackets.
std::size_t end_of_item(std::string_view list, std::size_t at) {
  bool inside = false;
  for (; at < list.size() && (inside || list[at] != ','); ++at) {
    if (list[at] == '[') inside = true;
    if (list[at] == ']') inside = false;
  }
  return at;
}

/// Returns what stands for "01-03,7": 01, 02, 03, 7. Numbers of a range are as wide as its first one.
Result<Names> numbers_of(std::string_view list, std::string_view ranges) {
  Names numbers;
  for (std::size_t at = 0; at <= ranges.size();) {
    const std::size_t comma = std::min(ranges.find(',', at), ranges.size());
    const std::string_view range = ranges.substr(at, comma - at);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view from = range.substr(0, dash);
    const auto first = number_in(from);
    const auto last = dash == range.size() ? first : number_in(range.substr(dash + 1));
    if (!first || !last || *last < *first)
      return no_list(list, "'" + printable(std::string(range)) + "' is no range of numbers");
    if (*last - *first >= kMostNodes - numbers.size()) return no_list(list, "it names more than 65536 nodes");
    for (std::size_t i = 0; i <= *last - *first; ++i) {
      const std::string digits = std::to_string(*first + i);
      numbers.push_back(std::string(from.size() - std::min(from.size(), digits.size()), '0') + digits);
    }
    at = comma + 1;
  }
  return numbers;
}

/// Returns the nodes of one item, "r[1-2]n[1-4]".
Result<Names> expand_item(std::string_view list, std::string_view item) {
  Names names{""};
  while (!item.empty()) {
    const std::size_t open = std::min(item.find('['), item.size());
    const std::string_view text = item.substr(0, open);
    if (text.find(']') != std::string_view::npos) return no_list(list, "a ] without its [");
    Names numbers{""};
    std::size_t close = open;
    if (open < item.size()) {
      close = item.find(']', open);
      if (close == std::string_view::npos) return no_list(list, "a [ without its ]");
      auto found = numbers_of(list, item.substr(open + 1, close - open - 1));
      if (!found) return found;
      numbers = *std::move(found);
      ++close;
    }
    if (names.size() * numbers.size() > kMostNodes) return no_list(list, "it names more than 65536 nodes");
    Names longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + std::string(text) + number);
    }
    names = std::move(longer);
    item.remove_prefix(close);
  }
  return names;
}

}  // namespace

Result<Names> expand_node_list(std::string_view list) {
  Names nodes;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = end_of_item(list, at);
    const std::string_view item = list.substr(at, end - at);
    if (item.empty()) return no_list(list, list.empty() ? "it is empty" : "a node has no name");
    const auto found = expand_item(list, item);
    if (!found) return found;
    if (nodes.size() + found->size() > kMostNodes) return no_list(list, "it names more than 65536 nodes");
    nodes.insert(nodes.end(), found->begin(), found->end());
    at = end + 1;
  }
  return nodes;
}

}  // namespace caftan::launchers

#include "caftan/base/settings_diagnostics.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "caftan/base/settings_io.hpp"

namespace caftan {
namespace {

std::tuple<int, int, int, int> order(const SettingsPlace& place) {
  return {place.override_index >= 0 ? 1 : 0, place.override_index, place.line, place.column};
}

std::string_view line_of(std::string_view source, int line) {
  for (int at = 1; at < line; ++at) {
    const std::size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  source = source.substr(0, source.find('\n'));
  if (source.ends_with('\r')) source.remove_suffix(1);
  return source;
}

constexpr bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// A beginning with fewer characters is one of too many names.
constexpr std::size_t kLeastBeginning = 4;
constexpr std::size_t kNeverNear = std::numeric_limits<std::size_t>::max();

/// Optimal string alignment distance, or kNeverNear once it is sure to be above `limit`.
std::size_t distance(std::string_view a, std::string_view b, std::size_t limit) {
  if ((a.size() > b.size() ? a.size() - b.size() : b.size() - a.size()) > limit) return kNeverNear;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    if (std::ranges::min(row) > limit) return kNeverNear;
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()] <= limit ? last[b.size()] : kNeverNear;
}

}  // namespace

void Diagnostics::error(const SettingsPlace& place, std::string text, std::string hint) {
  ++errors_;
  add({Severity::error, place, std::move(text), std::move(hint)});
}

void Diagnostics::warning(const SettingsPlace& place, std::string text, std::string hint) {
  add({Severity::warning, place, std::move(text), std::move(hint)});
}

void Diagnostics::add(Entry entry) {
  const auto at = std::upper_bound(entries_.begin(), entries_.end(), entry,
                                   [](const Entry& a, const Entry& b) { return order(a.place) < order(b.place); });
  entries_.insert(at, std::move(entry));
}

std::string Diagnostics::headline(const Entry& entry) const {
  const SettingsPlace& place = entry.place;
  const std::string severity = entry.severity == Severity::error ? "error: " : "warning: ";
  if (place.override_index >= 0) {
    const auto index = static_cast<std::size_t>(place.override_index);
    const std::string assignment = index < overrides_.size() ? overrides_[index] + ": " : "";
    return printable("command line: " + severity + assignment + entry.text);
  }
  std::string where = file_ + ":";
  if (place.line > 0) where += std::to_string(place.line) + ":" + std::to_string(place.column) + ":";
  return printable(where + " " + severity + entry.text);
}

std::string Diagnostics::snippet(const Entry& entry) const {
  if (entry.place.line <= 0) return "";
  const std::string_view line = line_of(source_, entry.place.line);
  if (line.empty()) return "";
  std::string number = std::to_string(entry.place.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  std::string indent;
  int column = 1;
  for (std::size_t i = 0; i < line.size() && column < entry.place.column; ++i) {
    if (i + 1 == line.size() || starts_character(line[i + 1])) ++column, indent += line[i] == '\t' ? '\t' : ' ';
  }
  std::string shown(line);
  for (char& c : shown) {
    if (c != '\t') c = printable({&c, 1})[0];
  }
  std::string result = number + " | " + shown + "\n" + std::string(number.size(), ' ') + " | " + indent +
                       std::string(static_cast<std::size_t>(std::max(1, entry.place.length)), '^');
  if (!entry.hint.empty()) result += " " + printable(entry.hint);
  return result + "\n";
}

std::string Diagnostics::render(bool snippets) const {
  std::string result;
  std::array<std::size_t, 2> shown{};
  for (const Entry& entry : entries_) {
    if (++shown[entry.severity == Severity::error ? 0 : 1] > kShown) continue;
    result += headline(entry) + "\n";
    if (snippets) result += snippet(entry);
  }
  if (errors_ == 0) return result;
  result += "error: " + std::to_string(errors_) + (errors_ == 1 ? " error" : " errors");
  if (errors_ > kShown) result += ", " + std::to_string(errors_ - kShown) + " not shown";
  const bool of_file = std::ranges::any_of(
      entries_, [](const Entry& entry) { return entry.severity == Severity::error && entry.place.override_index < 0; });
  return result + "; " + (of_file ? printable(file_) : "the command line") + " is not valid\n";
}

Error Diagnostics::to_error() const {
  const auto first = std::ranges::find(entries_, Severity::error, &Entry::severity);
  std::string text = first == entries_.end() ? file_ + " is not valid" : headline(*first);
  if (errors_ > 1) text += " (and " + std::to_string(errors_ - 1) + " more)";
  return {Errc::invalid_config, std::move(text)};
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::size_t limit = std::min<std::size_t>(3, name.size() / 3);
  if (limit == 0) return "";
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t found = distance(name, candidate, limit);
    if (found == kNeverNear || (!best.empty() && found >= limit)) continue;
    best = candidate;
    limit = found;
    if (limit == 0) break;
  }
  if (!best.empty() || name.size() < kLeastBeginning) return best;
  const auto longer = std::ranges::find_if(candidates, [&](const std::string& one) { return one.starts_with(name); });
  return longer == candidates.end() ? "" : *longer;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string found = nearest(name, candidates);
  return found.empty() ? "" : "; did you mean '" + found + "'?";
}

}  // namespace caftan

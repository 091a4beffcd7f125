#include "settings_nesting.hpp"

#include <algorithm>
#include <vector>

namespace caftan {
namespace {

/// Returns the index behind the string that starts at `at`, or the end of the text if it is not closed.
std::size_t skip_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string_view triple = quote == '"' ? std::string_view("\"\"\"") : std::string_view("'''");
  const bool long_form = text.substr(at).starts_with(triple);
  at += long_form ? 3 : 1;
  while (at < text.size()) {
    if (quote == '"' && text[at] == '\\') {
      at += 2;
    } else if (long_form && text.substr(at).starts_with(triple)) {
      return at + 3;
    } else if (!long_form && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    } else {
      ++at;
    }
  }
  return text.size();
}

SettingsPlace place_of(std::string_view text, std::size_t at) {
  SettingsPlace place{.line = 1, .column = 1};
  for (const char c : text.substr(0, at)) {
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

}  // namespace

std::optional<TooDeep> find_too_deep(std::string_view text) {
  int parts = 1;          // of the key being read
  int key = 1;            // parts of the key before the last '='
  std::vector<int> open;  // levels that each open bracket added
  int levels = 0;         // their sum
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = skip_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++parts > kMaxKeyParts) {
      return TooDeep{place_of(text, at), "a key has more than " + std::to_string(kMaxKeyParts) + " parts"};
    }
    if (c == '=') key = parts;
    if (c == '[' || c == '{') {
      open.push_back(key);
      levels += key;
      key = 1;
    }
    if ((c == ']' || c == '}') && !open.empty()) {
      levels -= open.back();
      open.pop_back();
    }
    if (levels > kMaxLevels) {
      return TooDeep{place_of(text, at), "nested deeper than " + std::to_string(kMaxLevels) + " levels"};
    }
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) parts = 1;
    ++at;
  }
  return std::nullopt;
}

}  // namespace caftan

#include "caftan/svg/internal/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace caftan::svg {
namespace {

/// Returns how many bytes the character at the front has that both UTF-8 and XML allow; 0 if there is none.
std::size_t character_at(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  char32_t code = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80U) return 0;
    code = (code << 6) | (byte & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool is_control = code < 0xa0 || code == 0xfffe || code == 0xffff;
  return code < kLeast[size] || code > 0x10ffff || is_surrogate || is_control ? 0 : size;
}

}  // namespace

std::string shown(std::string_view text, std::size_t most) {
  std::vector<std::string_view> characters;
  while (!text.empty()) {
    const std::size_t size = character_at(text);
    characters.push_back(size == 0 ? std::string_view("?") : text.substr(0, size));
    text.remove_prefix(std::max<std::size_t>(1, size));
  }
  const bool is_long = characters.size() > most;
  if (is_long) characters.resize(most > 3 ? most - 3 : 0);
  std::string result;
  for (const std::string_view character : characters) result += character;
  return is_long ? result + "..." : result;
}

std::size_t length_of(std::string_view shown_text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(shown_text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string px(double value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, 2).ptr;
  std::string text(buffer.data(), end);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace caftan::svg

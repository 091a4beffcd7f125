/// Text and numbers of an SVG file: any bytes become characters that XML allows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caftan::svg {

/// Returns the text with at most `most` characters; the last three are dots if the text was longer. Control characters
/// and bytes that are no UTF-8 become '?'.
std::string shown(std::string_view text, std::size_t most);
/// Returns how many characters a text has that `shown` returned.
std::size_t length_of(std::string_view shown_text);
/// Returns the text with XML's own characters escaped.
std::string escaped(std::string_view text);
/// Returns a coordinate with at most two decimals.
std::string px(double value);

}  // namespace caftan::svg

/// UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caftan::corpus {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  ///< bytes, 1..4; 0 = the bytes there are not UTF-8
};

/// Returns the code point that starts at byte `at`, which is within `text`. Overlong forms, surrogates and numbers
/// above 10FFFF are not UTF-8. Source: The Unicode Standard, table 3-7.
CodePoint next_code_point(std::string_view text, std::size_t at) noexcept;

/// Appends a code point's bytes.
void append_code_point(std::string& text, char32_t value);

}  // namespace caftan::corpus

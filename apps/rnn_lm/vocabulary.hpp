/// Characters and their numbers. A character is a Unicode code point: the model never has to learn to spell UTF-8.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace caftan::rnn_lm {

/// A value; numbers are positions in the sorted list of characters, so equal texts give equal numbers.
class Vocabulary {
 public:
  /// @param text  UTF-8 (precondition)
  explicit Vocabulary(std::string_view text);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }

  /// Returns the numbers of a text's characters, [N], int64. Precondition: UTF-8 made of characters of this vocabulary.
  at::Tensor encode(std::string_view text) const;

  /// Returns the UTF-8 of numbers below size().
  std::string decode(std::span<const std::int64_t> numbers) const;

  /// Returns all characters in their order, as UTF-8.
  std::string characters() const;

 private:
  std::vector<char32_t> characters_;
  std::unordered_map<char32_t, std::int64_t> numbers_;
};

}  // namespace caftan::rnn_lm

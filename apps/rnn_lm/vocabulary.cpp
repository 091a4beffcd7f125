#include "vocabulary.hpp"

#include <ATen/ops/empty.h>

#include <set>

#include "utf8.hpp"

namespace caftan::rnn_lm {
namespace {

template <class Visit>
void for_each_code_point(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = next_code_point(text, at);
    visit(next.value);
    at += next.size;
  }
}

}  // namespace

CodePoint next_code_point(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xC2 && first <= 0xDF   ? 2
                           : (first & 0xF0) == 0xE0         ? 3
                           : first >= 0xF0 && first <= 0xF4 ? 4
                                                            : 0;
  if (size == 0) return {};
  char32_t value = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, size};
}

void append_code_point(std::string& text, char32_t value) {
  const auto continuation = [&](int shift) { text += static_cast<char>(0x80 | ((value >> shift) & 0x3F)); };
  if (value < 0x80) {
    text += static_cast<char>(value);
  } else if (value < 0x800) {
    text += static_cast<char>(0xC0 | (value >> 6));
    continuation(0);
  } else if (value < 0x10000) {
    text += static_cast<char>(0xE0 | (value >> 12));
    continuation(6);
    continuation(0);
  } else {
    text += static_cast<char>(0xF0 | (value >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

Vocabulary::Vocabulary(std::string_view text) {
  std::set<char32_t> found;
  for_each_code_point(text, [&](char32_t value) { found.insert(value); });
  characters_.assign(found.begin(), found.end());
  for (std::size_t i = 0; i < characters_.size(); ++i) numbers_.emplace(characters_[i], static_cast<std::int64_t>(i));
}

at::Tensor Vocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> numbers;
  numbers.reserve(text.size());
  for_each_code_point(text, [&](char32_t value) { numbers.push_back(numbers_.at(value)); });
  at::Tensor encoded = at::empty({static_cast<std::int64_t>(numbers.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(numbers.begin(), numbers.end(), encoded.mutable_data_ptr<std::int64_t>());
  return encoded;
}

std::string Vocabulary::decode(std::span<const std::int64_t> numbers) const {
  std::string text;
  for (const std::int64_t number : numbers) append_code_point(text, characters_[static_cast<std::size_t>(number)]);
  return text;
}

std::string Vocabulary::characters() const {
  std::string text;
  for (const char32_t value : characters_) append_code_point(text, value);
  return text;
}

}  // namespace caftan::rnn_lm

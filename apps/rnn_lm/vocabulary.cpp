#include "vocabulary.hpp"

#include <ATen/ops/empty.h>

#include <set>

#include "corpus/utf8.hpp"

namespace caftan::rnn_lm {
namespace {

template <class Visit>
void for_each_code_point(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const corpus::CodePoint next = corpus::next_code_point(text, at);
    visit(next.value);
    at += next.size;
  }
}

}  // namespace

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
  for (const std::int64_t number : numbers)
    corpus::append_code_point(text, characters_[static_cast<std::size_t>(number)]);
  return text;
}

std::string Vocabulary::characters() const {
  std::string text;
  for (const char32_t value : characters_) corpus::append_code_point(text, value);
  return text;
}

}  // namespace caftan::rnn_lm

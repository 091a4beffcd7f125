#include <array>

#include "caftan/base/keyed_random.hpp"
#include "corpus/corpus.hpp"

namespace caftan::corpus {
namespace {

constexpr int kTexts = 6;
constexpr int kWords = 2000;            // of a text
constexpr std::uint32_t kCommon = 120;  // words that all texts have
constexpr std::uint32_t kOwn = 40;      // words of one text
constexpr float kOwnShare = 0.35F;
constexpr int kWordsInLine = 12;

/// Returns a word of two or three syllables; words of different numbers differ.
std::string word_of(std::uint32_t number) {
  constexpr std::array<const char*, 16> kSyllables{"ba", "de", "fi", "go", "hu", "ka", "le", "mi",
                                                   "no", "pu", "ra", "se", "ti", "vo", "wu", "za"};
  std::string word;
  for (std::uint32_t left = number + 16; left > 0; left /= 16) word += kSyllables[left % 16];
  return word;
}

}  // namespace

Corpus make_sample() {
  Corpus sample{.source = "six texts made by the program", .texts = {}, .names = {}};
  for (int text = 0; text < kTexts; ++text) {
    std::string words;
    for (int i = 0; i < kWords; ++i) {
      const auto bits =
          base::random_block({.seed = 1, .context = static_cast<std::uint64_t>(text)}, static_cast<std::uint64_t>(i));
      const bool is_own = base::uniform_of(bits[0]) < kOwnShare;
      const std::uint32_t number =
          is_own ? kCommon + kOwn * static_cast<std::uint32_t>(text) + bits[1] % kOwn : bits[1] % kCommon;
      words += word_of(number) + (i % kWordsInLine == kWordsInLine - 1 ? ".\n" : " ");
    }
    sample.texts.push_back(std::move(words));
    sample.names.push_back("sample-" + std::to_string(text));
  }
  return sample;
}

}  // namespace caftan::corpus

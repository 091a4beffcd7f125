/// Texts cut into passages, whose words are numbers and whose class is the text that they are from: nine of ten to
/// learn from, the tenth to measure with. Start with `read_passages`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"
#include "corpus/corpus.hpp"
#include "hybrid_ddp/config.hpp"

namespace caftan::hybrid_ddp {

struct Passage {
  std::vector<std::int64_t> words;  ///< numbers of the vocabulary
  std::int64_t label = 0;
};

struct Passages {
  std::string source{};                ///< as corpus::Corpus::source
  std::uint32_t checksum = 0;          ///< CRC-32C of all texts
  std::int64_t vocabulary = 0;         ///< different words
  std::vector<std::string> classes{};  ///< their names
  std::vector<Passage> train{};
  std::vector<Passage> test{};
};

/// Passages as torch's embedding_bag takes them.
struct Bags {
  at::Tensor words;    ///< [number of words], int64
  at::Tensor offsets;  ///< [B], int64: where each passage begins
  at::Tensor labels;   ///< [B], int64
};

/// Returns the words of a text: runs of ASCII letters, in lower case.
std::vector<std::string> words_of(std::string_view text);

/// Returns the books of the King James Bible as the package's command prints them, a verse in a line ("Ge1:1 In the"),
/// with their names.
corpus::Corpus split_books(const corpus::Corpus& bible);

/// Returns the newest version of each licence ("GPL-3" of GPL-1 to GPL-3): the versions share whole paragraphs, and a
/// passage that two texts have is from neither.
corpus::Corpus newest_versions(const corpus::Corpus& licences);

/// Cuts the texts into passages of `words` words, `per_class` of each text at most. A rest that is shorter is left out.
/// Errors: invalid_config (fewer than two texts have ten passages, naming the source).
Result<Passages> make_passages(const corpus::Corpus& corpus, std::int64_t words, std::int64_t per_class);

/// Reads the texts and cuts them. Errors: those of corpus::read_corpus and make_passages. Threads: blocks.
Result<Passages> read_passages(const TrainerConfig& config);

/// Returns the share of the largest class among the passages to measure with.
double majority_share(const Passages& passages);

/// Which passages a step of a trainer learns from.
struct Draw {
  std::uint64_t seed = 0;
  std::uint32_t trainer = 0;
  std::uint32_t trainers = 1;
  std::int64_t step = 0;
  std::int64_t batch = 1;
};

/// Draws from the trainer's own part of the passages, every trainers-th, as a function of the draw alone.
/// Precondition: that part is not empty.
Bags draw_bags(const Passages& passages, const Draw& draw);

/// Returns passages begin..end-1 of a list.
Bags bags_of(const std::vector<Passage>& passages, std::size_t begin, std::size_t end);

}  // namespace caftan::hybrid_ddp

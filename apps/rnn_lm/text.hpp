/// A corpus made ready for training: characters as numbers, nine tenths to learn from, a tenth to validate with. The
/// tenth is the end of every file: the end of all files together would be one licence that was never seen.
#pragma once

#include <cstdint>
#include <string>

#include "caftan/base/result.hpp"
#include "config.hpp"
#include "corpus/corpus.hpp"
#include "vocabulary.hpp"
#include "windows.hpp"

namespace caftan::rnn_lm {

struct Text {
  std::string source;                           ///< as corpus::Corpus::source
  std::uint32_t checksum = 0;                   ///< CRC-32C of the whole text
  std::int64_t train_size = 0, valid_size = 0;  ///< characters
  Vocabulary vocabulary;                        ///< of the whole text
  Windows train;
  Windows valid;  ///< windows of as many rows as the validation tenth has room for, at most the batch
};

/// Returns all files of a corpus as one text.
std::string whole_text(const corpus::Corpus& corpus);
/// Returns the CRC-32C of a whole text.
std::uint32_t checksum_of(const std::string& whole) noexcept;

/// Returns whether `read_text` would find room for a window of the batch, without making tensors.
/// Errors: invalid_config (too short, naming the source).
Result<void> check_room(const TrainerConfig& config, const corpus::Corpus& corpus);

/// Errors: those of `corpus::read_corpus`; invalid_config (too short for one window of the batch, and some text to
/// validate). Threads: blocks.
Result<Text> read_text(const TrainerConfig& config);

}  // namespace caftan::rnn_lm

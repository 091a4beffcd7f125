/// A corpus made ready for training: characters as numbers, nine tenths to learn from, a tenth to validate with. The
/// tenth is the end of every file: the end of all files together would be one licence that was never seen.
#pragma once

#include <cstdint>
#include <string>

#include "caftan/base/result.hpp"
#include "config.hpp"
#include "vocabulary.hpp"
#include "windows.hpp"

namespace caftan::rnn_lm {

struct Text {
  std::string source;                           ///< as Corpus::source
  std::uint32_t checksum = 0;                   ///< CRC-32C of the whole text
  std::int64_t train_size = 0, valid_size = 0;  ///< characters
  Vocabulary vocabulary;                        ///< of the whole text
  Windows train;
  Windows valid;  ///< of as many rows as the tenth has room for, at most the batch
};

/// Errors: those of `read_corpus`; invalid_config (too short for one window of the batch, and some text to validate).
/// Threads: blocks.
Result<Text> read_text(const TrainerConfig& config);

}  // namespace caftan::rnn_lm

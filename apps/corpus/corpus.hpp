/// A text to learn from: the files of a folder, one file, the King James Bible as Debian packages it, or a sample.
/// Start with `read_corpus`; `find_corpus` reports what is missing without reading.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"
#include "corpus/config.hpp"

namespace caftan::corpus {

struct Corpus {
  std::string source{};  ///< where the text comes from, for a line of the log: "14 files of /usr/share/common-licenses"
  std::vector<std::string> texts{};  ///< one per file, UTF-8, none empty
  std::vector<std::string> names{};  ///< of the texts: file names, "King James Bible"
};

/// Returns where the text will come from: files in their order (links resolved, each once), or none for the Bible
/// and the sample.
/// Errors: io_error (a path or a package is missing; the text says how to get it).
Result<std::vector<std::filesystem::path>> find_corpus(const CorpusConfig& config);

/// Reads the text. Errors: io_error (a path or a package is missing, or a file is unreadable), invalid_config (an empty
/// file or no file), malformed_payload (not UTF-8, naming file and offset). Threads: blocks; for the Bible runs the
/// package's command.
Result<Corpus> read_corpus(const CorpusConfig& config);

/// Returns `sample`: six texts of 2,000 words, each of which has words of its own among common ones.
Corpus make_sample();

/// Returns the offset of the first byte that is not UTF-8 (overlong forms, surrogates and numbers above 10FFFF are
/// not), or the size of the text.
std::size_t first_invalid_utf8(std::string_view text) noexcept;

}  // namespace caftan::corpus

/// The file with the secret that the workers of several hosts share.
#pragma once

#include <filesystem>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// Returns the secret, 16 to 4096 bytes, without the blanks and line ends behind it. Errors: io_error (the file cannot
/// be read), invalid_config (empty, too short or too long; callers put the file's name before the text). Threads: any.
/// Blocks, for ever where `file` is a pipe: check before whether it is a regular file.
Result<std::string> read_secret_file(const std::filesystem::path& file);

}  // namespace caftan::app

/// The file with the secret that the workers of several hosts share.
#pragma once

#include <filesystem>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// Returns the secret, 16 to 4096 bytes, without the blanks and line ends behind it.
/// Errors: io_error (it cannot be read), invalid_config (empty, too short or too long; the text is for behind the
/// file's name). Threads: any. Blocks, on a pipe for ever: ask first whether it is a file.
Result<std::string> read_secret_file(const std::filesystem::path& file);

}  // namespace caftan::app

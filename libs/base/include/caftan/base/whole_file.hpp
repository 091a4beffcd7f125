/// `read_whole_file`: the bytes of a file as one string.
#pragma once

#include <filesystem>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::base {

/// Returns all bytes of the file. Errors: io_error (names the file and the system's reason), also for a folder.
/// Threads: any.
Result<std::string> read_whole_file(const std::filesystem::path& file);

}  // namespace caftan::base

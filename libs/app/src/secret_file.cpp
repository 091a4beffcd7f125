#include "caftan/app/secret_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace caftan::app {
namespace {
constexpr std::size_t kLongestSecret = 4096;
}

Result<std::string> read_secret_file(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(kLongestSecret, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || !stream.is_open()) {
    return Error(Errc::io_error, file.string() + ": " + std::strerror(errno));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  if (text.empty()) return Error(Errc::invalid_config, file.string() + " is empty: it has to hold the shared secret");
  return text;
}

}  // namespace caftan::app

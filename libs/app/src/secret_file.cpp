#include "caftan/app/secret_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace caftan::app {
namespace {
/// Not shorter, because the proofs in a handshake let a listener try out guesses of the secret (handshake.md).
constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kLongestSecret = 4096;
}  // namespace

Result<std::string> read_secret_file(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(2 * kLongestSecret, '\0');  // longer than a secret, because white space may follow the secret
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || !stream.is_open()) {
    return Error(Errc::io_error, file.string() + ": " + std::strerror(errno));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  if (text.empty()) return Error(Errc::invalid_config, "is empty");
  if (text.size() < kShortestSecret) {
    return Error(Errc::invalid_config, "holds a secret of " + std::to_string(text.size()) +
                                           (text.size() == 1 ? " byte" : " bytes") +
                                           ", which can be guessed: it needs 16");
  }
  if (text.size() > kLongestSecret) return Error(Errc::invalid_config, "holds more than a secret's 4096 bytes");
  return text;
}

}  // namespace caftan::app

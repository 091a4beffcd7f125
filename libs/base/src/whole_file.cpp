#include "caftan/base/whole_file.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <ios>

namespace caftan::base {

Result<std::string> read_whole_file(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::array<char, 16384> piece{};
  do {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  } while (stream);
  if (stream.bad() || !stream.is_open()) return Error(Errc::io_error, file.string() + ": " + std::strerror(errno));
  return text;
}

}  // namespace caftan::base

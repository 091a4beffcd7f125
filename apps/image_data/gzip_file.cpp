#include "image_data/gzip_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

namespace caftan::image_data {
namespace {

namespace fs = std::filesystem;

Error at_file(const fs::path& file, Errc code, const std::string& text) { return {code, file.string() + ": " + text}; }

Result<std::vector<std::uint8_t>> read_whole_file(const fs::path& file, std::size_t most) {
  std::error_code error;
  if (const fs::file_status status = fs::status(file, error); !fs::exists(status)) {
    return at_file(file, Errc::io_error, "there is no such file");
  } else if (!fs::is_regular_file(status)) {
    return at_file(file, Errc::io_error, "it is no file");
  }
  const auto size = fs::file_size(file, error);
  if (error) return at_file(file, Errc::io_error, error.message());
  if (size > most) return at_file(file, Errc::limit_exceeded, "it has more than " + std::to_string(most) + " bytes");
  std::vector<std::uint8_t> bytes(size);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return at_file(file, Errc::io_error, std::generic_category().message(errno));
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (stream.gcount() != static_cast<std::streamsize>(size)) return at_file(file, Errc::io_error, "cannot be read");
  return bytes;
}

/// Unpacks one gzip member, which must end where `packed` ends.
Result<std::vector<std::uint8_t>> unpack(const fs::path& file, std::vector<std::uint8_t>& packed, std::size_t most) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return Error(Errc::limit_exceeded, "no memory to unpack a file");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &inflateEnd);
  stream.next_in = packed.data();
  stream.avail_in = static_cast<uInt>(packed.size());
  std::vector<std::uint8_t> content;
  std::array<std::uint8_t, 1U << 16> piece{};
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t got = piece.size() - stream.avail_out;
    if (content.size() + got > most) {
      return at_file(file, Errc::limit_exceeded, "its content has more than " + std::to_string(most) + " bytes");
    }
    content.insert(content.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
  }
  if (state == Z_MEM_ERROR) return Error(Errc::limit_exceeded, "no memory to unpack a file");
  if (state == Z_BUF_ERROR) return at_file(file, Errc::malformed_payload, "it is cut off");
  if (state != Z_STREAM_END) {
    return at_file(file, Errc::malformed_payload,
                   std::string("it is damaged (") + (stream.msg ? stream.msg : zError(state)) + ")");
  }
  if (stream.avail_in > 0) return at_file(file, Errc::malformed_payload, "other bytes follow its end");
  return content;
}

}  // namespace

Result<std::vector<std::uint8_t>> read_gzip_file(const fs::path& file, std::size_t most) {
  auto bytes = read_whole_file(file, most);
  if (!bytes) return bytes;
  constexpr std::array<std::uint8_t, 2> kMagic{0x1f, 0x8b};
  if (bytes->size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), bytes->begin())) return bytes;
  return unpack(file, *bytes, most);
}

}  // namespace caftan::image_data

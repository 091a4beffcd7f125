#include "caftan/wire/checkpoint_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace caftan::wire {
namespace {

constexpr std::string_view kMagic = "CAFTANck";
constexpr std::size_t kHeaderSize = 24;

struct Header {
  std::uint32_t version = kCheckpointVersion;
  std::uint32_t checksum = 0;
  std::uint64_t size = 0;  ///< of the body

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& version& checksum& size;
  }
};

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = value;
  }
  return table;
}

Error malformed(std::string text) { return {Errc::malformed_payload, std::move(text)}; }

Error os_error(const std::string& what, const std::filesystem::path& path) {
  return {Errc::io_error, what + " " + path.string() + ": " + std::generic_category().message(errno)};
}

/// A file descriptor.
class File {
 public:
  File(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_all(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

/// Flushes the folder, because a rename is on the disk only when its folder is.
Result<void> flush_folder(const std::filesystem::path& folder) {
  const File file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (!file.is_open() || ::fsync(file.get()) != 0) return os_error("cannot flush", folder);
  return {};
}

Result<Bytes> read_whole(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return os_error("cannot read", path);
  if (!S_ISREG(status.st_mode)) return Error(Errc::io_error, "cannot read " + path.string() + ": it is no file");
  Bytes bytes(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t size = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return os_error("cannot read", path);
    if (size == 0) break;
    at += static_cast<std::size_t>(size);
  }
  bytes.resize(at);
  return bytes;
}

}  // namespace

std::uint32_t crc32c(ByteView bytes) noexcept {
  static constexpr std::array<std::uint32_t, 256> kTable = make_crc_table();
  std::uint32_t value = ~0U;
  for (const std::byte byte : bytes) {
    value = (value >> 8) ^ kTable[(value ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  }
  return ~value;
}

Result<ByteView> CheckpointFile::find(std::string_view name) const {
  for (const CheckpointRecord& record : records) {
    if (record.name == name) return ByteView(record.bytes);
  }
  return malformed("a checkpoint of " + kind + " without its record '" + std::string(name) + "'");
}

Result<Bytes> encode_checkpoint(const CheckpointFile& file) {
  auto body = encode(file);
  if (!body) return body.error();
  const Header header{.checksum = crc32c(*body), .size = body->size()};
  Bytes bytes;
  append(bytes, std::as_bytes(std::span(kMagic)));
  if (auto done = encode_into(bytes, header); !done) return done.error();
  append(bytes, *body);
  return bytes;
}

Result<CheckpointFile> decode_checkpoint(ByteView bytes, std::string_view kind) {
  const ByteView magic = std::as_bytes(std::span(kMagic));
  const ByteView start = bytes.first(std::min(magic.size(), bytes.size()));
  if (!std::equal(start.begin(), start.end(), magic.begin())) return malformed("it is no checkpoint of Caftan");
  if (bytes.size() < kHeaderSize) {
    return malformed("it was cut off after " + std::to_string(bytes.size()) + " bytes: use an earlier checkpoint");
  }
  const auto header = decode<Header>(bytes.subspan(magic.size(), kHeaderSize - magic.size()));
  if (!header) return header.error();
  if (header->version > kCheckpointVersion) {
    return Error(Errc::unsupported, "it has version " + std::to_string(header->version) +
                                        " of the format, this build reads up to " + std::to_string(kCheckpointVersion) +
                                        ": use the Caftan that wrote it, or a newer one");
  }
  const ByteView body = bytes.subspan(kHeaderSize);
  if (body.size() != header->size) {
    return malformed("its header announces " + std::to_string(header->size) + " bytes, " + std::to_string(body.size()) +
                     " are there: it was cut off or changed; use an earlier checkpoint");
  }
  if (crc32c(body) != header->checksum)
    return malformed("its checksum differs: it is damaged; use an earlier checkpoint");
  auto file = decode<CheckpointFile>(body);
  if (file && file->kind != kind) {
    return malformed("it is a checkpoint of '" + file->kind + "', not of '" + std::string(kind) + "'");
  }
  return file;
}

Result<void> write_checkpoint_file(const std::filesystem::path& path, const CheckpointFile& file) {
  const auto bytes = encode_checkpoint(file);
  if (!bytes) return bytes.error();
  const std::filesystem::path beside = path.string() + ".new";
  {
    const File out(beside, O_WRONLY | O_CREAT | O_TRUNC);
    if (!out.is_open()) return os_error("cannot write", beside);
    if (!write_all(out.get(), *bytes) || ::fsync(out.get()) != 0) {
      const Error error = os_error("cannot write", beside);
      ::unlink(beside.c_str());
      return error;
    }
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) return os_error("cannot write", path);
  return flush_folder(path.parent_path());
}

Result<CheckpointFile> read_checkpoint_file(const std::filesystem::path& path, std::string_view kind) {
  const auto bytes = read_whole(path);
  if (!bytes) return bytes.error();
  auto file = decode_checkpoint(*bytes, kind);
  if (!file) return Error(file.error().code(), path.string() + ": " + file.error().text());
  return file;
}

}  // namespace caftan::wire

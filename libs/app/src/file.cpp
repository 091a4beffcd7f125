#include "file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace caftan::app {

Result<File> File::create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) return Error(Errc::io_error, path.string() + ": " + std::strerror(errno));
  return File(descriptor, path.string());
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> File::write(std::string_view text) {
  const off_t before = size_;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const Error error(Errc::io_error, path_ + ": " + std::strerror(errno));
      // A half-written line is cut off again, because it would make the file unreadable.
      if (size_ != before && ::ftruncate(descriptor_, before) == 0) size_ = before;
      return error;
    }
    size_ += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> File::sync() {
  if (::fsync(descriptor_) == 0) return {};
  return Error(Errc::io_error, path_ + ": " + std::strerror(errno));
}

}  // namespace caftan::app

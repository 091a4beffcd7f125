#include "launch/socket_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace caftan::actors {
namespace {

constexpr std::string_view kName = "caftan-sockets-";

/// Opens a folder of this user and locks it if its launcher does not. Returns -1 if it is in use, or none of ours.
int lock_folder(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && ::fstat(fd, &status) == 0 && status.st_uid == ::geteuid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    return fd;
  }
  if (fd >= 0) ::close(fd);
  return -1;
}

/// Removes sockets and then the folder, nothing else. Returns whether it is gone.
bool remove_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(path, ignored), end; at != end; at.increment(ignored)) {
    if (at->symlink_status(ignored).type() == std::filesystem::file_type::socket) ::unlink(at->path().c_str());
  }
  return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

void remove_unused(const std::filesystem::path& base) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(base, ignored), end; at != end; at.increment(ignored)) {
    if (!at->path().filename().string().starts_with(kName)) continue;
    const int lock = lock_folder(at->path());
    if (lock < 0) continue;
    remove_folder(at->path());
    ::close(lock);
  }
}

}  // namespace

Result<SocketFolder> SocketFolder::make_in(const std::filesystem::path& base) {
  remove_unused(base);
  for (;;) {
    std::string path = (base / kName).string() + "XXXXXX";  // mkdtemp makes it 0700
    if (!::mkdtemp(path.data())) break;
    const int lock = lock_folder(path);
    struct stat status {};
    // Before the lock was taken, another start may have seen the folder as unused and removed it.
    if (lock >= 0 && ::fstat(lock, &status) == 0 && status.st_nlink > 0) return SocketFolder(path, lock);
    const int error = errno;
    if (lock >= 0) ::close(lock);
    ::rmdir(path.c_str());
    if (lock < 0 && error != EWOULDBLOCK && error != ENOENT) {
      errno = error;
      break;
    }
  }
  return Error(Errc::io_error, "no folder for sockets in " + base.string() + ": " + std::strerror(errno));
}

/// The path of a Unix socket has at most 107 bytes, so a long TMPDIR is of no use.
Result<SocketFolder> SocketFolder::make() {
  constexpr std::size_t kRoomForName = 40;
  constexpr std::size_t kLongestPath = 107;
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string base = runtime ? runtime : "";
  if (base.starts_with('/') && base.size() + kRoomForName <= kLongestPath) {
    if (auto made = make_in(base)) return made;
  }
  return make_in("/tmp");
}

bool SocketFolder::remove() {
  if (!path_.empty() && !remove_folder(path_)) return false;
  path_.clear();
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
  return true;
}

SocketFolder::~SocketFolder() {
  remove();
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace caftan::actors

/// The folder in which the workers of one launcher have their Unix sockets.
#pragma once

#include <filesystem>
#include <utility>

#include "caftan/base/result.hpp"

namespace caftan::actors {

/// A private folder with a short path. The launcher holds a lock on the folder, which the kernel releases when the
/// launcher ends in whatever way. So the next launcher finds the folders that are not in use any more, and removes them
/// (RN-10). Threads: one.
class SocketFolder {
 public:
  /// Makes a folder in XDG_RUNTIME_DIR or /tmp. Errors: io_error.
  static Result<SocketFolder> make();
  /// Makes a folder in `base`, after removing the folders of launchers that have ended there. Errors: io_error.
  static Result<SocketFolder> make_in(const std::filesystem::path& base);
  SocketFolder(SocketFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Removes the sockets in the folder, and then the folder. Returns whether the folder is gone: another file in it, or
  /// a worker that makes its socket at this moment, prevents that, and the next call tries again.
  bool remove();

 private:
  SocketFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;  // empty once it is gone
  int lock_;
};

}  // namespace caftan::actors

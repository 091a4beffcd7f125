/// The folder in which the workers of one launcher have their Unix sockets.
#pragma once

#include <filesystem>
#include <utility>

#include "caftan/base/result.hpp"

namespace caftan::actors {

/// A private folder with a short path. Its launcher holds a lock on it, which ends with the launcher whatever that dies
/// of, so the next start knows and removes the folders that nothing uses any more (RN-10). Threads: one.
class SocketFolder {
 public:
  /// Makes one in XDG_RUNTIME_DIR or /tmp. Errors: io_error.
  static Result<SocketFolder> make();
  /// Makes one in `base`, after removing those of launchers that have ended there. Errors: io_error.
  static Result<SocketFolder> make_in(const std::filesystem::path& base);
  SocketFolder(SocketFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Removes it with what is in it. Returns whether it is gone: a worker that makes its socket meanwhile prevents that,
  /// and the next call tries again.
  bool remove();

 private:
  SocketFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;  // empty once it is gone
  int lock_;
};

}  // namespace caftan::actors

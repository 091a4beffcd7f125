/// `FileLimit`: while an object of this class lives, no file of this process grows beyond a size, as on a full disk.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>

namespace caftan::test {

/// Writes beyond the size fail with EFBIG. Threads: one at a time; the limit is that of the whole process.
class FileLimit {
 public:
  explicit FileLimit(std::uintmax_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{static_cast<rlim_t>(bytes), before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

}  // namespace caftan::test

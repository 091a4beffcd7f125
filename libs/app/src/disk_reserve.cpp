#include "caftan/app/internal/disk_reserve.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace caftan::app {

Result<DiskReserve> DiskReserve::make(const std::filesystem::path& folder, std::size_t bytes) {
  const std::filesystem::path file = folder / ".reserve";
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return Error(Errc::io_error, file.string() + ": " + std::strerror(errno));
  DiskReserve reserve(descriptor);
  ::unlink(file.c_str());
  const int failure = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (failure != ENOSPC && failure != EDQUOT) return reserve;
  return Error(Errc::io_error, folder.string() + ": " + std::strerror(failure) + "; a run needs " +
                                   std::to_string(bytes / 1024) + " KiB for its summary");
}

void DiskReserve::release() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace caftan::app

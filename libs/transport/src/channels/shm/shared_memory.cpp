#include "channels/shm/shared_memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace caftan::transport {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr unsigned kNoExecution = 8;  // MFD_NOEXEC_SEAL of linux/memfd.h, from 6.3 on

Error failed(const char* what) {
  const int reason = errno;
  const bool lacking = reason == ENOMEM || reason == ENOSPC || reason == EMFILE || reason == ENFILE;
  return Error(lacking ? Errc::limit_exceeded : Errc::unsupported,
               std::string("shared memory: ") + what + ": " + std::strerror(reason));
}

Error refused(const std::string& why) { return Error(Errc::malformed_payload, "shared memory of the peer: " + why); }

/// Makes all pages be there. Afterwards no access raises SIGBUS, since the file keeps its size.
Result<void> allocate(int fd, std::size_t size) {
  while (::fallocate(fd, 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return failed("fallocate");
  }
  return {};
}

int make_file() {
  const int fd = ::memfd_create("caftan-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecution);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create("caftan-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);  // a kernel that does not know the flag
}

}  // namespace

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      data_(std::exchange(other.data_, nullptr)),
      device_(other.device_),
      node_(other.node_) {}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_);
  close_descriptor();
}

void SharedMemory::close_descriptor() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<SharedMemory> SharedMemory::make(std::size_t size) {
  const int fd = make_file();
  if (fd < 0) return failed("memfd_create");
  SharedMemory memory(fd, size);
  if (auto there = allocate(fd, size); !there) return there.error();
  if (::fcntl(fd, F_ADD_SEALS, kSeals) != 0) return failed("seals");
  if (auto mapped = memory.map(); !mapped) return mapped.error();
  return memory;
}

Result<SharedMemory> SharedMemory::take(int fd, std::size_t least, std::size_t most) {
  SharedMemory memory(fd, 0);
  // Seals first: the size of a file that is not sealed could change after it was looked at. Other kinds of file have
  // none.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return refused("a descriptor of another kind");
  if ((seals & kSeals) != kSeals) return refused("a file that is not sealed");
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return refused("a descriptor of another kind");
  // A file of huge pages can be sealed, too. If the peer punched a hole into it, touching that could raise SIGBUS.
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) return refused("a file of huge pages");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < least || size > most) {
    return refused("a file of " + std::to_string(size) + " bytes, not " + std::to_string(least) +
                   (least == most ? "" : " to " + std::to_string(most)));
  }
  memory.size_ = size;
  auto there = allocate(fd, size);
  if (there) there = memory.map();
  if (there) return memory;
  return there.error().code() == Errc::limit_exceeded ? there.error() : refused("a file that cannot be written");
}

Result<void> SharedMemory::map() {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return failed("fstat");
  device_ = status.st_dev;
  node_ = status.st_ino;
  void* const data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data == MAP_FAILED) return failed("mmap");
  data_ = static_cast<std::byte*>(data);
  ::madvise(data_, size_, MADV_DONTDUMP);
  return {};
}

bool SharedMemory::is_same(int fd) const noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == node_;
}

Result<void> check_shared_memory() {
  const auto made = SharedMemory::make(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  return made ? Result<void>() : Result<void>(made.error());
}

}  // namespace caftan::transport

/// `AddressSpaceLimit`: while an object of this class lives, the system gives this process no large blocks of memory.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace caftan::test {

class AddressSpaceLimit {
 public:
  /// @param left  bytes that the process may still get
  explicit AddressSpaceLimit(std::size_t left) {
    ::getrlimit(RLIMIT_AS, &before_);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + left;
    ::setrlimit(RLIMIT_AS, &now);
  }
  ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace caftan::test

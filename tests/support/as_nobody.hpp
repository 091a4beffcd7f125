/// Root may read every file, so what is reported of a file without read permission is tested as another user.
#pragma once

#include <unistd.h>

namespace caftan::test {

/// While it lives, this process acts as a user without rights if it was started by root. Threads: a process with one.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0), works_(!was_root_ || ::seteuid(kNobody) == 0) {}
  ~AsNobody() {
    // That root could not come back would break the tests behind this one.
    if (was_root_ && works_ && ::seteuid(0) != 0) ::_exit(1);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  /// Returns whether it does: a container may have taken the right to change the user.
  bool works() const { return works_; }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_;
  const bool works_;
};

}  // namespace caftan::test

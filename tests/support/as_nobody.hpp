/// Root may read every file, so tests with a file without read permission run as another user.
#pragma once

#include <unistd.h>

namespace caftan::test {

/// While an object of this class lives, the process acts as a user without rights if it was started by root. Threads: a
/// process with one.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0), works_(!was_root_ || ::seteuid(kNobody) == 0) {}
  ~AsNobody() {
    // If root's rights did not come back, the tests after this one would fail for that reason.
    if (was_root_ && works_ && ::seteuid(0) != 0) ::_exit(1);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  /// Returns whether the process has changed its user: a container may have taken the right to do so.
  bool works() const { return works_; }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_;
  const bool works_;
};

}  // namespace caftan::test

/// A TCP port of this host that no other process gets while it is held.
#pragma once

#include <string>

namespace caftan::test {

class FreePort {
 public:
  /// Listens there, so that no other process can.
  FreePort();
  ~FreePort() { release(); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;
  void release();
  std::string number() const { return std::to_string(number_); }

 private:
  int fd_;
  int number_ = 0;
};

}  // namespace caftan::test

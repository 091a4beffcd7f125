/// A TCP port of this host that no other process gets while it is held.
#pragma once

#include <string>

namespace caftan::test {

class FreePort {
 public:
  /// Binds a free port of 127.0.0.1 and listens, so that no other process gets the port.
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

/// The kind of channel of tests that run over one, however many there are.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace caftan::test {

/// Returns how addresses at a path begin: "shm:" if the environment says so in CAFTAN_TEST_CHANNEL, else "unix:".
inline std::string path_scheme() {
  const char* const kind = std::getenv("CAFTAN_TEST_CHANNEL");
  return kind && kind == std::string_view("shm") ? "shm:" : "unix:";
}

}  // namespace caftan::test

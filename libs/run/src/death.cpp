#include "caftan/run/internal/death.hpp"

#include <cstring>

namespace caftan::run {

std::string name_of_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  return "signal " + std::to_string(number) + (name ? std::string(" (SIG") + name + ")" : std::string());
}

}  // namespace caftan::run

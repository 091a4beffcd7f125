/// The size of a test that also has a long form, which CTest runs with the label soak.
#pragma once

#include <cstdlib>
#include <string>

namespace caftan::test {

/// Returns the number in the environment variable `name`, which caftan_add_test sets for the long form, else `usual`.
inline std::size_t soak_size(const char* name, std::size_t usual) {
  const char* const text = std::getenv(name);
  return text ? std::stoul(text) : usual;
}

}  // namespace caftan::test

// SHA-256, so that a sequential simulation needs no other library. Source: FIPS 180-4.
#pragma once

#include <string>

#include "caftan/wire/bytes.hpp"

namespace caftan::sim {

/// Returns the digest of `bytes` as 64 hexadecimal digits.
std::string sha256(wire::ByteView bytes);

}  // namespace caftan::sim

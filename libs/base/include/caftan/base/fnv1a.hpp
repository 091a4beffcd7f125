/// The FNV-1a hash of a text: the same number in every build, so it may travel and be stored.
#pragma once

#include <cstdint>
#include <string_view>

namespace caftan::base {

/// Returns the 64-bit FNV-1a hash of `text`; `seed` continues an earlier hash.
/// Source: Fowler, Noll, Vo; offset basis and prime for 64 bits.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) noexcept {
  std::uint64_t hash = seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace caftan::base

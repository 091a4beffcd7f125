/// The rolling hash of what a process has handled (SM-18).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "caftan/wire/bytes.hpp"

namespace caftan::sim {

/// Adds a word to a rolling hash.
constexpr std::uint64_t mixed_in(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

/// Adds bytes, and how many they are.
inline std::uint64_t mixed_in(std::uint64_t hash, wire::ByteView bytes) noexcept {
  hash = mixed_in(hash, bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), size);
    hash = mixed_in(hash, word);
    bytes = bytes.subspan(size);
  }
  return hash;
}

}  // namespace caftan::sim

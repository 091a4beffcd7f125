/// Independent streams of random numbers from the run's one seed: the same for a (role, replica, purpose) in any
/// placement, on any machine and in any version.
#pragma once

#include <cstdint>
#include <string_view>

#include "caftan/base/fnv1a.hpp"
#include "caftan/base/ids.hpp"

namespace caftan::app {

/// Returns the 64-bit seed of one stream.
///
/// state = root; for each word w of (fnv1a(role), replica, fnv1a(purpose)): state = mix64(state + G + mix64(w + G)),
/// where G = 0x9e3779b97f4a7c15 and mix64 is splitmix64's finalizer. Each step is a bijection of the state, so two
/// roots never give one stream the same seed.
constexpr std::uint64_t stream_seed(std::uint64_t root, std::string_view role, std::uint32_t replica,
                                    std::string_view purpose) noexcept {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  std::uint64_t state = root;
  for (const std::uint64_t word : {base::fnv1a(role), std::uint64_t{replica}, base::fnv1a(purpose)}) {
    state = mix64(state + kGolden + mix64(word + kGolden));
  }
  return state;
}

}  // namespace caftan::app

/// Random numbers as a function of a key: no state, so neither placement nor the order of calls changes them, and a
/// resumed run needs nothing but its key. Start with `random_uniform`; `nn::fill_uniform` fills tensors.
#pragma once

#include <array>
#include <cstdint>

namespace caftan::base {

/// Names one stream of random numbers: which run and replica, and which use of it.
struct RandomKey {
  std::uint64_t seed = 0;     ///< a hash of (root seed, role, replica, purpose), as RoleContext::seed returns it
  std::uint64_t context = 0;  ///< ordinal of the training step, or of another unit that the caller counts
  std::uint64_t call = 0;     ///< ordinal of the draw within that context
};

/// Returns the 128 random bits at position `index` of a key's stream.
/// Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", Philox4x32-10; the generator behind
/// torch's CUDA dropout. Key: seed and call, mixed to 64 bits; counter: index, context. Each bit of the four counts.
std::array<std::uint32_t, 4> random_block(const RandomKey& key, std::uint64_t index) noexcept;

/// Returns the number in [0, 1) that 32 random bits stand for: their upper 24, exact in float32.
constexpr float uniform_of(std::uint32_t bits) noexcept { return static_cast<float>(bits >> 8) * 0x1p-24F; }

/// Returns a number in [0, 1) with 24 random bits: exact in float32.
float random_uniform(const RandomKey& key, std::uint64_t index = 0) noexcept;

}  // namespace caftan::base

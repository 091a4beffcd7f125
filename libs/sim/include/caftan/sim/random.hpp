/// Random numbers of logical processes: a function of (seed, process, stream, ordinal), so that neither placement nor
/// the order of other processes changes them. Handlers get them from `LpContext::random`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "caftan/base/keyed_random.hpp"

namespace caftan::sim {

/// One stream. The distributions have arithmetic of their own, without libm, whose last bits depend on the processor.
/// Threads: one at a time.
class Random {
 public:
  /// @param lp  id of the process
  /// @param stream  a hash of the stream's name; 0 = the stream without a name
  /// @param ordinal  how many numbers were drawn; counted on by each draw, and outlives this object
  Random(std::uint64_t seed, std::uint32_t lp, std::uint64_t stream, std::uint64_t& ordinal) noexcept
      : key_{.seed = seed, .context = lp, .call = stream}, ordinal_(&ordinal) {}

  /// Returns 64 random bits.
  std::uint64_t bits() noexcept;
  /// Returns a number in [0, 1) with 53 random bits.
  double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Returns a number in [low, high), where rounding does not give `high`.
  double uniform(double low, double high) noexcept;
  /// Returns a whole number in [0, n), all equally likely; 0 for n = 0.
  std::uint64_t below(std::uint64_t n) noexcept;
  /// Returns true with that probability.
  bool chance(double probability) noexcept { return uniform() < probability; }
  /// Returns a number >= 0 of the exponential distribution.
  double exponential(double mean) noexcept;
  /// Returns a number of the normal distribution. Source: Marsaglia's polar method; the second number is not kept.
  double normal(double mean, double deviation) noexcept;

 private:
  base::RandomKey key_;
  std::uint64_t* ordinal_;
  std::uint64_t block_number_ = ~std::uint64_t{0};  // of the block that block_ holds
  std::array<std::uint32_t, 4> block_{};
};

/// Returns the natural logarithm of x > 0, within one unit in the last place; the same bits on every processor.
double logarithm(double x) noexcept;

/// Sets `to[i]` to the number in [0, 1) that belongs to (seed, numbers[i], ordinal).
/// @param to  as long as `numbers`
void uniform_for(std::uint64_t seed, std::span<const std::uint64_t> numbers, std::uint64_t ordinal,
                 std::span<double> to) noexcept;

}  // namespace caftan::sim

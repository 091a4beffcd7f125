#include "caftan/sim/random.hpp"

#include <bit>
#include <cmath>

#include "caftan/base/fnv1a.hpp"

namespace caftan::sim {
namespace {

/// The stream of uniform_for: no name of a stream has this hash by accident.
constexpr std::uint64_t kOfNumbers = base::fnv1a("caftan::sim::uniform_for");

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t joined_words(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

}  // namespace

std::uint64_t Random::bits() noexcept {
  const std::uint64_t ordinal = (*ordinal_)++;
  if (ordinal / 2 != block_number_) {
    block_number_ = ordinal / 2;
    block_ = base::random_block(key_, block_number_);
  }
  const std::size_t at = ordinal % 2 * 2;
  return joined_words(block_[at], block_[at + 1]);
}

double Random::uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }

std::uint64_t Random::below(std::uint64_t n) noexcept {
  if (n == 0) return 0;
  // Lemire's multiplication: the upper half of the product, and another draw for the few that would come too often.
  const std::uint64_t too_often = (0 - n) % n;
  while (true) {
    const auto product = static_cast<Wide>(bits()) * n;
    if (static_cast<std::uint64_t>(product) >= too_often) return static_cast<std::uint64_t>(product >> 64);
  }
}

double Random::exponential(double mean) noexcept { return -mean * logarithm(1 - uniform()); }

double Random::normal(double mean, double deviation) noexcept {
  while (true) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double square = u * u + v * v;
    if (square > 0 && square < 1) return mean + deviation * u * std::sqrt(-2 * logarithm(square) / square);
  }
}

double logarithm(double x) noexcept {
  auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = 0;
  if (bits >> 52 == 0) {  // subnormal
    bits = std::bit_cast<std::uint64_t>(x * 0x1p54);
    exponent = -54;
  }
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)).
  constexpr std::uint64_t kRoot = 0x3fe6a09e667f3bcdULL;
  const std::uint64_t above = bits - kRoot;
  exponent += static_cast<int>(static_cast<std::int64_t>(above) >> 52);
  const double m = std::bit_cast<double>((above & 0x000fffffffffffffULL) + kRoot);
  // log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...) with |s| <= 0.1716: the term of s^21 is below 2^-56.
  const double f = m - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const double w = z * z;
  const double odd = z * (1.0 / 3 + w * (1.0 / 7 + w * (1.0 / 11 + w * (1.0 / 15 + w * (1.0 / 19)))));
  const double even = w * (1.0 / 5 + w * (1.0 / 9 + w * (1.0 / 13 + w * (1.0 / 17 + w * (1.0 / 21)))));
  // 2s = f - s f, so the large part of the sum is exact.
  const double half = 0.5 * f * f;
  const double tail = s * (half + 2 * (odd + even));
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double k = exponent;
  return k * kLn2High - ((half - (tail + k * kLn2Low)) - f);
}

void uniform_for(std::uint64_t seed, std::span<const std::uint64_t> numbers, std::uint64_t ordinal,
                 std::span<double> to) noexcept {
  const base::RandomKey key{.seed = seed, .context = ordinal, .call = kOfNumbers};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::array<std::uint32_t, 4> block = base::random_block(key, numbers[i]);
    to[i] = static_cast<double>(joined_words(block[0], block[1]) >> 11) * 0x1p-53;
  }
}

}  // namespace caftan::sim

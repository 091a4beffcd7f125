/// Random numbers that are the same on every machine: NumPy's SeedSequence and PCG64, bit for bit, so that episodes can
/// be compared with Gymnasium's. Start with `make_stream`; streams of different keys are independent of each other.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace caftan::rl {

/// Spreads a seed of any quality over as many well-mixed words as are wanted.
/// Source: numpy.random.SeedSequence (O'Neill, "Developing a seed_seq alternative"), without spawn keys.
class SeedSequence {
 public:
  /// @param seed  taken as one 32-bit word if it fits, else as two, low one first (NumPy's rule for an integer)
  explicit SeedSequence(std::uint64_t seed);
  /// @param numbers  each taken as one or two words, as the single seed is, in this order (NumPy's rule for a list of
  /// integers)
  explicit SeedSequence(std::initializer_list<std::uint64_t> numbers);

  /// Fills `words` with the words that follow from the seed; always the same ones.
  void generate(std::span<std::uint32_t> words) const noexcept;

 private:
  void mix(std::span<const std::uint32_t> entropy) noexcept;

  std::array<std::uint32_t, 4> pool_{};
};

/// The PCG64 generator (XSL-RR, 128-bit state). Satisfies UniformRandomBitGenerator. A value: a copy continues alike.
/// Source: numpy.random.PCG64, the generator of numpy.random.default_rng and of Gymnasium's environments.
class Pcg64 {
 public:
  using result_type = std::uint64_t;

  explicit Pcg64(const SeedSequence& seed) noexcept;
  explicit Pcg64(std::uint64_t seed) : Pcg64(SeedSequence(seed)) {}

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return ~result_type{0}; }
  /// Returns the next 64 bits.
  result_type operator()() noexcept;
  /// Returns the next double in [0, 1): the top 53 bits of one draw.
  double uniform() noexcept;
  /// Returns the next double in [low, high), rounded as NumPy's Generator.uniform does.
  double uniform(double low, double high) noexcept;

  /// Returns {state high, state low, increment high, increment low}: equal if and only if all later draws are equal.
  std::array<std::uint64_t, 4> state() const noexcept;
  /// Goes on from what `state` of another generator has returned.
  void restore(const std::array<std::uint64_t, 4>& state) noexcept;

 private:
  __extension__ using Word128 = unsigned __int128;

  void advance() noexcept;

  Word128 state_ = 0;
  Word128 increment_ = 0;
};

/// Returns the generator for a key such as {run seed, observer, episode}; equal keys give equal streams.
Pcg64 make_stream(std::initializer_list<std::uint64_t> key);

/// Returns a 64-bit seed for a key, for interfaces that take one number.
std::uint64_t derive_seed(std::initializer_list<std::uint64_t> key);

}  // namespace caftan::rl

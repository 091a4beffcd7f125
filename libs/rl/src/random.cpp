#include "caftan/rl/random.hpp"

#include <bit>

namespace caftan::rl {
namespace {

/// The running constant of the seed sequence's two hashes.
class HashConstant {
 public:
  HashConstant(std::uint32_t start, std::uint32_t multiplier) noexcept : value_(start), multiplier_(multiplier) {}

  std::uint32_t hash(std::uint32_t word) noexcept {
    word ^= value_;
    value_ *= multiplier_;
    word *= value_;
    return word ^ (word >> 16);
  }

 private:
  std::uint32_t value_;
  std::uint32_t multiplier_;
};

constexpr std::uint32_t mix_words(std::uint32_t left, std::uint32_t right) noexcept {
  const std::uint32_t mixed = 0xca01f9ddU * left - 0x4973f715U * right;
  return mixed ^ (mixed >> 16);
}

void append_words(std::vector<std::uint32_t>& words, std::uint64_t number) {
  words.push_back(static_cast<std::uint32_t>(number));
  if ((number >> 32) != 0) words.push_back(static_cast<std::uint32_t>(number >> 32));
}

}  // namespace

SeedSequence::SeedSequence(std::uint64_t seed) : SeedSequence({seed}) {}

SeedSequence::SeedSequence(std::initializer_list<std::uint64_t> numbers) {
  std::vector<std::uint32_t> entropy;
  entropy.reserve(2 * numbers.size());
  for (const std::uint64_t number : numbers) append_words(entropy, number);
  mix(entropy);
}

void SeedSequence::mix(std::span<const std::uint32_t> entropy) noexcept {
  HashConstant constant(0x43b0d7e5U, 0x931e8875U);
  for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = constant.hash(i < entropy.size() ? entropy[i] : 0);
  for (std::size_t source = 0; source < pool_.size(); ++source) {
    for (std::size_t target = 0; target < pool_.size(); ++target) {
      if (source != target) pool_[target] = mix_words(pool_[target], constant.hash(pool_[source]));
    }
  }
  for (std::size_t i = pool_.size(); i < entropy.size(); ++i) {
    for (std::uint32_t& word : pool_) word = mix_words(word, constant.hash(entropy[i]));
  }
}

void SeedSequence::generate(std::span<std::uint32_t> words) const noexcept {
  HashConstant constant(0x8b51f9ddU, 0x58f38dedU);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = constant.hash(pool_[i % pool_.size()]);
}

Pcg64::Pcg64(const SeedSequence& seed) noexcept {
  std::array<std::uint32_t, 8> words{};
  seed.generate(words);
  const auto pair = [&words](std::size_t i) { return Word128{words[2 * i]} | (Word128{words[2 * i + 1]} << 32); };
  const Word128 start = (pair(0) << 64) | pair(1);
  const Word128 stream = (pair(2) << 64) | pair(3);
  increment_ = (stream << 1) | 1;
  advance();
  state_ += start;
  advance();
}

void Pcg64::advance() noexcept {
  constexpr Word128 kMultiplier = (Word128{2549297995355413924ULL} << 64) | 4865540595714422341ULL;
  state_ = state_ * kMultiplier + increment_;
}

Pcg64::result_type Pcg64::operator()() noexcept {
  advance();
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

double Pcg64::uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

double Pcg64::uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }

std::array<std::uint64_t, 4> Pcg64::state() const noexcept {
  return {static_cast<std::uint64_t>(state_ >> 64), static_cast<std::uint64_t>(state_),
          static_cast<std::uint64_t>(increment_ >> 64), static_cast<std::uint64_t>(increment_)};
}

void Pcg64::restore(const std::array<std::uint64_t, 4>& state) noexcept {
  state_ = static_cast<Word128>(state[0]) << 64 | state[1];
  increment_ = static_cast<Word128>(state[2]) << 64 | state[3];
}

Pcg64 make_stream(std::initializer_list<std::uint64_t> key) { return Pcg64(SeedSequence(key)); }

std::uint64_t derive_seed(std::initializer_list<std::uint64_t> key) { return make_stream(key)(); }

}  // namespace caftan::rl

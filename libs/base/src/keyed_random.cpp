#include "caftan/base/keyed_random.hpp"

#include "caftan/base/ids.hpp"

namespace caftan::base {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

}  // namespace

std::array<std::uint32_t, 4> random_block(const RandomKey& key, std::uint64_t index) noexcept {
  // kGolden * 2^62 is 2^62 modulo 2^64, so the sum does not distinguish the two highest bits of `call` from those of
  // `seed`. These two bits are mixed in once more, which changes no stream of an ordinal below 2^62.
  const std::uint64_t mixed = mix64(key.seed + kGolden * (key.call + 1)) ^ mix64(key.call >> 62);
  auto key0 = static_cast<std::uint32_t>(mixed);
  auto key1 = static_cast<std::uint32_t>(mixed >> 32);
  std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                       static_cast<std::uint32_t>(key.context),
                                       static_cast<std::uint32_t>(key.context >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

float random_uniform(const RandomKey& key, std::uint64_t index) noexcept {
  return uniform_of(random_block(key, index / 4)[index % 4]);
}

}  // namespace caftan::base

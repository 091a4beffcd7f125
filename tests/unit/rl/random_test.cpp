#include "caftan/rl/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace caftan::rl::random_test {
namespace {

/// What numpy.random.SeedSequence(seed).generate_state(4, uint64), PCG64.random_raw(3), Generator.uniform(-0.05, 0.05,
/// 4) and then Generator.random() give.
struct NumpyDraws {
  std::uint64_t seed;
  std::array<std::uint64_t, 4> words;
  std::array<std::uint64_t, 3> raw;
  std::array<double, 4> uniform;
  double next;
};

void PrintTo(const NumpyDraws& draws, std::ostream* out) { *out << "seed " << draws.seed; }

class Numpy : public ::testing::TestWithParam<NumpyDraws> {};

TEST_P(Numpy, SeedSequenceGivesTheSameWords) {
  std::array<std::uint32_t, 8> words{};
  SeedSequence(GetParam().seed).generate(words);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(words[2 * i] | (std::uint64_t{words[2 * i + 1]} << 32), GetParam().words[i]) << i;
  }
}

TEST_P(Numpy, Pcg64GivesTheSameBits) {
  Pcg64 random(GetParam().seed);
  for (const std::uint64_t expected : GetParam().raw) EXPECT_EQ(random(), expected);
}

TEST_P(Numpy, UniformDoublesAreBitEqual) {
  Pcg64 random(GetParam().seed);
  for (const double expected : GetParam().uniform) EXPECT_EQ(random.uniform(-0.05, 0.05), expected);
  EXPECT_EQ(random.uniform(), GetParam().next);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, Numpy,
    ::testing::Values(
        NumpyDraws{0,
                   {0xdb2cd7e7b0f478be, 0xabf4641a2c71ba49, 0x20c6ed6d9d7b8d41, 0x2c4099de223c39d4},
                   {0xa30febcfd9c2825f, 0x4510bdf882d9d721, 0xa7d3da94ecde8b8},
                   {0.013696168732145436, -0.02302132862361297, -0.045902647606380534, -0.04834723644714709},
                   0x1.a064f4f059bcap-1},
        NumpyDraws{42,
                   {0x9f1e2e6dcd540ab7, 0xd57873dc79fb94b6, 0x7d282a1b64d420b7, 0x336579714692d5ff},
                   {0xc621fbcd16d92688, 0x705a5661a791ffc1, 0xdbcd12c26eda1624},
                   {0.027395604855596334, -0.006112156024794771, 0.03585979199113824, 0.019736802905936393},
                   0x1.81c01b5339380p-4},
        NumpyDraws{123,
                   {0xb1383ed0295844f6, 0xa250632e171d58af, 0x86a7247f7443199d, 0x136de7e3c11fce1d},
                   {0xaeae9c9903f3e9cd, 0xdc736db97cb6d23, 0x3869812ee8b9ea96},
                   {0.018235186324814343, -0.04461789811977773, -0.027964012722738865, -0.03156281893013303},
                   0x1.68415a62ab3f0p-3},
        NumpyDraws{543,
                   {0x8ae9e98a1840e76a, 0xe7dcc8a479cd309d, 0x26fb3638ffa7a0fd, 0xfb52457a1b9eb59e},
                   {0x76fd1fcacb829f22, 0xa93f01532e2f755b, 0x72353454b4db4538},
                   {-0.003520013140631807, 0.0161117632682531, -0.005387566501589711, -0.005440521365924669},
                   0x1.76b6d5422ed0ap-1},
        NumpyDraws{(std::uint64_t{1} << 40) + 7,  // two words of entropy
                   {0xd8672e10e3d1a15, 0x9aef4ada4ecfa161, 0x999c1c3b83dba903, 0x408927dc0dc8a316},
                   {0xd46e9e2034de21aa, 0x415badc99c087675, 0x275ed40f045acb84},
                   {0.0329812891829413, -0.024469484165089584, -0.03462092841470125, 0.017450454586760852},
                   0x1.7a4954abc5376p-1}));

TEST(SeedSequence, MixesEntropyBeyondItsPoolAsNumpyDoes) {
  std::array<std::uint32_t, 8> words{};
  SeedSequence({1, 2, 3, 4, 5, 6}).generate(words);
  const std::array<std::uint32_t, 8> expected = {0x1d1bca21, 0xebcd001d, 0xb202608b, 0xcfea83a4,
                                                 0xe4fcf5b6, 0x9b21dd81, 0x08e2670b, 0x1b5dd0a3};
  EXPECT_EQ(words, expected);
}

TEST(Stream, DependsOnEveryPartOfItsKeyAndOnTheirOrder) {
  std::vector<std::uint64_t> seeds = {derive_seed({1, 2, 3}), derive_seed({1, 2, 4}), derive_seed({1, 3, 2}),
                                      derive_seed({2, 2, 3}), derive_seed({3, 2, 1})};
  EXPECT_EQ(derive_seed({1, 2, 3}), seeds.front());
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::adjacent_find(seeds.begin(), seeds.end()), seeds.end());
}

TEST(Stream, EqualStatesMeanEqualDraws) {
  Pcg64 left = make_stream({543, 0, 7});
  Pcg64 right = left;
  EXPECT_EQ(left.state(), right.state());
  EXPECT_EQ(left(), right());
  left();
  EXPECT_NE(left.state(), right.state());
}

}  // namespace
}  // namespace caftan::rl::random_test

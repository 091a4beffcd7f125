// What the shipped test files learn, to the last bit: with kernels that are the same on every x86-64 processor, so that
// the digests can stand here. A change of them is a change of what is learned, or of what a fingerprint counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test {
namespace {

class ShippedFingerprints : public testing::Test {
 protected:
  ShippedFingerprints() {
    // libtorch's own kernels, MKL's and oneDNN's; what the tests of this process start inherits them.
    ::setenv("ATEN_CPU_CAPABILITY", "default", 1);
    ::setenv("MKL_CBWR", "COMPATIBLE", 1);
    ::setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
  }
  ~ShippedFingerprints() override {
    for (const char* name : {"ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA"}) ::unsetenv(name);
  }
  /// Returns what the run printed.
  std::string learn(const std::string& file, const std::string& setting) const {
    const Finished run = run_to_end(folder_, kCaftan, {"run", kConfigs + file, "run.placement=one_process", setting});
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }
  /// The C library's exp and sin differ in their last bits without fused multiplication.
  static bool has_the_kernels() { return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"); }

  Folder folder_;
};

TEST_F(ShippedFingerprints, M12_CartPole) {
  if (!has_the_kernels()) GTEST_SKIP() << "the C library of a processor without FMA gives other last bits";
  EXPECT_THAT(
      learn("/cartpole.test.toml", "run.seed=543"),
      testing::HasSubstr("fingerprint sha256:34545715dbac948f4e9a753f78f83a12f62d53beae918abbfc9d87b2c077bda2"));
}

TEST_F(ShippedFingerprints, M12_LanguageModel) {
  if (!has_the_kernels()) GTEST_SKIP() << "the C library of a processor without FMA gives other last bits";
  std::string text;  // not the system's licences, which differ between its releases
  for (int i = 0; text.size() < 20'000; ++i) {
    text += "line " + std::to_string(i % 97) + " of " + std::string(1 + i % 5, "abcde"[i % 5]) + ".\n";
  }
  const std::string corpus = folder_.write("text", text);
  EXPECT_THAT(
      learn("/rnn_lm.test.toml", "roles.trainer.config.corpus.path=" + corpus),
      testing::HasSubstr("fingerprint sha256:635896fda344bc89c09121f5f937d3e083b5769625f1556cd7c0492c3778f8e8"));
}

}  // namespace
}  // namespace caftan::test

// The fingerprint of a training by cartpole.test.toml, to the last bit. It can stand here, because the kernels that
// CartPole uses compute the same on every x86-64 processor with FMA. Another fingerprint means that the training has
// changed, or that the fingerprint covers something else. The kernels of the language model differ between processors
// (docs/testing.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::fingerprint_test {
namespace {

class ShippedFingerprints : public ::testing::Test {
 protected:
  ShippedFingerprints() {
    // Selects libtorch's portable kernels and MKL's compatible ones; the commands that this test starts inherit the
    // variables.
    ::setenv("ATEN_CPU_CAPABILITY", "default", 1);
    ::setenv("MKL_CBWR", "COMPATIBLE", 1);
  }
  ~ShippedFingerprints() override {
    for (const char* name : {"ATEN_CPU_CAPABILITY", "MKL_CBWR"}) ::unsetenv(name);
  }

  Folder folder_;
};

TEST_F(ShippedFingerprints, M12_CartPole) {
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
    GTEST_SKIP() << "the C library's exp and sin have other last bits on a processor without FMA";
  }
  const Finished run = run_to_end(
      folder_, kCaftan, {"run", kConfigs + "/cartpole.test.toml", "run.placement=one_process", "run.seed=543"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::HasSubstr(
                           "fingerprint sha256:34545715dbac948f4e9a753f78f83a12f62d53beae918abbfc9d87b2c077bda2"));
}

}  // namespace
}  // namespace caftan::test::fingerprint_test

// A whole program of one process that simulates an epidemic whose patches exchange tensors (SM-11).
#include <gtest/gtest.h>

#include <string>

#include "caftan/caftan.hpp"
#include "caftan/sim/sequential.hpp"
#include "simulated_run.hpp"
#include "sir_model.hpp"

namespace caftan::test::simulated_tensors_test {
namespace {

class SimulatedTensors : public SimulatedRun {
 protected:
  SimulatedTensors() { sim::add<Sir>(program_, "sir"); }
};

TEST_F(SimulatedTensors, SM11_AnEpidemicOfTensorsHasOneFingerprintForAnyPartitions) {
  const auto sir = [&](int partitions, const std::string& sync) {
    return result_of(
        "caftan = 1\n[run]\nplacement = \"one_process\"\nseed = 5\n[roles.clock]\ntype = \"sir.clock\"\n"
        "config = { end_time = 20.5, sync = \"" +
        sync + "\" }\nuses = { partitions = \"grid\" }\n[roles.grid]\ntype = \"sir.partition\"\nreplicas = " +
        std::to_string(partitions) + "\n");
  };
  const std::string expected =
      "sha256:" + sim::run_sequential<Sir>(SirConfig{}, {.end_time = 20.5, .seed = 5}).value().fingerprint;
  EXPECT_EQ(sir(1, "window"), expected);
  EXPECT_EQ(sir(2, "window"), expected);
  EXPECT_EQ(sir(4, "null_message"), expected);
}

}  // namespace
}  // namespace caftan::test::simulated_tensors_test

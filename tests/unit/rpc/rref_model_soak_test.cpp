// The long form of rref_model_test.cpp: run it before closing a change of the RRef protocol.
#include <gtest/gtest.h>

#include "rref_model_runs.hpp"

namespace caftan::rpc::model::rref_model_soak_test {
namespace {

TEST(RRefModelSoak, RR1_to_RR14_HoldInAMillionHistories) {
  const Found found = first_bad_history(Without::nothing, 1, 0, 1'000'000);
  EXPECT_FALSE(found.bad) << test::report<World>(found, Without::nothing);
}

}  // namespace
}  // namespace caftan::rpc::model::rref_model_soak_test

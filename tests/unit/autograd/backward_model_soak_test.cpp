// The long form of backward_model_test.cpp: run it before closing a change of the backward protocol.
#include <gtest/gtest.h>

#include "backward_model_runs.hpp"

namespace caftan::autograd::model::backward_model_soak_test {
namespace {

TEST(BackwardModelSoak, DA1_to_DA19_HoldInAMillionHistories) {
  const Found found = first_bad_history(Without::nothing, 1, 0, 1'000'000);
  EXPECT_FALSE(found.bad) << test::report<World>(found, Without::nothing);
}

}  // namespace
}  // namespace caftan::autograd::model::backward_model_soak_test

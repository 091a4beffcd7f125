// Turns: what an optimizer is asked to do runs in order, one job at a time.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "turns.hpp"

namespace caftan::optim::turns_test {
namespace {

TEST(Turns, BeginTheNextJobWhenTheRunningOneHasEnded) {
  const auto turns = std::make_shared<Turns>(std::weak_ptr<rpc::Caller>(), std::nullopt);
  std::vector<int> begun;
  for (const int job : {1, 2, 3}) turns->take({[&begun, job] { begun.push_back(job); }, nullptr});
  EXPECT_EQ(begun, (std::vector<int>{1}));
  turns->end();
  EXPECT_EQ(begun, (std::vector<int>{1, 2}));
  turns->end();
  EXPECT_EQ(begun, (std::vector<int>{1, 2, 3}));
}

TEST(Turns, B8_AJobThatEndsAtOnceBeginsNoOtherOnItsStack) {
  const auto turns = std::make_shared<Turns>(std::weak_ptr<rpc::Caller>(), std::nullopt);
  int depth = 0;
  int begun = 0;
  turns->take({[] {}, nullptr});  // a job that does not end: all later ones wait for its end
  for (int i = 0; i < 100; ++i) {
    turns->take({[&] {
                   EXPECT_EQ(++depth, 1);
                   ++begun;
                   turns->end();
                   --depth;
                 },
                 nullptr});
  }
  turns->end();
  EXPECT_EQ(begun, 100);
}

}  // namespace
}  // namespace caftan::optim::turns_test

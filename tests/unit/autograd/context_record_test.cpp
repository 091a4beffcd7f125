// What the record of a context keeps of the gradients that arrive for its messages.
#include "caftan/autograd/internal/context_record.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "idle_context_host.hpp"

namespace caftan::autograd::context_record_test {
namespace {

constexpr WorkerLife kSelf{WorkerId{0}, Incarnation{1}};
constexpr PassNumber kFirst{1};
constexpr PassNumber kSecond{2};
constexpr AutogradMessageId kMessage{kSelf.id, kSelf.incarnation, 5};
constexpr AutogradMessageId kOther{kSelf.id, kSelf.incarnation, 6};

std::vector<at::Tensor> gradients(std::int64_t size) { return {at::ones({size})}; }

class ContextRecordTest : public ::testing::Test {
 protected:
  caftan::test::IdleContextHost host_{kSelf};
  std::shared_ptr<ContextRecord> record_ = host_.make_record({kSelf.id, kSelf.incarnation, 1});
};

TEST_F(ContextRecordTest, DA25_WhatIsDeliveredIsTakenOnce) {
  record_->deliver(kFirst, kMessage, gradients(2));
  EXPECT_FALSE(record_->take_delivered(kFirst, kOther));
  EXPECT_FALSE(record_->take_delivered(kSecond, kMessage));
  const auto taken = record_->take_delivered(kFirst, kMessage);
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->size(), 1U);
  EXPECT_EQ((*taken)[0].numel(), 2);
  EXPECT_EQ(record_->take_delivered(kFirst, kMessage).error().code(), Errc::context_released);
}

TEST_F(ContextRecordTest, DA25_AReasonIsDeliveredInPlaceOfGradients) {
  record_->deliver(kFirst, kMessage, Error(Errc::invalid_gradient, "of other sizes"));
  EXPECT_EQ(record_->take_delivered(kFirst, kMessage).error().code(), Errc::invalid_gradient);
}

TEST_F(ContextRecordTest, DA6_TheFirstDeliveryOfAMessageStays) {
  record_->deliver(kFirst, kMessage, gradients(2));
  record_->deliver(kFirst, kMessage, gradients(3));
  EXPECT_EQ((*record_->take_delivered(kFirst, kMessage))[0].numel(), 2);
}

TEST_F(ContextRecordTest, DA25_WhatAPassDidNotTakeGoesWithIt) {
  record_->deliver(kFirst, kMessage, gradients(2));
  record_->deliver(kSecond, kMessage, gradients(3));
  record_->forget_delivered(kFirst);
  EXPECT_FALSE(record_->take_delivered(kFirst, kMessage));
  EXPECT_TRUE(record_->take_delivered(kSecond, kMessage));
}

TEST_F(ContextRecordTest, AContextThatIsOverKeepsNothing) {
  record_->deliver(kFirst, kMessage, gradients(2));
  record_->end();
  record_->deliver(kFirst, kOther, gradients(2));
  EXPECT_FALSE(record_->take_delivered(kFirst, kMessage));
  EXPECT_FALSE(record_->take_delivered(kFirst, kOther));
}

}  // namespace
}  // namespace caftan::autograd::context_record_test

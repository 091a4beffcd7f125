// Tensors in events, in the state of processes and in checkpoints, and random numbers for all agents of a tensor.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <vector>

#include "caftan/sim/internal/kernel.hpp"
#include "caftan/sim/sequential.hpp"
#include "caftan/tensor/operators.hpp"
#include "sir_model.hpp"

namespace caftan::sim::tensor_events_test {
namespace {

using test::Sir;
using test::SirConfig;
using testing::HasSubstr;

struct Sent {
  at::Tensor tensor{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& tensor;
  }
};
/// A process that does at its start what the test says, and keeps the last tensor that it got.
struct Scripted {
  using Events = sim::Events<Sent>;
  const std::function<void(LpContext&)>* at_start;
  at::Tensor state{};
  at::Tensor* got;
  void start(LpContext& lp) const { (*at_start)(lp); }
  void on(const Sent& sent, LpContext&) { *got = state = sent.tensor; }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& state;
  }
};
struct Alone {
  explicit Alone(std::function<void(LpContext&)> start) : at_start(std::move(start)) {
    auto made = make_kernel(
        [this](Builder& builder) { builder.add<Scripted>([this] {
                                     return Scripted{&at_start, {}, &got};
                                   }); }, {});
    kernel = std::move(made).value();
  }
  std::function<void(LpContext&)> at_start;
  at::Tensor got;
  std::unique_ptr<Kernel> kernel;
};
Time units(double value) { return time_of(value).value(); }

TEST(TensorEvent, SM11_ATensorThatTheSenderStillHoldsIsCopiedWhenItIsScheduled) {
  const at::Tensor held = at::ones({3});
  Alone alone([&](LpContext& lp) {
    lp.schedule(1, Sent{held});
    held.fill_(7);
  });
  ASSERT_TRUE(alone.kernel->start());
  held.fill_(8);
  ASSERT_TRUE(alone.kernel->run_until(units(2)));
  EXPECT_TRUE(alone.got.equal(at::ones({3})));
  alone.got.fill_(9);
  EXPECT_TRUE(held.equal(at::full({3}, 8.0))) << "nor does the receiver write into what the sender holds";
}

TEST(TensorEvent, EveryKindOfTensorArrivesWithItsValues) {
  const std::vector<at::Tensor> all{at::Tensor(),
                                    at::scalar_tensor(2.5),
                                    at::empty({0, 3}),
                                    at::arange(6, at::kShort).view({2, 3}).t(),
                                    at::arange(10, at::kDouble).narrow(0, 3, 4),
                                    at::ones({2}, at::kBool),
                                    at::eye(3).to_sparse(),
                                    at::ones({2}).set_requires_grad(true)};
  for (const at::Tensor& tensor : all) {
    Alone alone([&](LpContext& lp) { lp.schedule(1, Sent{tensor}); });
    ASSERT_TRUE(alone.kernel->start());
    const auto done = alone.kernel->run_until(units(2));
    ASSERT_TRUE(done) << done.error();
    ASSERT_EQ(alone.got.defined(), tensor.defined());
    if (!tensor.defined()) continue;
    EXPECT_EQ(alone.got.scalar_type(), tensor.scalar_type());
    EXPECT_EQ(alone.got.sizes(), tensor.sizes());
    EXPECT_TRUE(at::equal(alone.got.to_dense(), tensor.detach().to_dense()));
    EXPECT_FALSE(alone.got.requires_grad());
  }
}

TEST(TensorEvent, SM18_AViewAndACopyOfItHaveOneHash) {
  const at::Tensor wide = at::arange(12, at::kFloat).view({3, 4});
  std::vector<std::uint64_t> hashes;
  for (const at::Tensor& tensor : {wide.narrow(1, 1, 2), wide.narrow(1, 1, 2).contiguous(), wide.narrow(1, 1, 2) + 1}) {
    Alone alone([&](LpContext& lp) { lp.schedule(1, Sent{tensor}); });
    ASSERT_TRUE(alone.kernel->start());
    ASSERT_TRUE(alone.kernel->run_until(units(2)));
    hashes.push_back(alone.kernel->hashes()->front());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(hashes[0], hashes[2]);
}

TEST(TensorEvent, ATensorOverTheLimitOfMessagesIsNamed) {
  const std::function<void(LpContext&)> start = [](LpContext& lp) { lp.schedule(1, Sent{at::zeros({1000})}); };
  at::Tensor got;
  const auto kernel =
      make_kernel([&](Builder& builder) { builder.add<Scripted>([&] {
                                            return Scripted{&start, {}, &got};
                                          }); },
                  {.largest_event = 3000})
          .value();
  const Error error = kernel->start().error();
  EXPECT_EQ(error.code(), Errc::limit_exceeded);
  EXPECT_THAT(error.text(), HasSubstr("Sent"));
}

TEST(TensorEvent, BytesThatAreNoTensorAreMalformed) {
  Alone alone([](LpContext&) {});
  ASSERT_TRUE(alone.kernel->start());
  auto file = alone.kernel->save().value();
  for (auto& record : file.records) {
    // The state of the process: a count, then the packed tensor.
    if (record.name == "processes") record.bytes.back() = std::byte{0xff};
  }
  Alone other([](LpContext&) {});
  EXPECT_EQ(other.kernel->load(file).error().code(), Errc::malformed_payload);
}

std::map<std::pair<std::string, std::int64_t>, double> sums_of(const SirConfig& config) {
  const auto run = run_sequential<Sir>(config, {.end_time = 21, .seed = 5, .record = {.all = true}}).value();
  std::map<std::pair<std::string, std::int64_t>, double> sums;
  for (const Record& record : run.records) sums[{record.name, record.time.ticks}] += record.value;
  return sums;
}

TEST(Sir, TheSameAgentsCatchItInEveryLayout) {
  const auto whole = sums_of({.rows = 1, .columns = 1, .size = 16});
  EXPECT_GT(whole.at({"immune", units(20).ticks}), 5);
  EXPECT_EQ(whole, sums_of({.rows = 2, .columns = 2, .size = 8}));
  EXPECT_EQ(whole, sums_of({.rows = 4, .columns = 4, .size = 4}));
}

TEST(Sir, SM15_ACheckpointHasTheTensors) {
  const SirConfig config;
  const auto whole = make_kernel_of<Sir>(config, {.seed = 5}).value();
  ASSERT_TRUE(whole->start());
  ASSERT_TRUE(whole->run_until(units(10)));
  const auto file = whole->save().value();
  ASSERT_TRUE(whole->run_until(units(20)));
  const auto resumed = make_kernel_of<Sir>(config, {.seed = 5}).value();
  ASSERT_TRUE(resumed->load(file));
  ASSERT_TRUE(resumed->run_until(units(20)));
  EXPECT_EQ(resumed->hashes().value(), whole->hashes().value());
}

TEST(UniformFor, AgentsDrawTheSameInAnyShapeAndAsSpans) {
  const at::Tensor numbers = at::arange(12, at::kLong).view({3, 4});
  const at::Tensor drawn = UniformFor<at::Tensor>::draw(3, numbers, 7);
  EXPECT_EQ(drawn.sizes(), numbers.sizes());
  EXPECT_TRUE(UniformFor<at::Tensor>::draw(3, numbers.t(), 7).equal(drawn.t()));
  std::vector<double> plain(1);
  const std::uint64_t number = 6;
  uniform_for(3, {&number, 1}, 7, plain);
  EXPECT_EQ(drawn[1][2].item<double>(), plain[0]);
  EXPECT_THROW((void)UniformFor<at::Tensor>::draw(3, numbers.to(at::kDouble), 7), RpcException);
}

}  // namespace
}  // namespace caftan::sim::tensor_events_test

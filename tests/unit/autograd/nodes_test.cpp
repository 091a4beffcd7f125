// Recorded messages: what is recorded, what a peer may claim, and passes over one hop.
#include "caftan/autograd/internal/nodes.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/variable.h>

#include <cstring>

#include "caftan/tensor/codec.hpp"
#include "local_pass.hpp"

namespace caftan::autograd::test::nodes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RecordedMessage message(std::uint64_t number) {
  RecordedMessage made;
  made.context = {{}, {1}, 1};
  made.message = {{}, {1}, number};
  return made;
}

at::Tensor leaf(double value) { return at::full({3}, value).set_requires_grad(true); }

class Sink final : public GradientSink {
 public:
  void on_gradients(const RecordedMessage& of, std::vector<at::Tensor>&& gradients) override {
    numbers.push_back(of.message.number);
    last = std::move(gradients);
  }
  std::vector<std::uint64_t> numbers;
  std::vector<at::Tensor> last;
};

TEST(Recording, DA18_TheSenderAloneDecidesWhatIsRecorded) {
  const at::Tensor x = leaf(1);
  const std::vector<at::Tensor> tensors = {at::ones({2}), x, at::Tensor(), x * 2, at::ones({2}, at::kLong)};
  std::vector<std::uint8_t> recorded = {9};
  const std::shared_ptr<SendFunction> send = record_sent(message(1), tensors, recorded);
  ASSERT_TRUE(send);
  EXPECT_THAT(recorded, ElementsAre(0, 1, 0, 1, 0));
  EXPECT_EQ(send->next_edges().size(), 2u);
  EXPECT_EQ(send->next_edges()[1].function, tensors[3].grad_fn());

  const c10::AutoGradMode off(false);
  EXPECT_FALSE(record_sent(message(2), tensors, recorded));
  EXPECT_THAT(recorded, IsEmpty());

  // The receiver records what the message says, whatever its own grad mode.
  std::vector<at::Tensor> came = {at::ones({2}), at::ones({3})};
  const auto received = record_received(message(1), came, std::vector<std::uint8_t>{0, 1});
  ASSERT_TRUE(received && *received);
  EXPECT_FALSE(came[0].requires_grad());
  EXPECT_TRUE(came[1].requires_grad());
  EXPECT_EQ(message_of(**received).message, message(1).message);
}

TEST(Recording, NothingRecordedMakesNoNode) {
  std::vector<at::Tensor> came = {at::ones({2})};
  EXPECT_FALSE(*record_received(message(1), came, {}));
  EXPECT_FALSE(*record_received(message(1), came, std::vector<std::uint8_t>{0}));
  EXPECT_FALSE(came[0].requires_grad());
}

TEST(Recording, WhatAPeerClaimsInVainChangesNothing) {
  std::vector<at::Tensor> came = {at::ones({2}), at::ones({2}, at::kLong), at::Tensor()};
  for (const std::vector<std::uint8_t>& bits : {std::vector<std::uint8_t>{1, 1, 0}, {1, 0, 1}, {1, 0}, {1, 0, 0, 0}}) {
    const auto received = record_received(message(1), came, bits);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().code(), Errc::malformed_payload);
    EXPECT_FALSE(came[0].requires_grad());
  }
}

TEST(Recording, DA15_AStockBackwardOverAHopSaysWhatToUse) {
  std::vector<at::Tensor> came = {at::ones({3})};
  ASSERT_TRUE(record_received(message(7), came, std::vector<std::uint8_t>{1}));
  try {
    (came[0] * 2).sum().backward();
    FAIL() << "a stock backward crossed a hop";
  } catch (const RpcException& error) {
    EXPECT_EQ(error.error().code(), Errc::unsupported);
    EXPECT_THAT(error.error().text(), HasSubstr("use context.backward(roots): this graph crosses workers"));
    EXPECT_THAT(error.error().text(), HasSubstr("message 0.7"));
  }
}

std::vector<at::Tensor> travel(const std::vector<at::Tensor>& tensors, const std::vector<std::uint8_t>& recorded) {
  const auto encoded = tensor::encode_tensors(tensors, recorded);
  const auto layout = tensor::TensorLayout::parse(encoded->table, {});
  wire::BlockPool pool;
  std::vector<wire::Block> blocks;
  for (const wire::Segment& segment : encoded->segments) {
    blocks.push_back(std::move(pool.take(segment.size).value()));
    std::memcpy(blocks.back().data(), segment.data, segment.size);
  }
  std::vector<at::Tensor> made;
  const auto built = layout->build(std::move(blocks));
  for (const tensor::DecodedTensor& each : *built) made.push_back(each.tensor);
  return made;
}

TEST(Recording, DA20_ReceivedTensorsOverOneStorageSeeEachOthersChanges) {
  const at::Tensor whole = at::ones({4}).set_requires_grad(true) * 1;
  const std::vector<std::uint8_t> recorded = {1, 1};
  std::vector<at::Tensor> came = travel({whole, whole.slice(0, 0, 2)}, recorded);
  ASSERT_TRUE(record_received(message(1), came, recorded));
  const at::Tensor squared = (came[0] * came[0]).sum();
  came[1].add_(1);
  Sink sink;
  const std::unique_ptr<Engine> engine = make_engine({squared});
  const Result<Engine::RunSlice> ran = engine->run(kAll, sink);
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().text(), HasSubstr("modified by an inplace operation"));
}

/// A worker that sends x and receives twice x from its peer; the roots of the pass use the received tensors.
struct OneHop {
  OneHop() {
    std::vector<std::uint8_t> bits;
    send = record_sent(message(1), std::vector<at::Tensor>{x, x * 3}, bits);
    came = {at::full({3}, 5.0), at::full({3}, 7.0)};
    EXPECT_TRUE(record_received(message(2), came, std::vector<std::uint8_t>{1, 1}));
    Result<std::unique_ptr<Engine>> begun = Engine::begin({});
    engine = *std::move(begun);
  }
  Error feed(std::vector<at::Tensor> gradients) {
    const Result<void> fed = engine->feed(send->message().message, std::move(gradients));
    return fed ? Error() : fed.error();
  }
  at::Tensor x = leaf(1);
  std::shared_ptr<SendFunction> send;
  std::vector<at::Tensor> came;
  std::unique_ptr<Engine> engine;
  Sink sink;
};

TEST(OneHop, GradientsLeaveAndArrive) {
  OneHop hop;
  ASSERT_TRUE(hop.engine->add_roots(std::vector<at::Tensor>{(hop.came[0] * hop.x).sum()}));
  const Engine::WalkSlice walked = hop.engine->walk(kAll);
  ASSERT_EQ(walked.found.size(), 1u);
  EXPECT_EQ(walked.found[0].message, message(2).message);
  ASSERT_TRUE(hop.engine->mark(hop.send));
  ASSERT_TRUE(hop.engine->mark(hop.send)) << "again is not an error";
  EXPECT_TRUE(hop.engine->walk(kAll).done);
  Result<Engine::RunSlice> ran = hop.engine->run(kAll, hop.sink);
  ASSERT_TRUE(ran) << ran.error().message();
  EXPECT_TRUE(ran->idle);
  EXPECT_FALSE(ran->drained) << "a marked message has had no gradient";
  EXPECT_THAT(hop.sink.numbers, ElementsAre(2)) << "DA-6: once";
  EXPECT_TRUE(at::equal(hop.sink.last[0], at::ones({3})));
  EXPECT_FALSE(hop.sink.last[1].defined());

  EXPECT_EQ(hop.feed({at::full({3}, 10.0), at::full({3}, 100.0)}).code(), Errc::ok);
  EXPECT_GT(hop.engine->bytes(), 0u);
  ran = hop.engine->run(kAll, hop.sink);
  ASSERT_TRUE(ran) << ran.error().message();
  EXPECT_TRUE(ran->drained);
  EXPECT_TRUE(at::equal(hop.engine->take_staged().of(hop.x), at::full({3}, 5.0 + 10 + 300)));
  EXPECT_EQ(hop.engine->bytes(), 0u);
}

TEST(OneHop, UndefinedGradientsStayUndefined) {
  OneHop hop;
  ASSERT_TRUE(hop.engine->mark(hop.send));
  EXPECT_TRUE(hop.engine->walk(kAll).done);
  EXPECT_EQ(hop.feed({at::Tensor(), at::Tensor()}).code(), Errc::ok);
  EXPECT_TRUE(hop.engine->run(kAll, hop.sink)->drained);
  EXPECT_TRUE(hop.engine->take_staged().empty());
}

TEST(OneHop, GradientsThatDoNotFitAreRefused) {
  OneHop hop;
  const at::Tensor good = at::ones({3});
  EXPECT_THAT(hop.feed({good, good}).text(), HasSubstr("which is not marked"));
  ASSERT_TRUE(hop.engine->mark(hop.send));
  EXPECT_EQ(hop.feed({good, good}).code(), Errc::backward_failed) << "DA-4: not walked yet";
  EXPECT_TRUE(hop.engine->walk(kAll).done);
  for (const auto& [bad, what] : std::vector<std::pair<std::vector<at::Tensor>, std::string>>{
           {{good}, "1 gradients for message 0.1, which has 2 recorded tensors"},
           {{good, good, good}, "3 gradients"},
           {{good, at::ones({5, 3})}, "gradient 1 of message 0.1 has sizes [5, 3], its tensor has [3]"},
           {{at::ones({}), good}, "gradient 0 of message 0.1 has sizes []"},
           {{good, at::ones({3}, at::kDouble)}, "dtype Double, its tensor has Float"},
           {{good, at::ones({3}, at::TensorOptions(at::kMeta))}, "device meta, its tensor has cpu"}}) {
    const Error error = hop.feed(bad);
    EXPECT_EQ(error.code(), Errc::malformed_payload);
    EXPECT_THAT(error.text(), HasSubstr(what));
  }
  // A refused gradient leaves the pass as it was.
  EXPECT_EQ(hop.feed({good, good}).code(), Errc::ok);
  EXPECT_THAT(hop.feed({good, good}).text(), HasSubstr("a second time"));
  EXPECT_TRUE(hop.engine->run(kAll, hop.sink)->drained);
  EXPECT_EQ(hop.engine->mark(hop.send).error().code(), Errc::backward_failed) << "it runs already";
}

TEST(OneHop, ASparseGradientFitsADenseTensorAndTheOtherWayRound) {
  const at::Tensor dense = at::zeros({4, 2}).set_requires_grad(true);
  const at::Tensor rows = at::zeros({1, 1}, at::kLong);
  const at::Tensor sparse = at::sparse_coo_tensor(rows, at::ones({1, 2}), {4, 2});
  const at::Tensor sparse_leaf = sparse.clone().set_requires_grad(true);
  std::vector<std::uint8_t> bits;
  const auto send = record_sent(message(1), std::vector<at::Tensor>{dense, sparse_leaf}, bits);
  EXPECT_TRUE(send->check(std::vector<at::Tensor>{sparse, sparse}));
  EXPECT_TRUE(send->check(std::vector<at::Tensor>{sparse, at::zeros({4, 2})}));
  const Result<void> csr = send->check(std::vector<at::Tensor>{at::zeros({4, 2}).to_sparse_csr(), sparse});
  ASSERT_FALSE(csr);
  EXPECT_THAT(csr.error().text(), HasSubstr("layout SparseCsr"));
}

}  // namespace
}  // namespace caftan::autograd::test::nodes_test

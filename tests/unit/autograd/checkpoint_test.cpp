#include "caftan/autograd/checkpoint.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include "graph_program.hpp"
#include "local_pass.hpp"

namespace caftan::autograd::test::checkpoint_test {
namespace {

using ::testing::HasSubstr;

/// Four layers over one weight, each of them a segment or not.
struct Layers {
  explicit Layers(bool checkpointed) {
    at::manual_seed(7);
    weight = (at::rand({8, 8}) - 0.5).set_requires_grad(true);
    x = at::rand({5, 8}).set_requires_grad(true);
    const Segment layer = [this](const std::vector<at::Tensor>& in) {
      ++runs;
      inside = inside && is_inside_checkpoint();
      return std::vector<at::Tensor>{at::dropout(at::tanh(at::linear(in[0], weight)), 0.5, true)};
    };
    at::Tensor y = x;
    for (int i = 0; i < 4; ++i) y = checkpointed ? checkpoint(layer, {y})[0] : layer({y})[0];
    root = (y * y).sum() + weight.sum();
  }
  int runs = 0;
  bool inside = true;
  at::Tensor weight;
  at::Tensor x;
  at::Tensor root;
};

TEST(Checkpoint, BooksIntoThePassWhatTheSegmentWouldHaveFound) {
  Layers plain(false);
  plain.root.backward();
  Layers layers(true);
  const Result<GradientBook> book = backward({layers.root});
  ASSERT_TRUE(book) << book.error().message();
  EXPECT_EQ(layers.runs, 8);
  EXPECT_TRUE(layers.inside);
  EXPECT_FALSE(is_inside_checkpoint());
  EXPECT_EQ(bit_difference(plain.x.grad(), book->of(layers.x)), "") << "dropout was the same the second time";
  EXPECT_TRUE(book->of(layers.weight).allclose(plain.weight.grad()));
  EXPECT_FALSE(layers.weight.grad().defined());
}

TEST(Checkpoint, BooksIntoGradInAStockBackward) {
  Layers stock(true);
  stock.root.backward();
  Layers layers(true);
  const Result<GradientBook> book = backward({layers.root});
  EXPECT_EQ(bit_difference(stock.x.grad(), book->of(layers.x)), "");
  EXPECT_EQ(bit_difference(stock.weight.grad(), book->of(layers.weight)), "") << "added in the same order";
}

TEST(Checkpoint, BooksIntoGradInAStockBackwardInsideAPass) {
  Layers inner(true);
  const at::Tensor x = at::ones({3}).set_requires_grad(true);
  const at::Tensor y = x * 2;
  y.grad_fn()->add_pre_hook(std::make_unique<PreHook>([&inner](const variable_list& gradients) {
    const c10::AutoGradMode with_graph(true);
    inner.root.backward();
    return gradients;
  }));
  const Result<GradientBook> book = backward({y.sum()});
  ASSERT_TRUE(book) << book.error().message();
  EXPECT_FALSE(book->of(inner.weight).defined());
  EXPECT_TRUE(inner.weight.grad().defined());
}

TEST(Checkpoint, PutsTheRandomStateBack) {
  Layers layers(true);
  at::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(3);
  ASSERT_TRUE(backward({layers.root}));
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(Checkpoint, SegmentsInsideSegments) {
  const at::Tensor weight = at::full({3}, 2.0).set_requires_grad(true);
  const at::Tensor x = at::full({3}, 5.0).set_requires_grad(true);
  const Segment inner = [&weight](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{in[0] * weight};
  };
  const Segment outer = [&inner](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{checkpoint(inner, in)[0] * in[0]};
  };
  const Result<GradientBook> book = backward({checkpoint(outer, {x})[0].sum()});
  ASSERT_TRUE(book) << book.error().message();
  EXPECT_TRUE(at::equal(book->of(x), at::full({3}, 20.0)));
  EXPECT_TRUE(at::equal(book->of(weight), at::full({3}, 25.0)));
}

TEST(Checkpoint, WithoutGradientsTheSegmentJustRuns) {
  const at::Tensor weight = at::full({3}, 2.0).set_requires_grad(true);
  const Segment segment = [&weight](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{in[0] * weight};
  };
  const at::Tensor y = checkpoint(segment, {at::full({3}, 5.0)})[0];
  EXPECT_EQ(y.grad_fn()->name(), "MulBackward0");
  const Result<GradientBook> book = backward({y.sum()});
  EXPECT_TRUE(at::equal(book->of(weight), at::full({3}, 5.0)));
}

TEST(Checkpoint, InputsNeedGradientsTheSecondTimeAsTheFirst) {
  const at::Tensor table = at::ones({4, 3}).set_requires_grad(true);
  const at::Tensor rows = at::tensor({2, 0}, at::kLong);  // a tensor of integers cannot require a gradient at all
  const at::Tensor factor = at::full({3}, 5.0);
  std::vector<bool> needed;
  const Segment look_up = [&needed](const std::vector<at::Tensor>& in) {
    for (const at::Tensor& input : in) needed.push_back(input.requires_grad());
    return std::vector<at::Tensor>{at::index_select(in[0], 0, in[1]) * in[2]};
  };
  const Result<GradientBook> book = backward({checkpoint(look_up, {table, rows, factor})[0].sum()});
  ASSERT_TRUE(book) << book.error().message();
  EXPECT_EQ(needed, (std::vector<bool>{true, false, false, true, false, false}));
  EXPECT_TRUE(at::equal(book->of(table).sum(1), at::tensor({15.0F, 0.0F, 15.0F, 0.0F})));
}

TEST(Checkpoint, InputsThatChangedOrWereFreedAreErrors) {
  at::Tensor x = at::ones({3}).set_requires_grad(true) * 1;
  const Segment doubled = [](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0] * 2}; };
  const at::Tensor root = checkpoint(doubled, {x})[0].sum();
  ASSERT_TRUE(backward({root}, /*keep_graph=*/true));
  ASSERT_TRUE(backward({root}));
  EXPECT_THAT(backward({root}).error().text(), HasSubstr("a second time"));
  const at::Tensor again = checkpoint(doubled, {x})[0].sum();
  x.add_(1);
  EXPECT_THAT(backward({again}).error().text(), HasSubstr("modified by an inplace operation"));
}

TEST(Checkpoint, ASegmentThatGivesSomethingElseTheSecondTimeIsAnError) {
  const at::Tensor x = at::ones({3}).set_requires_grad(true);
  int runs = 0;
  const Segment fickle = [&runs](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>(static_cast<std::size_t>(++runs), in[0] * 2);
  };
  EXPECT_THAT(backward({checkpoint(fickle, {x})[0].sum()}).error().text(),
              HasSubstr("gave 1 results the first time and 2 the second time"));
}

TEST(Checkpoint, AResultFromAnotherWorkerInASegmentIsATypedError) {
  const at::Tensor x = at::ones({3}).set_requires_grad(true);
  const Segment calls = [](const std::vector<at::Tensor>& in) {
    std::vector<at::Tensor> came = {at::ones({3})};
    EXPECT_TRUE(record_received({}, came, std::vector<std::uint8_t>{1}));
    return std::vector<at::Tensor>{in[0] * came[0]};
  };
  const Result<GradientBook> book = backward({checkpoint(calls, {x})[0].sum()});
  ASSERT_FALSE(book);
  EXPECT_THAT(book.error().text(), HasSubstr("CheckpointFunction: a checkpointed segment calls another worker"));
  ASSERT_TRUE(book.error().cause());
  EXPECT_EQ(book.error().cause()->code(), Errc::unsupported);
}

}  // namespace
}  // namespace caftan::autograd::test::checkpoint_test

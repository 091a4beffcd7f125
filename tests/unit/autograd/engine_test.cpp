#include "caftan/autograd/engine.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace caftan::autograd {
namespace {

class NoPeers final : public GradientSink {
 public:
  void on_gradients(const RecordedMessage&, std::vector<at::Tensor>&&) override { ADD_FAILURE() << "no hop here"; }
};

TEST(Engine, RunsALocalGraphAsTorchDoes) {
  const at::Tensor x = at::full({3}, 2.0).set_requires_grad(true);
  const at::Tensor y = (x * x + x).sum();
  Result<std::unique_ptr<Engine>> engine = Engine::begin({});
  ASSERT_TRUE(engine);
  const at::Tensor roots[] = {y};
  ASSERT_TRUE((*engine)->add_roots(roots));
  EXPECT_TRUE((*engine)->walk(1000).done);
  NoPeers none;
  const Result<Engine::RunSlice> ran = (*engine)->run(1000, none);
  ASSERT_TRUE(ran) << ran.error().message();
  EXPECT_TRUE(ran->drained);
  EXPECT_TRUE(at::equal((*engine)->take_staged().of(x), at::full({3}, 5.0)));
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace caftan::autograd

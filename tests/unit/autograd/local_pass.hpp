/// One worker's pass from begin to end, and hooks to put into graphs.
#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/autograd/internal/engine.hpp"

namespace caftan::autograd::test {

using torch::autograd::variable_list;

/// For graphs without hops.
class NoPeers final : public GradientSink {
 public:
  void on_gradients(const RecordedMessage&, std::vector<at::Tensor>&&) override { ADD_FAILURE() << "a hop"; }
};

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

inline std::unique_ptr<Engine> make_engine(const std::vector<at::Tensor>& roots, bool keep_graph = false,
                                           const ContextId& context = {}) {
  Result<std::unique_ptr<Engine>> engine = Engine::begin({.context = context, .keep_graph = keep_graph});
  EXPECT_TRUE(engine);
  const Result<void> added = (*engine)->add_roots(roots);
  EXPECT_TRUE(added) << added.error().message();
  EXPECT_TRUE((*engine)->walk(kAll).done);
  return *std::move(engine);
}

/// Returns the gradients that a pass from `roots` gives the leaves, or the pass's error.
inline Result<GradientBook> backward(const std::vector<at::Tensor>& roots, bool keep_graph = false) {
  const std::unique_ptr<Engine> engine = make_engine(roots, keep_graph);
  NoPeers none;
  const Result<Engine::RunSlice> ran = engine->run(kAll, none);
  if (!ran) return ran.error();
  EXPECT_TRUE(ran->drained);
  return engine->take_staged();
}

class PreHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit PreHook(std::function<variable_list(const variable_list&)> run) : run_(std::move(run)) {}
  variable_list operator()(const variable_list& gradients) override { return run_(gradients); }

 private:
  const std::function<variable_list(const variable_list&)> run_;
};

class PostHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit PostHook(std::function<void()> run) : run_(std::move(run)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    run_();
    return outputs;
  }

 private:
  const std::function<void()> run_;
};

}  // namespace caftan::autograd::test

// Programs of calls with a backward pass, run in Caftan and with PyTorch's own contexts and engine: the gradients are
// compared. They must be equal bit for bit where a tensor's gradient has at most two contributions, or where sums are
// exact; the reference adds further contributions in the order in which they arrive.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "world.hpp"

namespace caftan::parity::parity_test {
namespace {

/// A program of calls. Returns the values and gradients that are compared.
using Program = std::function<Tensors(Driver&)>;

constexpr double kTolerance = 1e-12;  // relative, for float64: the rounding of one sum in another order

at::Tensor leaf() { return at::tensor({1, -2, 3, 4}, at::kDouble).requires_grad_(); }

class Parity : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void compare(const Program& program, double tolerance = 0) {
    const auto ours = caftan_side(GetParam())();
    const auto theirs = reference_side()();
    const Tensors a = program(*ours);
    const Tensors b = program(*theirs);
    ASSERT_EQ(a.size(), b.size());
    bool any = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].defined(), b[i].defined()) << "result " << i;
      if (!a[i].defined()) continue;
      any = any || a[i].abs().sum().item<double>() > 0;
      const bool same = tolerance == 0 ? at::equal(a[i], b[i]) : at::allclose(a[i], b[i], tolerance, 0);
      EXPECT_TRUE(same) << "result " << i << ":\n" << a[i] << "\nin the reference:\n" << b[i];
    }
    EXPECT_TRUE(any) << "nothing was compared";
  }
  /// Returns the gradients of the weights of all workers.
  static Tensors weights(Driver& driver) {
    Tensors all;
    for (int rank = 0; rank < kWorkers; ++rank) all.push_back(driver.call(rank, "weight gradient", {}));
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Parity, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(Parity, OneHop) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    const at::Tensor y = d.call(1, "weigh", {x});
    d.backward({y.sum()}, false);
    return {y.detach(), d.gradient(x), d.call(1, "weight gradient", {})};
  });
}

TEST_P(Parity, AChainOfRoundTrips) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    at::Tensor y = x;
    for (int i = 0; i < 9; ++i) y = d.call(1 + i % 3, i % 2 == 0 ? "tanh" : "negate", {y});
    d.backward({y.sum()}, false);
    return {y.detach(), d.gradient(x)};
  });
}

TEST_P(Parity, NestedCallsThroughAllWorkersAndBack) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    const at::Tensor y = d.call(1, "relay 230123", {x});
    d.backward({y.sum()}, false);
    Tensors results = weights(d);
    results.push_back(d.gradient(x));
    return results;
  });
}

TEST_P(Parity, AFanOut) {
  const auto fan = [](const char* function) {
    return [function](Driver& d) -> Tensors {
      const at::Tensor x = leaf();
      at::Tensor loss = d.call(1, function, {x}).sum();
      for (int rank = 2; rank < kWorkers; ++rank) loss = loss + d.call(rank, function, {x}).sum() * rank;
      d.backward({loss}, false);
      return {d.gradient(x)};
    };
  };
  compare(fan("square"));
  compare(fan("tanh"), kTolerance);
}

TEST_P(Parity, OneTensorInSeveralCallsAndHere) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    const at::Tensor y = d.call(1, "multiply", {x, x}) + d.call(1, "weigh", {x}) * x + d.call(2, "use twice", {x});
    d.backward({(y * y).sum()}, false);
    Tensors results = weights(d);
    results.push_back(d.gradient(x));
    return results;
  });
}

TEST_P(Parity, ACallToOneself) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    d.backward({(d.call(0, "weigh", {x}) * d.leaves().weight).sum()}, false);
    return {d.gradient(x), d.gradient(d.leaves().weight)};
  });
}

TEST_P(Parity, SeveralPassesOverOneGraph) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    const at::Tensor y = d.call(1, "relay 2", {x});
    const at::Tensor z = d.call(3, "square", {y});
    Tensors results;
    for (int pass = 0; pass < 3; ++pass) {
      d.backward({z.sum()}, pass < 2);
      results.push_back(d.gradient(x).clone());
      for (const at::Tensor& gradient : weights(d)) results.push_back(gradient);
    }
    return results;
  });
}

TEST_P(Parity, SeveralRoots) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf();
    Tensors roots;
    for (int rank = 1; rank < kWorkers; ++rank) roots.push_back(d.call(rank, "weigh", {x}).sum());
    d.backward(roots, false);
    Tensors results = weights(d);
    results.push_back(d.gradient(x));
    return results;
  });
}

TEST_P(Parity, OnlyTheCalleeHasALeaf) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor x = leaf().detach();
    d.backward({d.call(2, "relay 31", {x}).sum()}, false);
    return weights(d);
  });
}

TEST_P(Parity, SparseGradientsOfATable) {
  compare([](Driver& d) -> Tensors {
    const at::Tensor rows = at::tensor({4, 0, 4, 2}, at::kLong);
    const at::Tensor embedded = d.call(1, "look up", {rows}) + d.call(1, "look up", {rows.flip(0)});
    d.backward({(embedded * embedded).sum()}, false);
    return {embedded.detach(), d.call(1, "table gradient", {})};
  });
}

TEST_P(Parity, ContextsDoNotShareGradients) {
  for (int context = 0; context < 3; ++context) {
    compare([context](Driver& d) -> Tensors {
      const at::Tensor x = leaf();
      d.backward({d.call(1, "relay 23", {x * (context + 1)}).sum()}, false);
      Tensors results = weights(d);
      results.push_back(d.gradient(x));
      return results;
    });
  }
}

/// Makes random calls and local operations on the results so far. The loss uses every result that no operation uses,
/// because the reference would wait for an unused result for ever.
Tensors random_program(std::uint64_t seed, Driver& d) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const Tensors leaves = {leaf(), leaf().detach().neg().requires_grad_()};
  Tensors all = leaves;
  std::vector<bool> used(all.size(), true);
  int products = 3;  // values stay exact
  for (int i = 0; i < 40; ++i) {
    const std::size_t a = draw(all.size()), b = draw(all.size());
    const int rank = static_cast<int>(draw(kWorkers));
    static const char* const kFunctions[] = {"negate", "weigh", "add", "matmul", "use twice", "relay 12", "multiply"};
    const std::string function = kFunctions[draw(products > 0 && i < 12 ? 7 : 4)];
    products -= function == "use twice" || function == "multiply" || function == "relay 12" ? 1 : 0;
    Tensors arguments = {all[a]};
    if (function == "add" || function == "multiply") arguments.push_back(all[b]);
    used[a] = true;
    if (arguments.size() == 2) used[b] = true;
    all.push_back(draw(4) == 0 ? run(d, function, arguments) : d.call(rank, function, arguments));
    used.push_back(false);
  }
  at::Tensor loss = at::tensor({0.0}, at::kDouble).sum();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!used[i]) loss = loss + all[i].sum();
  }
  d.backward({loss}, false);
  Tensors results = {loss.detach()};
  for (const at::Tensor& x : leaves) results.push_back(d.gradient(x));
  for (int rank = 0; rank < kWorkers; ++rank) results.push_back(d.call(rank, "weight gradient", {}));
  return results;
}

TEST_P(Parity, RandomPrograms) {
  constexpr double kExact = 9007199254740992;  // 2^53
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t seed = 10 * GetParam() + i;
    SCOPED_TRACE("program " + std::to_string(seed));
    compare([seed](Driver& d) {
      Tensors results = random_program(seed, d);
      for (const at::Tensor& t : results) {
        EXPECT_TRUE(!t.defined() || t.abs().max().item<double>() < kExact) << "sums of this program are not exact";
      }
      return results;
    });
  }
}

}  // namespace
}  // namespace caftan::parity::parity_test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  caftan::parity::ReferenceProcesses processes;
  const int code = RUN_ALL_TESTS();
  std::fflush(nullptr);
  processes.leave(code);
}

#include "random_graph_suites.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include "simulated_workers.hpp"

namespace caftan::autograd::test {
namespace {

using Threads = SimulatedWorkers::Threads;

/// By worker and leaf.
using Gradients = std::vector<std::vector<at::Tensor>>;

class Suite {
 public:
  explicit Suite(Numbers numbers) : numbers_(numbers) {}

  /// Returns whether the program could be used.
  bool try_one(std::uint64_t seed) {
    seed_ = seed;
    workers_ = 2 + static_cast<int>(seed % 3);
    bodies_ = 12 + static_cast<int>(seed % 7);
    IdentityHops identity;
    const Program local = run_program(seed, numbers_, workers_, bodies_, identity);
    if (local.gradient_bound >= kExact) return false;
    torch::autograd::backward(local.roots, {}, /*retain_graph=*/false);
    Gradients expected;
    for (const auto& leaves : local.leaves) {
      expected.emplace_back();
      for (const at::Tensor& leaf : leaves) expected.back().push_back(leaf.grad());
    }
    operations_.push_back(local.operations);

    // One thread, one body: equal to torch's engine. Twice over one graph: equal to itself in another order.
    SimulatedWorkers workers(workers_, Threads::one_body);
    const Program spread = run_program(seed, numbers_, workers_, bodies_, workers);
    SimulatedWorkers::Outcome outcome = workers.backward(spread.roots, seed * 7 + 1, /*keep_graph=*/true);
    compare("the local graph", expected, collect(spread, outcome));
    count(outcome);
    compare("another order of delivery", expected, collect(spread, workers.backward(spread.roots, seed * 7 + 2)));

    // Bodies on threads of their own: equal to the same bodies on one thread, where scheduling numbers nodes otherwise.
    const Gradients one_thread = distributed(Threads::one_thread, 3);
    compare("bodies on threads of their own", one_thread, distributed(Threads::many_threads, 4));
    const Gradients loose = distributed(Threads::loose, 5);
    compare("loose nodes on other threads", loose, distributed(Threads::loose, 6));
    if (numbers_ == Numbers::small_integers) {
      // The order of a sparse gradient's entries may differ, their sums may not.
      compare("bodies", dense(expected), dense(one_thread));
      compare("loose nodes", dense(expected), dense(loose));
    }
    return true;
  }

  SuiteResult result(std::size_t graphs) {
    SuiteResult result;
    result.graphs = graphs;
    result.first_failure = failure_;
    result.median_operations = median(operations_);
    result.median_hops = median(hops_);
    result.unused_graphs = unused_graphs_;
    result.reentrant_graphs = reentrant_graphs_;
    result.reordered = reordered_;
    print("marked messages (hops)", hops_);
    print("unused messages", unused_);
    print("re-entries", reentries_);
    return result;
  }

 private:
  Gradients distributed(Threads threads, std::uint64_t order) const {
    SimulatedWorkers workers(workers_, threads, seed_ * 7 + order);
    const Program program = run_program(seed_, numbers_, workers_, bodies_, workers);
    return collect(program, workers.backward(program.roots, seed_ * 7 + order));
  }

  static Gradients collect(const Program& program, const SimulatedWorkers::Outcome& outcome) {
    Gradients gradients;
    for (std::size_t worker = 0; worker < program.leaves.size(); ++worker) {
      gradients.emplace_back();
      for (const at::Tensor& leaf : program.leaves[worker]) {
        gradients.back().push_back(outcome.books[worker].of(leaf));
        if (leaf.grad().defined()) gradients.back().back() = at::Tensor();  // Row 16.05: `.grad` is left alone
      }
    }
    return gradients;
  }

  static Gradients dense(Gradients gradients) {
    for (auto& leaves : gradients) {
      for (at::Tensor& gradient : leaves) {
        if (gradient.defined()) gradient = gradient.to_dense();
      }
    }
    return gradients;
  }

  void count(const SimulatedWorkers::Outcome& outcome) {
    hops_.push_back(outcome.marked);
    unused_.push_back(outcome.unused);
    reentries_.push_back(outcome.reentries);
    unused_graphs_ += outcome.unused > 0 ? 1 : 0;
    reentrant_graphs_ += outcome.reentries > 0 ? 1 : 0;
    reordered_ += outcome.early;
  }

  void compare(const char* with, const Gradients& expected, const Gradients& actual) {
    for (std::size_t worker = 0; worker < expected.size(); ++worker) {
      for (std::size_t i = 0; i < expected[worker].size(); ++i) {
        const std::string what = bit_difference(expected[worker][i], actual[worker][i]);
        if (what.empty() || !failure_.empty()) continue;
        std::ostringstream text;
        text << "seed " << seed_ << ", against " << with << ", worker " << worker << ", leaf " << i << ": " << what;
        failure_ = text.str();
      }
    }
  }

  static std::size_t median(std::vector<std::size_t> values) {
    if (values.empty()) return 0;
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  static void print(const char* what, const std::vector<std::size_t>& values) {
    std::map<std::size_t, std::size_t> buckets;
    for (const std::size_t value : values) ++buckets[value / 4];
    std::cout << what << ':';
    for (const auto& [bucket, count] : buckets) {
      std::cout << "  " << 4 * bucket << '-' << 4 * bucket + 3 << ": " << count;
    }
    std::cout << '\n';
  }

  const Numbers numbers_;
  std::uint64_t seed_ = 0;
  int workers_ = 0;
  int bodies_ = 0;
  std::string failure_;
  std::vector<std::size_t> operations_;
  std::vector<std::size_t> hops_;
  std::vector<std::size_t> unused_;
  std::vector<std::size_t> reentries_;
  std::size_t unused_graphs_ = 0;
  std::size_t reentrant_graphs_ = 0;
  std::size_t reordered_ = 0;
};

}  // namespace

SuiteResult run_suite(Numbers numbers, std::uint64_t first_seed, std::size_t graphs) {
  Suite suite(numbers);
  std::size_t used = 0;
  for (std::uint64_t seed = first_seed; used < graphs; ++seed) used += suite.try_one(seed) ? 1 : 0;
  return suite.result(used);
}

}  // namespace caftan::autograd::test

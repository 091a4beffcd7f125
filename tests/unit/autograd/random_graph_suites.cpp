#include "random_graph_suites.hpp"

#include <optional>
#include <string>

#include "graph_oracle.hpp"
#include "simulated_workers.hpp"

namespace caftan::autograd::test {
namespace {

using Threads = SimulatedWorkers::Threads;

class Suite {
 public:
  explicit Suite(Numbers numbers) : numbers_(numbers) {}

  /// Runs the program of this seed. Returns false if its gradients may be too large to be exact: it does not count
  /// then.
  bool try_one(std::uint64_t seed) {
    one_ = Case{seed, numbers_};
    const std::optional<LocalRun> local = run_locally(one_);
    if (!local) return false;
    const LeafGradients& expected = local->gradients;
    operations_.add(local->operations);

    // With one thread and one span the gradients equal those of torch's engine. A second pass over the same graph gives
    // equal gradients in another order of events.
    SimulatedWorkers workers(one_.workers, Threads::one_span);
    const Program spread = one_.run(workers);
    SimulatedWorkers::Outcome outcome = workers.backward(spread.roots, seed * 7 + 1, /*keep_graph=*/true);
    compare("the local graph", expected, collect(spread, outcome));
    count(outcome);
    compare("another order of delivery", expected, collect(spread, workers.backward(spread.roots, seed * 7 + 2)));

    // Called functions as spans on threads of their own give the same bits as on one thread, where libtorch numbers the
    // nodes otherwise.
    const LeafGradients one_thread = distributed(Threads::one_thread, 3);
    compare("spans on threads of their own", one_thread, distributed(Threads::many_threads, 4));
    const LeafGradients loose = distributed(Threads::loose, 5);
    compare("loose nodes on other threads", loose, distributed(Threads::loose, 6));
    if (numbers_ == Numbers::small_integers) {
      compare("spans", to_dense(expected), to_dense(one_thread));
      compare("loose nodes", to_dense(expected), to_dense(loose));
    }
    return true;
  }

  SuiteResult result(std::size_t graphs) {
    SuiteResult result;
    result.graphs = graphs;
    result.first_failure = failure_;
    result.median_operations = operations_.median();
    result.median_hops = hops_.median();
    result.unused_graphs = unused_.above_zero();
    result.reentrant_graphs = reentries_.above_zero();
    result.reordered = reordered_;
    for (const Histogram* one : {&hops_, &unused_, &reentries_}) one->print();
    return result;
  }

 private:
  LeafGradients distributed(Threads threads, std::uint64_t order) const {
    SimulatedWorkers workers(one_.workers, threads, one_.seed * 7 + order);
    const Program program = one_.run(workers);
    return collect(program, workers.backward(program.roots, one_.seed * 7 + order));
  }

  static LeafGradients collect(const Program& program, const SimulatedWorkers::Outcome& outcome) {
    LeafGradients gradients;
    for (std::size_t worker = 0; worker < program.leaves.size(); ++worker) {
      gradients.emplace_back();
      for (const at::Tensor& leaf : program.leaves[worker]) {
        gradients.back().push_back(outcome.books[worker].of(leaf));
        if (leaf.grad().defined()) gradients.back().back() = at::Tensor();  // Row 16.05: `.grad` is left alone
      }
    }
    return gradients;
  }

  void count(const SimulatedWorkers::Outcome& outcome) {
    hops_.add(outcome.marked);
    unused_.add(outcome.unused);
    reentries_.add(outcome.reentries);
    reordered_ += outcome.early;
  }

  void compare(const char* with, const LeafGradients& expected, const LeafGradients& actual) {
    if (!failure_.empty()) return;
    const std::string what = first_difference(expected, actual);
    if (what.empty()) return;
    failure_ = "seed " + std::to_string(one_.seed) + ", against " + with + ", " + what;
  }

  const Numbers numbers_;
  Case one_{};
  std::string failure_;
  Histogram operations_{"operations"};
  Histogram hops_{"marked messages (hops)"};
  Histogram unused_{"unused messages"};
  Histogram reentries_{"re-entries"};
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

/// What the suites of random graphs compare with and print: the gradients of a program in one local graph by torch's
/// own engine, the first difference to them, and histograms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph_program.hpp"

namespace caftan::autograd::test {

/// Gradients by worker and leaf, in the order of Program::leaves.
using LeafGradients = std::vector<std::vector<at::Tensor>>;

/// One of a suite's programs.
struct Case {
  std::uint64_t seed;
  Numbers numbers;
  int workers = 2 + static_cast<int>(seed % 3);
  int spans = 12 + static_cast<int>(seed % 7);
  Roots roots = seed % 4 == 0 ? Roots::all : Roots::a_few;

  Program run(Hops& hops) const { return run_program(seed, numbers, workers, spans, roots, hops); }
};

struct LocalRun {
  LeafGradients gradients;
  std::size_t operations;
};

/// Runs a program and its backward pass in one graph. Returns nothing if its gradients may be too large to be exact.
std::optional<LocalRun> run_locally(const Case& one);

/// Returns the gradients as dense tensors, since equal sparse ones may hold their entries in another order.
LeafGradients to_dense(LeafGradients gradients);

/// Returns the first difference in bits, "worker 1, leaf 0: ..."; empty if there is none.
std::string first_difference(const LeafGradients& expected, const LeafGradients& actual);

/// One number of each graph.
class Histogram {
 public:
  /// @param bucket  width: how many neighbouring values `print` counts together
  explicit Histogram(std::string what, std::size_t bucket = 4) : what_(std::move(what)), bucket_(bucket) {}

  void add(std::size_t value) { ++counts_[value]; }
  std::size_t median() const;
  /// Returns for how many graphs the number was not 0.
  std::size_t above_zero() const;
  /// Writes one line to the standard output.
  void print() const;

 private:
  const std::string what_;
  const std::size_t bucket_;
  std::map<std::size_t, std::size_t> counts_;
};

}  // namespace caftan::autograd::test

/// The two suites of random graphs, in any number: the unit test runs hundreds, the soak test ten thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "graph_program.hpp"

namespace caftan::autograd::test {

struct SuiteResult {
  std::size_t graphs = 0;
  std::string first_failure;  ///< empty when all are right
  std::size_t median_operations = 0;
  std::size_t median_hops = 0;
  std::size_t unused_graphs = 0;  ///< with at least one message that the roots do not use
  std::size_t reentrant_graphs = 0;
  std::size_t reordered = 0;  ///< gradients that overtook others
};

/// Compares `graphs` random programs over 2 to 4 workers with one local graph, and each with itself under other orders
/// of delivery and other threads. Prints histograms of hops, unused messages and re-entries.
SuiteResult run_suite(Numbers numbers, std::uint64_t first_seed, std::size_t graphs);

}  // namespace caftan::autograd::test

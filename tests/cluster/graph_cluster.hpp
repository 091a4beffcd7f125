/// Random programs (tests/support/graph_program.hpp) over real Workers: recorded by calls, differentiated by
/// `Context::backward`, in the stepped cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "graph_oracle.hpp"

namespace caftan::test {

/// Which calls the code of a program runs in.
enum class Spans {
  calls,     ///< each span is a call of its own; messages are arguments or results
  one_each,  ///< all of a worker's code is one call, so sums come in the local graph's order; messages are arguments
};

struct GraphRun {
  autograd::test::LeafGradients gradients;  ///< gradients after a SMART pass that keeps the graph
  Result<void> fast;                        ///< outcome of a FAST pass after the SMART one
  autograd::test::LeafGradients both;       ///< after both passes
  std::vector<std::string> trace;           ///< the messages of the first pass, in the order in which they were sent
  std::size_t recorded = 0;                 ///< messages that the program has recorded
  std::size_t awaited = 0;   ///< messages that a FAST pass waits for: those of the workers that the pass reaches
  std::size_t marked = 0;    ///< messages that got a gradient in the first pass
  std::size_t returned = 0;  ///< gradients that came back to the initiator
  std::size_t left = 0;      ///< contexts that are open when no task is left to run
};

/// @param order  seed of the order in which everything happens
GraphRun run_over_cluster(const autograd::test::Case& one, Spans spans, std::uint64_t order);

}  // namespace caftan::test

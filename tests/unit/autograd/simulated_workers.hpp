/// Several workers in one process, each with its own graph, and messages between them that arrive in any order: a
/// backward pass as docs/protocols/dist_autograd.md has it, marks first, without its failures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "caftan/autograd/internal/engine.hpp"
#include "graph_program.hpp"

namespace caftan::autograd::test {

class SimulatedWorkers final : public Hops {
 public:
  /// On which threads the called functions run, and how they are divided into spans.
  enum class Threads {
    one_span,      ///< all on this thread, as one program
    one_thread,    ///< each a span of its own, all on this thread
    many_threads,  ///< each a span of its own, some on new threads
    loose,         ///< some on new threads, without marks where a span of code begins and ends
  };

  /// @param schedule  which spans get a new thread, and how much else their thread has recorded before
  SimulatedWorkers(int workers, Threads threads, std::uint64_t schedule = 0);

  void run_span(int worker, std::uint64_t key, const std::function<void()>& code) override;
  /// Through the tensor codec, as between workers.
  std::vector<at::Tensor> move(int from, int to, const std::vector<at::Tensor>& tensors,
                               std::uint64_t order_key) override;

  struct Outcome {
    std::vector<GradientBook> books;  ///< by worker
    std::size_t marked = 0;           ///< messages
    std::size_t unused = 0;           ///< messages that were recorded and that the roots do not use
    /// marked messages whose way from the roots had passed their sender before
    std::size_t reentries = 0;
    std::size_t early = 0;  ///< gradients that were fed before others that had been sent earlier
  };
  /// Runs a pass from `roots` at worker 0. Order of events and length of slices come from `seed`.
  Outcome backward(const std::vector<at::Tensor>& roots, std::uint64_t seed, bool keep_graph = false);

 private:
  struct Message {
    std::shared_ptr<SendFunction> send;
    int from;
    int to;
  };

  const Threads threads_;
  std::mt19937_64 schedule_;
  std::vector<std::vector<CodeSpan>> spans_;
  std::vector<Message> messages_;  ///< message number n has id n + 1
  friend class SimulatedPass;
};

}  // namespace caftan::autograd::test

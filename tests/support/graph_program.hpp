/// Random programs over several workers whose gradients are to be compared: the same program runs on one thread in one
/// graph, and spread over workers. What it does depends on its seed alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace caftan::autograd::test {

/// Moves tensors between workers, and runs the spans of called functions.
class Hops {
 public:
  virtual ~Hops() = default;
  /// Runs `code` as the span `key` of a function called at `worker`.
  virtual void run_span(int worker, std::uint64_t key, const std::function<void()>& code) = 0;
  /// Sends `tensors`, all different, in one message. Returns them as they arrive.
  virtual std::vector<at::Tensor> move(int from, int to, const std::vector<at::Tensor>& tensors,
                                       std::uint64_t order_key) = 0;
};

/// Runs a program in one graph for all workers, with an identity at each hop: the graph that a distributed one is
/// compared with.
class IdentityHops final : public Hops {
 public:
  void run_span(int worker, std::uint64_t key, const std::function<void()>& code) override;
  std::vector<at::Tensor> move(int from, int to, const std::vector<at::Tensor>& tensors,
                               std::uint64_t order_key) override;
};

enum class Numbers {
  small_integers,  ///< float64; every sum and product is exact, so any order of summation gives the same bits
  floats,          ///< float32, and operations that round, saturate, return sparse gradients or none
};

struct Program {
  std::vector<std::vector<at::Tensor>> leaves;  ///< by worker
  std::vector<at::Tensor> roots;                ///< scalars at worker 0
  std::size_t operations = 0;
  std::size_t hops = 0;
  double gradient_bound = 0;  ///< upper bound of all gradients and partial sums; known for small integers only
};

/// Up to this number float64 adds and multiplies integers exactly.
constexpr double kExact = 9007199254740992.0;

/// Which tensors become the roots.
enum class Roots {
  a_few,  ///< two to four of worker 0's values: many other values and messages have no part in the gradients
  all,    ///< every value of every worker, so that no message is unused
};

/// @param spans  called functions, each of a few operations
Program run_program(std::uint64_t seed, Numbers numbers, int workers, int spans, Roots roots, Hops& hops);

/// Returns what differs between two gradients, to the last bit and in the layout, too; empty when nothing does.
std::string bit_difference(const at::Tensor& expected, const at::Tensor& actual);

}  // namespace caftan::autograd::test

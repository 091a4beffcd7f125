/// The benchmark's policy: it learns nothing, it only costs what a policy costs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/random.hpp"

namespace caftan::rl_bench {

/// Linear n -> out, `nlayers` times Linear out -> out, softmax over the actions of each state.
/// Threads: one at a time.
/// Source: the Policy of PyTorch's benchmarks/distributed/rpc/rl. Its softmax is over the states of a batch, so that
/// what one observer gets depends on the others; this one is over the actions.
class DummyPolicy {
 public:
  /// @param state_size    each >= 1
  /// @param out_features  >= 1
  DummyPolicy(std::vector<std::int64_t> state_size, std::int64_t nlayers, std::int64_t out_features,
              std::uint64_t seed);

  /// Errors: bad_arguments (a state of another shape, or not of float32 on the CPU).
  Result<void> check(const at::Tensor& state) const;

  /// Draws an action for each state, with one forward pass for all. Precondition: each passes `check`; not empty.
  std::vector<int> choose(const std::vector<at::Tensor>& states);

 private:
  struct Layer {
    at::Tensor weight;  ///< [in, out]
    at::Tensor bias;    ///< [out]
  };

  std::vector<std::int64_t> state_size_;
  std::vector<Layer> layers_;
  rl::Pcg64 random_;
};

}  // namespace caftan::rl_bench

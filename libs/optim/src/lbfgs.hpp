/// `Lbfgs`: the steps of LBFGS over all parameters of an optimizer, one evaluation of their function after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "caftan/optim/algorithms.hpp"
#include "strong_wolfe.hpp"

namespace caftan::optim {

/// What LBFGS remembers from step to step. No tensor in it is ever changed in place.
struct LbfgsMemory {
  /// How one iteration changed the parameters and their gradient.
  struct Change {
    at::Tensor gradient;   ///< flat
    at::Tensor parameter;  ///< flat
    at::Tensor inverse;    ///< 1 / (gradient . parameter), a scalar
  };
  std::uint64_t iterations = 0;
  std::uint64_t evaluations = 0;
  double t = 0;  ///< of the last iteration, steps along its direction
  double previous_loss = 0;
  at::Tensor direction;          ///< flat, of the last iteration; undefined before the first
  at::Tensor previous_gradient;  ///< flat, where the last iteration began
  at::Tensor scale;              ///< of the first estimate of the inverse Hessian, a scalar
  std::deque<Change> history;    ///< the oldest first
};

/// A step is `begin`; then `advance` with the loss and gradient where the parameters are, and `move` of all parameters,
/// until `advance` returns false; after that, one more `move`. The arithmetic is that of torch::optim::LBFGS, bit for
/// bit. Parameters are changed by `move` and `roll_back` alone. Threads: one at a time. Source: torch.optim.LBFGS.
class Lbfgs {
 public:
  /// @param parameters  of one dtype
  explicit Lbfgs(std::vector<at::Tensor> parameters);

  bool is_open() const noexcept { return phase_ != Phase::closed; }
  const LbfgsMemory& memory() const noexcept { return memory_; }
  /// Precondition: no step is open.
  void set_memory(LbfgsMemory memory) { memory_ = std::move(memory); }

  /// Begins a step with these options. Precondition: no step is open.
  void begin(const LBFGS& options);
  /// Takes the function where the parameters are. Returns whether another evaluation is wanted, after `move`.
  /// Precondition: a step is open. Throws what libtorch throws; `roll_back` is all that may follow then.
  /// @param gradients  one per parameter, undefined where there is none
  bool advance(double loss, std::span<const at::Tensor> gradients);
  /// Moves the parameters `which` (numbers) to where `advance` wants them.
  void move(std::span<const std::size_t> which);
  /// Ends a step that has its last `move`.
  void end() noexcept;
  /// Puts the parameters `which` back to where they were before the step. When all are, `forget` ends the step.
  void roll_back(std::span<const std::size_t> which);
  /// Ends a step that is rolled back: the memory is that from before it.
  void forget() noexcept;

 private:
  enum class Phase : std::uint8_t { closed, first, fixed, search, done };
  /// A change of the parameters.
  struct Move {
    enum class From : std::uint8_t {
      here,    ///< from where they are
      mark,    ///< from where they are, which `marked` goes back to
      marked,  ///< from where the last `mark` was
    };
    From from;
    double t;
    at::Tensor direction;
  };
  at::Tensor flatten(std::span<const at::Tensor> gradients) const;
  bool is_optimal() const;
  bool iterate();
  void choose_direction();
  bool conclude(std::int64_t evaluations);
  bool finish() noexcept;

  const std::vector<at::Tensor> parameters_;
  std::vector<std::int64_t> offsets_;  // in flat tensors
  LbfgsMemory memory_;

  // of the open step
  LBFGS options_;
  LbfgsMemory before_;
  Phase phase_ = Phase::closed;
  std::vector<at::Tensor> start_;   // values of the parameters before the step, of those that were moved
  std::vector<at::Tensor> marked_;  // values of the parameters at the last mark
  std::vector<Move> moves_;
  std::optional<StrongWolfe> search_;
  double loss_ = 0;
  at::Tensor gradient_;
  bool optimal_ = false;
  std::int64_t iteration_ = 0;
  std::int64_t evaluations_ = 0;
};

}  // namespace caftan::optim

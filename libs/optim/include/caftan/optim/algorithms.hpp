/// The algorithms an optimizer can run, with their options, under PyTorch's names:
///     optim::SGD{.lr = 0.1, .momentum = 0.9}    optim::Adam{.lr = 2e-3}    optim::RMSprop{.centered = true}
/// They are values: they travel to the owner of the parameters and into saved states. One of one's own is `Custom`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "caftan/base/result.hpp"

namespace caftan::optim {

/// Stochastic gradient descent. Without `fused` every step equals torch::optim::SGD's bit for bit. Sparse gradients are
/// taken without weight decay.
/// Source: torch.optim.SGD.
struct SGD {
  double lr = 1e-3;         ///< >= 0
  double momentum = 0;      ///< >= 0
  double dampening = 0;     ///< the part of the gradient that does not enter the momentum
  double weight_decay = 0;  ///< >= 0, L2
  bool nesterov = false;    ///< needs momentum > 0 and dampening 0
  bool maximize = false;    ///< steps along the gradient instead of against it
  /// One kernel call of libtorch for those dense parameters of a group that Caftan's kernels do not step: those of half
  /// dtypes, all where there is no AVX2. It rounds the last elements of a row otherwise than torch::optim does.
  bool fused = false;

  bool operator==(const SGD&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& momentum& dampening& weight_decay& nesterov& maximize& fused;
  }
};

/// Adam, and AdamW where the weight decay is decoupled from the gradient. Without `fused` every step equals
/// torch::optim's bit for bit. Sparse gradients and complex parameters are refused.
/// Source: torch.optim.Adam and AdamW; Kingma and Ba, arXiv 1412.6980, Algorithm 1; Loshchilov and Hutter, arXiv
/// 1711.05101, Algorithm 2.
template <bool Decoupled>
struct AdamFamily {
  double lr = 1e-3;                             ///< >= 0
  std::pair<double, double> betas{0.9, 0.999};  ///< decay of the two means, each in [0, 1)
  double eps = 1e-8;                            ///< >= 0, added to the root of the second mean
  double weight_decay = Decoupled ? 1e-2 : 0;   ///< >= 0
  bool amsgrad = false;                         ///< divides by the largest second mean so far
  bool maximize = false;                        ///< steps along the gradient instead of against it
  /// The nearest roots, in one pass, instead of MKL's; and libtorch's fused kernel where none of Caftan's steps a
  /// parameter (half dtypes, no AVX2). After 20 steps parameters differ by some 1e-7 from torch::optim's.
  bool fused = false;

  bool operator==(const AdamFamily&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& betas& eps& weight_decay& amsgrad& maximize& fused;
  }
};
/// Adam with the weight decay in the gradient (L2).
using Adam = AdamFamily<false>;
/// Adam with decoupled weight decay.
using AdamW = AdamFamily<true>;

/// Adagrad: divides by the root of the sum of all squared gradients. Every step equals torch::optim::Adagrad's bit for
/// bit. Sparse gradients are taken without weight decay; complex parameters are refused.
/// Source: torch.optim.Adagrad; Duchi, Hazan and Singer, JMLR 12 (2011).
struct Adagrad {
  double lr = 1e-2;                      ///< >= 0
  double lr_decay = 0;                   ///< >= 0; step n has the rate lr / (1 + (n - 1) * lr_decay)
  double weight_decay = 0;               ///< >= 0, L2
  double initial_accumulator_value = 0;  ///< >= 0, what the sums begin with
  double eps = 1e-10;                    ///< >= 0, added to the root of the sum
  bool maximize = false;                 ///< steps along the gradient instead of against it

  bool operator==(const Adagrad&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& lr_decay& weight_decay& initial_accumulator_value& eps& maximize;
  }
};

/// Adadelta: scales each gradient by the ratio of the mean steps to the mean gradients so far. Sparse and complex
/// parameters are refused.
/// Source: torch.optim.Adadelta; Zeiler, arXiv 1212.5701, Algorithm 1.
struct Adadelta {
  double lr = 1.0;          ///< >= 0, what each step is multiplied by
  double rho = 0.9;         ///< in [0, 1], decay of the two means
  double eps = 1e-6;        ///< >= 0, added to both means before their roots
  double weight_decay = 0;  ///< >= 0, L2
  bool maximize = false;    ///< steps along the gradient instead of against it

  bool operator==(const Adadelta&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& rho& eps& weight_decay& maximize;
  }
};

/// RMSprop: divides by the root of the mean of the squared gradients. Every step equals torch::optim::RMSprop's bit for
/// bit. Sparse and complex parameters are refused.
/// Source: torch.optim.RMSprop; Graves, arXiv 1308.0850, for `centered`.
struct RMSprop {
  double lr = 1e-2;         ///< >= 0
  double alpha = 0.99;      ///< in [0, 1], decay of the means
  double eps = 1e-8;        ///< >= 0, added to the root
  double weight_decay = 0;  ///< >= 0, L2
  double momentum = 0;      ///< >= 0, of the divided gradients
  bool centered = false;    ///< divides by the standard deviation of the gradients instead
  bool maximize = false;    ///< steps along the gradient instead of against it

  bool operator==(const RMSprop&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& alpha& eps& weight_decay& momentum& centered& maximize;
  }
};

/// Rprop: each element has a step size of its own, which grows while its gradient keeps its sign. For whole-batch
/// training. Sparse and complex parameters are refused.
/// Source: torch.optim.Rprop; Riedmiller and Braun, ICNN 1993.
struct Rprop {
  double lr = 1e-2;                          ///< >= 0, the step size that elements begin with; later values do nothing
  std::pair<double, double> etas{0.5, 1.2};  ///< factors after a change of sign, in (0, 1), and after none, > 1
  std::pair<double, double> step_sizes{1e-6, 50};  ///< the smallest, >= 0, and the largest, not below it
  bool maximize = false;                           ///< steps along the gradient instead of against it

  bool operator==(const Rprop&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& etas& step_sizes& maximize;
  }
};

/// Adamax: Adam with the largest decayed gradient in place of the root of the second mean. Sparse and complex
/// parameters are refused.
/// Source: torch.optim.Adamax; Kingma and Ba, arXiv 1412.6980, Algorithm 2.
struct Adamax {
  double lr = 2e-3;                             ///< >= 0
  std::pair<double, double> betas{0.9, 0.999};  ///< decay of the mean and of the largest gradient, each in [0, 1)
  double eps = 1e-8;                            ///< >= 0, added to the size of each gradient
  double weight_decay = 0;                      ///< >= 0, L2
  bool maximize = false;                        ///< steps along the gradient instead of against it

  bool operator==(const Adamax&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& betas& eps& weight_decay& maximize;
  }
};

class CustomAlgorithm;

/// An algorithm of one's own: its name and options travel, its code is registered at each owner
/// (custom_algorithm.hpp).
struct Custom {
  std::string name = {};                       ///< the name under which owners have the code registered
  double lr = 1e-3;                            ///< >= 0
  std::map<std::string, double> options = {};  ///< options by name; the code of the algorithm says which there may be
  std::shared_ptr<const CustomAlgorithm> code = nullptr;  ///< the code, which a LocalOptimizer needs; does not travel

  bool operator==(const Custom& other) const {
    return name == other.name && lr == other.lr && options == other.options;
  }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& lr& options;
  }
};

/// L-BFGS: follows an estimate of the inverse Hessian from the last steps, over all parameters together. A step
/// evaluates the loss several times, so it needs a closure, and one owner must have all parameters, in one group and of
/// one dtype. Every step equals torch::optim::LBFGS's bit for bit. Sparse gradients are taken; complex parameters are
/// refused. Source: torch.optim.LBFGS.
struct LBFGS {
  /// How far an iteration goes: `lr`, or to a place that a search along its direction finds.
  enum class LineSearch : std::uint8_t { none, strong_wolfe };
  double lr = 1;                              ///< >= 0
  std::int64_t max_iter = 20;                 ///< iterations of a step, >= 1
  std::optional<std::int64_t> max_eval = {};  ///< evaluations of a step, >= 1; none = max_iter * 5 / 4
  double tolerance_grad = 1e-7;               ///< >= 0; a step ends where no element of the gradient is above it
  double tolerance_change = 1e-9;             ///< >= 0; a step ends where no parameter, or the loss, changes by more
  std::int64_t history_size = 100;            ///< changes that are remembered, >= 1
  LineSearch line_search = LineSearch::none;  ///< PyTorch's line_search_fn

  bool operator==(const LBFGS&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& max_iter& max_eval& tolerance_grad& tolerance_change& history_size& line_search;
  }
};
/// Returns whether a number from the wire is a LineSearch.
constexpr bool is_valid(LBFGS::LineSearch search) noexcept { return search <= LBFGS::LineSearch::strong_wolfe; }

/// Any algorithm with its options. The order is that of saved states: new ones stand at the end.
using Algorithm = std::variant<SGD, Adam, AdamW, Adagrad, Adadelta, RMSprop, Rprop, Adamax, Custom, LBFGS>;

/// Returns whether a step of the algorithm evaluates the loss several times, by a closure.
bool needs_closure(const Algorithm& algorithm) noexcept;

/// Returns PyTorch's name of the algorithm, "SGD" for example, or that of a Custom one.
/// @return views into `algorithm`
std::string_view name_of(const Algorithm& algorithm) noexcept;

/// Returns the option `lr` of the algorithm.
double learning_rate(const Algorithm& algorithm) noexcept;
/// Sets the option `lr` of the algorithm, unchecked: check_options does that.
void set_learning_rate(Algorithm& algorithm, double lr) noexcept;

/// Returns the momentum of the algorithm: of SGD and RMSprop the option `momentum`, of Adam, AdamW and Adamax the first
/// of `betas`, of a Custom one its option of the name "momentum"; none for others.
std::optional<double> momentum(const Algorithm& algorithm) noexcept;
/// Sets that option, unchecked: check_options does that. Leaves an algorithm without one as it is.
void set_momentum(Algorithm& algorithm, double momentum) noexcept;

/// Errors: bad_arguments, naming the option that is out of its range, its value and the range. Of a Custom algorithm
/// without code only name and lr are checked.
Result<void> check_options(const Algorithm& algorithm);

}  // namespace caftan::optim

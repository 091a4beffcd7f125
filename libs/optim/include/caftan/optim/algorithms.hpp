/// The algorithms an optimizer can run, with their options, under PyTorch's names:
///     optim::SGD{.lr = 0.1, .momentum = 0.9}    optim::Adam{.lr = 2e-3}    optim::AdamW{.weight_decay = 0.1}
/// They are values: they travel to the owner of the parameters and into saved states.
#pragma once

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
  double dampening = 0;     ///< of the gradient that enters the momentum
  double weight_decay = 0;  ///< >= 0, L2
  bool nesterov = false;    ///< needs momentum > 0 and dampening 0
  bool maximize = false;    ///< steps along the gradient instead of against it
  /// One kernel call for all dense parameters of a group: several times as fast where these are small. It rounds the
  /// last elements of a row otherwise than torch::optim does; the results are the same on every worker.
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
  /// One kernel call for a group instead of eight for each parameter: several times as fast. It rounds in another order
  /// than torch::optim does; after 20 steps parameters differ by some 1e-7. The results are the same on every worker.
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

/// Any algorithm with its options.
using Algorithm = std::variant<SGD, Adam, AdamW>;

/// Returns "SGD", "Adam" or "AdamW".
std::string_view name_of(const Algorithm& algorithm) noexcept;

/// Returns the option `lr` of the algorithm.
double learning_rate(const Algorithm& algorithm) noexcept;
/// Sets the option `lr` of the algorithm, unchecked: check_options does that.
void set_learning_rate(Algorithm& algorithm, double lr) noexcept;

/// Errors: bad_arguments, naming the option that is out of its range.
Result<void> check_options(const Algorithm& algorithm);

}  // namespace caftan::optim

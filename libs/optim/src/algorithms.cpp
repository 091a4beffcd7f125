#include "caftan/optim/algorithms.hpp"

#include <cmath>
#include <string>

namespace caftan::optim {
namespace {

Error out_of_range(std::string_view algorithm, std::string_view option, double value, std::string_view range) {
  return Error(Errc::bad_arguments, std::string(algorithm) + ": " + std::string(option) + " is " +
                                        std::to_string(value) + ", it must be " + std::string(range));
}

bool is_not_negative(double value) { return std::isfinite(value) && value >= 0; }
bool is_below_one(double value) { return value >= 0 && value < 1; }

Result<void> check(const SGD& sgd) {
  if (!is_not_negative(sgd.lr)) return out_of_range("SGD", "lr", sgd.lr, ">= 0");
  if (!is_not_negative(sgd.momentum)) return out_of_range("SGD", "momentum", sgd.momentum, ">= 0");
  if (!is_not_negative(sgd.weight_decay)) return out_of_range("SGD", "weight_decay", sgd.weight_decay, ">= 0");
  if (!std::isfinite(sgd.dampening)) return out_of_range("SGD", "dampening", sgd.dampening, "a number");
  if (sgd.nesterov && (sgd.momentum == 0 || sgd.dampening != 0)) {
    return Error(Errc::bad_arguments, "SGD: nesterov needs momentum > 0 and dampening 0");
  }
  return {};
}

template <bool Decoupled>
Result<void> check(const AdamFamily<Decoupled>& adam) {
  const char* const name = Decoupled ? "AdamW" : "Adam";
  if (!is_not_negative(adam.lr)) return out_of_range(name, "lr", adam.lr, ">= 0");
  if (!is_below_one(adam.betas.first)) return out_of_range(name, "betas[0]", adam.betas.first, "in [0, 1)");
  if (!is_below_one(adam.betas.second)) return out_of_range(name, "betas[1]", adam.betas.second, "in [0, 1)");
  if (!is_not_negative(adam.eps)) return out_of_range(name, "eps", adam.eps, ">= 0");
  if (!is_not_negative(adam.weight_decay)) return out_of_range(name, "weight_decay", adam.weight_decay, ">= 0");
  return {};
}

}  // namespace

std::string_view name_of(const Algorithm& algorithm) noexcept {
  static constexpr std::string_view kNames[] = {"SGD", "Adam", "AdamW"};
  static_assert(std::size(kNames) == std::variant_size_v<Algorithm>);
  return kNames[algorithm.index()];
}

double learning_rate(const Algorithm& algorithm) noexcept {
  return std::visit([](const auto& a) { return a.lr; }, algorithm);
}

void set_learning_rate(Algorithm& algorithm, double lr) noexcept {
  std::visit([lr](auto& a) { a.lr = lr; }, algorithm);
}

Result<void> check_options(const Algorithm& algorithm) {
  return std::visit([](const auto& a) { return check(a); }, algorithm);
}

}  // namespace caftan::optim

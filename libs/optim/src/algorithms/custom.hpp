/// An algorithm of the user's, by the code that its options carry at the owner of the parameters.
#pragma once

#include "algorithm_trait.hpp"
#include "caftan/optim/custom_algorithm.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<Custom> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const Custom& custom) noexcept { return custom.name; }

  static Result<void> check(const Custom& custom) {
    if (custom.name.empty()) return Error(Errc::bad_arguments, "a Custom algorithm without a name");
    const Result<void> fits = OptionCheck(custom.name).not_negative("lr", custom.lr).result();
    if (!fits || !custom.code) return fits;
    return tensor::catch_torch(Errc::remote_exception, [&custom]() -> Result<void> {
      if (const std::size_t count = custom.code->slots().size(); count > kStateSlots) {
        return Error(Errc::bad_arguments, custom.name + ": it has " + std::to_string(count) +
                                              " state slots, a parameter may have " + std::to_string(kStateSlots));
      }
      return custom.code->check(custom);
    });
  }

  static SlotNames slots(const Custom& custom) {
    SlotNames names;
    std::size_t count = 0;
    for (const std::string& name : custom.code->slots()) names[count++] = name;
    return names;
  }

  static std::string refusal(const Custom& custom, const at::Tensor& gradient, const ParameterState&) {
    return custom.code->takes_sparse() ? std::string() : refuse_sparse(custom.name, gradient);
  }

  static void allocate(const Custom& custom, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    allocate_zeros(custom.code->slots().size(), parameter, state);
  }

  static void step(const Custom& custom, std::span<const Stepped> list) {
    const std::size_t count = custom.code->slots().size();
    for (const Stepped& s : list) {
      custom.code->step(custom,
                        {*s.parameter, *s.gradient, std::span(s.state->tensors).first(count), s.state->steps + 1});
    }
  }
};

}  // namespace caftan::optim

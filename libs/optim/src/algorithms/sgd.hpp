/// SGD, in the order of operations of torch::optim::SGD.
#pragma once

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>

#include "algorithm_trait.hpp"
#include "algorithms/fused.hpp"
#include "algorithms/sgd_kernel.hpp"
#include "kernel_call.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<SGD> {
  static constexpr bool kTakesComplex = true;
  static constexpr bool kKeepsSparse = true;

  static std::string_view name(const SGD&) noexcept { return "SGD"; }

  static Result<void> check(const SGD& sgd) {
    const Result<void> ranges = OptionCheck("SGD")
                                    .not_negative("lr", sgd.lr)
                                    .not_negative("momentum", sgd.momentum)
                                    .not_negative("weight_decay", sgd.weight_decay)
                                    .finite("dampening", sgd.dampening)
                                    .result();
    if (ranges && sgd.nesterov && (sgd.momentum == 0 || sgd.dampening != 0)) {
      return Error(Errc::bad_arguments, "SGD: nesterov needs momentum > 0 and dampening 0, they are " +
                                            text_of(sgd.momentum) + " and " + text_of(sgd.dampening));
    }
    return ranges;
  }

  static SlotNames slots(const SGD&) { return {"momentum_buffer", "", ""}; }
  static constexpr std::size_t kLateSlot = 0;

  static std::string refusal(const SGD& sgd, const at::Tensor& gradient, const ParameterState& state) {
    const at::Tensor& buffer = state.tensors[0];
    const bool has_buffer = state.steps > 0 && buffer.defined();
    if (gradient.is_sparse()) {
      if (sgd.weight_decay != 0) return refuse_decay_of_sparse("SGD");
      if (sgd.nesterov && has_buffer && !buffer.is_sparse()) {
        return "has a sparse gradient after dense ones, which nesterov cannot add to its dense momentum";
      }
    } else if (sgd.momentum != 0 && has_buffer && buffer.is_sparse()) {
      return "has a dense gradient after sparse ones, which cannot be added to its sparse momentum";
    }
    return {};
  }

  static void allocate(const SGD& sgd, const at::Tensor& parameter, const at::Tensor& gradient, ParameterState& state) {
    // Only kernels, ours and libtorch's, want the buffer beforehand, and set it in its first step; elsewhere it becomes
    // a copy of the first gradient that comes with a momentum, in that one's layout.
    if (state.steps > 0) return;
    state.tensors[0].reset();
    const Stepped s{&parameter, &gradient, &state};
    if (sgd.momentum != 0 && (kernel_covers(s, 0) || (sgd.fused && can_fuse(s)))) {
      state.tensors[0] =
          at::empty_like(parameter, parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
    }
  }

  static void step(const SGD& sgd, std::span<const Stepped> list) {
    SgdKernel kernel{.weight_decay = sgd.weight_decay,
                     .momentum = sgd.momentum,
                     .taken = 1 - sgd.dampening,
                     .rate = -sgd.lr,
                     .nesterov = sgd.nesterov,
                     .maximize = sgd.maximize,
                     .begins = false};
    Roots roots;
    FusedLists first;
    FusedLists later;
    for (const Stepped& s : list) {
      const at::Tensor& buffer = s.state->tensors[0];
      kernel.begins = s.state->steps == 0;
      if (step_by_kernel(kernel, s, sgd.momentum != 0 ? 1 : 0, roots)) continue;
      if (!sgd.fused || !can_fuse(s) || (sgd.momentum != 0 && !(buffer.defined() && lie_alike(*s.parameter, buffer)))) {
        step_one(sgd, s);
        continue;
      }
      FusedLists& lists = s.state->steps == 0 ? first : later;
      lists.parameters.push_back(*s.parameter);
      lists.gradients.push_back(*s.gradient);
      if (sgd.momentum != 0) lists.buffers.push_back(buffer);
    }
    first.run(sgd, true);
    later.run(sgd, false);
  }

 private:
  struct FusedLists {
    Tensors parameters, gradients, buffers;

    void run(const SGD& sgd, bool first) {
      if (parameters.empty()) return;
      at::_fused_sgd_(parameters, gradients, buffers, sgd.weight_decay, sgd.momentum, sgd.lr, sgd.dampening,
                      sgd.nesterov, sgd.maximize, first);
    }
  };

  static void step_one(const SGD& sgd, const Stepped& s) {
    at::Tensor gradient = decayed_gradient(sgd, s);
    if (sgd.momentum != 0) {
      at::Tensor& buffer = s.state->tensors[0];
      if (s.state->steps == 0 || !buffer.defined()) {
        buffer = gradient.clone();
      } else {
        buffer.mul_(sgd.momentum).add_(gradient, 1 - sgd.dampening);
      }
      gradient = sgd.nesterov ? gradient.add(buffer, sgd.momentum) : buffer;
    }
    s.parameter->add_(gradient, -sgd.lr);
  }
};

}  // namespace caftan::optim

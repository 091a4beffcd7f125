/// The messages between a DistributedOptimizer and the owners of its parameters: the arguments and results of the
/// methods of `RemoteOptimizer`. Flows and rules: docs/protocols/optimizer.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/optim/algorithms.hpp"
#include "caftan/rpc/rref.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::optim {

/// The number of a step of one DistributedOptimizer: 1, 2, ...; 0 = none yet.
struct StepNumber {
  std::uint64_t value = 0;
  auto operator<=>(const StepNumber&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value;
  }
};

/// Asks an owner for an optimizer of its parameters.
struct OptimizerSpec {
  /// Parameters of this owner that have the same options.
  struct Group {
    std::vector<RRef<at::Tensor>> parameters;
    Algorithm algorithm;
    template <class Archive>
    void serialize(Archive& archive, unsigned) {
      archive& parameters& algorithm;
    }
  };
  std::vector<Group> groups;  ///< the groups that have parameters of this owner
  double clip_value = 0;      ///< limit of each element of a gradient; 0 = none
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& groups& clip_value;
  }
};

/// The order to make one step, by the gradients of the context that the call belongs to.
struct StepOrder {
  StepNumber step;
  std::vector<double> lrs;  ///< the learning rate of each group of the owner's spec
  bool wants_norm = false;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& lrs& wants_norm;
  }
};

/// The momentum of each group of an owner's spec, in a step; none = as it is. Sent beside the order once a schedule has
/// changed one.
using Momenta = std::vector<std::optional<double>>;

/// A step that can be committed: nothing that can be refused is left.
struct Prepared {
  StepNumber step;
  std::uint64_t gradients = 0;  ///< how many parameters have one
  /// Squared norm of all gradients of this owner, after clipping by value; 0 when not asked for.
  double squared_norm = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& gradients& squared_norm;
  }
};

/// What an owner did in a step.
struct StepDone {
  StepNumber step;
  std::uint64_t stepped = 0;  ///< how many parameters had a gradient
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& stepped;
  }
};

/// The state of one owner, and the last step that it has made.
struct OwnerState {
  StepNumber step;
  wire::Bytes state;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& state;
  }
};

/// The same, where the state is larger than a message without its tensors may be.
struct OwnerBulk {
  StepNumber step;
  at::Tensor state;  ///< bytes
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& state;
  }
};

/// One evaluation in a step by a closure: the loss where the owner's parameters are now. Its gradients are those of the
/// context that the call belongs to.
struct SearchOrder {
  StepNumber step;
  std::uint64_t evaluation = 0;  ///< of the step: 1, 2, ...
  double loss = 0;
  std::vector<double> lrs;  ///< of each group of the owner's spec
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& evaluation& loss& lrs;
  }
};

/// What follows an evaluation. The owner has moved its parameters.
struct SearchReply {
  StepNumber step;
  std::uint64_t evaluation = 0;
  bool wants_another = false;  ///< where the parameters are now; else the step has ended
  std::uint64_t stepped = 0;   ///< how many parameters there are
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& evaluation& wants_another& stepped;
  }
};

}  // namespace caftan::optim

/// Tensors and references to tensors by name: how a module lists its parameters and buffers, and what its state is.
#pragma once

#include <string>
#include <vector>

#include "caftan/rpc/rref.hpp"
#include "caftan/tensor/tensor.hpp"

namespace caftan::nn {

/// A parameter or buffer under the name that it has in its module, for example "encoder.weight".
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// The parameters and buffers of a module with their values, parameters first.
/// Source: torch.nn.Module.state_dict. Difference: a list in the module's order, not a dictionary.
using StateDict = std::vector<NamedTensor>;

/// A parameter or buffer that stays at its owner.
struct NamedReference {
  std::string name;
  RRef<at::Tensor> tensor;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& tensor;
  }
};

}  // namespace caftan::nn

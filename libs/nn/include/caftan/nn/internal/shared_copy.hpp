/// `SharedCopy`: one object that holds the values of a shared module at one version: the module itself, or a copy that
/// a context or an evaluation reads beside others (CM-6).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "caftan/nn/internal/reading_door.hpp"
#include "caftan/nn/served_module.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan::nn {

/// The distinct tensors of a module, each list in the module's order.
struct SharedTensors {
  std::vector<at::Tensor> trained;  ///< parameters that need a gradient
  std::vector<at::Tensor> frozen;   ///< the other parameters
  std::vector<at::Tensor> buffers;
};

/// Owned by shared_ptr. Its values are read on its strand, and written on that of the module as well.
struct SharedCopy {
  RRef<ServedModule> reference;
  std::shared_ptr<rpc::HostedObject> object;  ///< hosts a ServedModule
  std::shared_ptr<ReadingDoor> door;
  SharedTensors tensors;
};

}  // namespace caftan::nn

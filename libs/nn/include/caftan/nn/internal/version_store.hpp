/// `VersionStore`: the parameters of a shared module as they were at versions that are still read (CM-6). A snapshot
/// shares its memory with the parameter until a step writes that one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/nn/step_log.hpp"

namespace caftan::nn {

/// Threads: one at a time, and no thread may write the parameters during a call. Snapshots that were handed out may be
/// read by any thread, also while a step writes the parameters.
class VersionStore {
 public:
  /// @param parameters  of the module, written in place by its steps
  /// @param version     what their values are now
  VersionStore(std::vector<at::Tensor> parameters, ModelVersion version);

  /// Adds readers to a version; the first one makes its snapshot.
  /// @param readers  at least 1
  /// Errors: bad_arguments (neither the present version nor one that has a reader), limit_exceeded (no memory).
  Result<void> pin(ModelVersion version, std::uint32_t readers = 1);
  /// Takes one reader away; with the last one the snapshot goes. Precondition: the version has a reader.
  void unpin(ModelVersion version);

  /// Returns the parameters at a version that has a reader, in the order of the module's: leaves of their own, which
  /// need a gradient where the parameter does. Valid until the version's last `unpin`; the tensors themselves stay
  /// valid. Errors: bad_arguments (the version has no reader).
  Result<std::span<const at::Tensor>> parameters(ModelVersion version) const;

  /// The parameters were changed to `version`.
  void on_step(ModelVersion version) noexcept { version_ = version; }

  /// Returns how many versions have a snapshot.
  std::size_t snapshots() const noexcept { return snapshots_.size(); }

 private:
  struct Snapshot {
    std::vector<at::Tensor> parameters;
    std::uint32_t readers = 0;
  };

  std::vector<at::Tensor> parameters_;
  ModelVersion version_;
  std::map<ModelVersion, Snapshot> snapshots_;
};

}  // namespace caftan::nn

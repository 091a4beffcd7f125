#include "caftan/nn/internal/version_store.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_lazy_clone.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/COW.h>

#include <string>
#include <utility>

#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::nn {
namespace {

/// Memory that did not come from torch's allocator (a message's, a file's) cannot be shared until it is written.
bool can_share(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return false;
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  return c10::impl::cow::has_simple_data_ptr(storage) || c10::impl::cow::is_cow_data_ptr(storage.data_ptr());
}

at::Tensor snapshot_of(const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  const at::Tensor values = can_share(parameter) ? at::_lazy_clone(parameter) : parameter.clone();
  return values.requires_grad_(parameter.requires_grad());
}

std::string name_of(ModelVersion version) { return "version " + std::to_string(version.value); }

}  // namespace

VersionStore::VersionStore(std::vector<at::Tensor> parameters, ModelVersion version)
    : parameters_(std::move(parameters)), version_(version) {}

Result<void> VersionStore::pin(ModelVersion version, std::uint32_t readers) {
  if (const auto known = snapshots_.find(version); known != snapshots_.end()) {
    known->second.readers += readers;
    return {};
  }
  if (version != version_) {
    return Error(Errc::bad_arguments,
                 name_of(version) + " has no reader, and the parameters are at " + name_of(version_));
  }
  return tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    Snapshot snapshot{.parameters = {}, .readers = readers};
    snapshot.parameters.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) snapshot.parameters.push_back(snapshot_of(parameter));
    snapshots_.emplace(version, std::move(snapshot));
    return {};
  });
}

void VersionStore::unpin(ModelVersion version) {
  const auto known = snapshots_.find(version);
  if (--known->second.readers == 0) snapshots_.erase(known);
}

Result<std::span<const at::Tensor>> VersionStore::parameters(ModelVersion version) const {
  const auto known = snapshots_.find(version);
  if (known == snapshots_.end()) return Error(Errc::bad_arguments, name_of(version) + " has no reader");
  return std::span<const at::Tensor>(known->second.parameters);
}

}  // namespace caftan::nn

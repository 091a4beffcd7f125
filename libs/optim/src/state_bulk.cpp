#include "caftan/optim/internal/state_bulk.hpp"

#include <ATen/ops/from_blob.h>

#include <memory>
#include <utility>

#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::optim {

at::Tensor to_bulk(wire::Bytes state) {
  const auto kept = std::make_shared<wire::Bytes>(std::move(state));
  return at::from_blob(
      kept->data(), {static_cast<std::int64_t>(kept->size())}, [kept](void*) {}, at::kByte);
}

Result<wire::Bytes> from_bulk(const at::Tensor& bulk) {
  const bool fits = bulk.defined() && bulk.layout() == at::kStrided && bulk.device().is_cpu() &&
                    bulk.scalar_type() == at::kByte && bulk.dim() == 1;
  if (!fits) return Error(Errc::malformed_payload, "a saved state travels as a flat tensor of bytes");
  return tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<wire::Bytes> {
    const at::Tensor flat = bulk.contiguous();
    const auto* const first = reinterpret_cast<const std::byte*>(flat.const_data_ptr<std::uint8_t>());
    return wire::Bytes(first, first + flat.numel());
  });
}

}  // namespace caftan::optim

/// A saved state as a tensor of bytes: the bytes of tensors travel beside a message, in pieces, and so a state may be
/// larger than a message without its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::optim {

/// Returns a flat tensor of the bytes, without copying them.
at::Tensor to_bulk(wire::Bytes state);

/// Returns the bytes of such a tensor, which may have come from a peer. Errors: malformed_payload (another tensor),
/// limit_exceeded (no memory).
Result<wire::Bytes> from_bulk(const at::Tensor& bulk);

}  // namespace caftan::optim

/// Tensors as one run of bytes, for files: the table of codec.hpp and its segments, one after the other.
#pragma once

#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/tensor/tensor.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::tensor {

/// Returns the bytes: u64 size of the table, table, segments.
/// Errors: unsupported (a tensor that cannot travel), limit_exceeded (no memory).
Result<wire::Bytes> pack_tensors(std::span<const at::Tensor> tensors);

/// Returns the tensors that exactly `bytes` hold, with memory of their own; an undefined one stays undefined.
/// Allocates in proportion to `bytes`, whatever sizes they announce. Errors: malformed_payload, limit_exceeded (no
/// memory).
Result<std::vector<at::Tensor>> unpack_tensors(wire::ByteView bytes);

}  // namespace caftan::tensor

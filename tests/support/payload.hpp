/// A value as a call carries it, without a call: bytes, and the tensors beside them.
#pragma once

#include <vector>

#include "caftan/tensor/payload.hpp"

namespace caftan::test {

struct Payload {
  wire::Bytes bytes;
  std::vector<at::Tensor> tensors;  ///< the tensors of the value; `bytes` names each by its index here
};

/// Returns the bytes of `value` and the tensors in it. Errors: unsupported (the value cannot travel).
template <class T>
Result<Payload> encode_payload(const T& value) {
  Payload payload;
  tensor::TensorSink sink(payload.tensors);
  Result<void> done = wire::encode_into(payload.bytes, value, &sink);
  if (!done) return done.error();
  return payload;
}

/// Reads a value from exactly the bytes of `payload`, and its tensors from the payload's tensors. Errors:
/// malformed_payload.
template <class T>
Result<T> decode_payload(const Payload& payload) {
  tensor::TensorSource source(payload.tensors);
  return wire::decode<T>(payload.bytes, &source);
}

}  // namespace caftan::test

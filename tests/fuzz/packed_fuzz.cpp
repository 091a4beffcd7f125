// Takes arbitrary bytes as packed tensors, the way a checkpoint file holds them; what is accepted is packed again.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdlib>

#include "caftan/tensor/packed.hpp"

namespace {

using namespace caftan;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // One thread only: libtorch's other threads would spin between inputs of a few bytes.
  [[maybe_unused]] static const bool once = (at::set_num_threads(1), true);
  if (size > (1U << 16)) return 0;
  const auto tensors = tensor::unpack_tensors(std::as_bytes(std::span(data, size)));
  if (!tensors) {
    require(tensors.error().code() == Errc::malformed_payload);
    return 0;
  }
  const auto again = tensor::pack_tensors(*tensors);
  require(again.has_value());
  const auto twice = tensor::unpack_tensors(*again);
  require(twice && twice->size() == tensors->size());
  return 0;
}

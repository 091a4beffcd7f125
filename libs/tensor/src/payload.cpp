#include "caftan/tensor/payload.hpp"

#include "caftan/tensor/packed.hpp"
#include "caftan/wire/self_contained.hpp"

namespace caftan::tensor {

std::uint64_t TensorSink::add(const at::Tensor& tensor) {
  // Up to this many tensors, which most messages have, a scan is cheaper than a table.
  constexpr std::size_t kScan = 16;
  const void* key = tensor.unsafeGetTensorImpl();
  if (to_.size() - first_ <= kScan) {
    for (std::size_t i = first_; i < to_.size(); ++i) {
      if (to_[i].unsafeGetTensorImpl() == key) return i;
    }
  } else {
    if (index_.empty()) {
      for (std::size_t i = first_; i < to_.size(); ++i) index_.emplace(to_[i].unsafeGetTensorImpl(), i);
    }
    const auto [entry, is_new] = index_.emplace(key, to_.size());
    if (!is_new) return entry->second;
  }
  to_.push_back(tensor);
  return to_.size() - 1;
}

const at::Tensor& TensorSource::at(std::uint64_t index) const {
  if (index >= tensors_.size()) throw wire::DecodeError("a tensor that is not in the message");
  return tensors_[index];
}

}  // namespace caftan::tensor

namespace caftan::wire {
namespace {

/// Writes the tensor into the bytes. Equal values give equal bytes, whatever memory the tensor is a view of.
void save_whole(OutArchive& to, const at::Tensor& tensor) {
  at::Tensor plain = tensor;
  if (tensor.defined()) {
    plain = tensor.detach();
    if (plain.layout() == at::kStrided && !plain.is_quantized()) plain = plain.contiguous();
  }
  const Result<Bytes> bytes = tensor::pack_tensors({&plain, 1});
  if (!bytes) throw EncodeError(bytes.error());
  to.save_count(bytes->size());
  to.save_binary(bytes->data(), bytes->size());
}

void load_whole(InArchive& from, at::Tensor& tensor) {
  Result<std::vector<at::Tensor>> read = tensor::unpack_tensors(from.take(from.load_count()));
  if (!read) throw DecodeError("a tensor that cannot be read");
  if (read->size() != 1) throw DecodeError("not one tensor where one is written");
  tensor = std::move(read->front());
}

}  // namespace

void Codec<at::Tensor>::save(OutArchive& to, const at::Tensor& tensor) {
  auto* sink = to.companion<tensor::TensorSink>();
  if (!sink && to.companion<SelfContained>()) return save_whole(to, tensor);
  if (!sink) throw EncodeError(Error(Errc::unsupported, "a tensor travels only in a payload, beside the bytes"));
  to.save_count(sink->add(tensor));
}

void Codec<at::Tensor>::load(InArchive& from, at::Tensor& tensor) {
  const auto* source = from.companion<tensor::TensorSource>();
  if (!source && from.companion<SelfContained>()) return load_whole(from, tensor);
  if (!source) throw DecodeError("a tensor where none can be");
  tensor = source->at(from.load_number());
}

}  // namespace caftan::wire

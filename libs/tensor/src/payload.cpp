#include "caftan/tensor/payload.hpp"

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

void Codec<at::Tensor>::save(OutArchive& to, const at::Tensor& tensor) {
  auto* sink = to.companion<tensor::TensorSink>();
  if (!sink) throw EncodeError(Error(Errc::unsupported, "a tensor travels only in a payload, beside the bytes"));
  to.save_count(sink->add(tensor));
}

void Codec<at::Tensor>::load(InArchive& from, at::Tensor& tensor) {
  const auto* source = from.companion<tensor::TensorSource>();
  if (!source) throw DecodeError("a tensor where none can be");
  tensor = source->at(from.load_number());
}

}  // namespace caftan::wire

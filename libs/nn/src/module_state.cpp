#include "caftan/nn/internal/module_state.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "caftan/tensor/torch_errors.hpp"

namespace caftan::nn {
namespace {

constexpr std::size_t kMostDifferences = 20;

/// Returns "Float [3, 4]".
std::string shape_of(const TensorInfo& info) {
  std::string text = c10::toString(static_cast<at::ScalarType>(info.dtype));
  text += " [";
  for (std::size_t i = 0; i < info.sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(info.sizes[i]);
  return text + "]";
}

Error no_such_piece(const Piece& piece) {
  return Error(Errc::bad_arguments, "the state has no elements " + std::to_string(piece.begin) + " and on, " +
                                        std::to_string(piece.count) + " of them, of tensor " +
                                        std::to_string(piece.tensor));
}

/// Returns the elements of a piece as a flat view.
Result<at::Tensor> elements(const StateDict& state, const Piece& piece) {
  if (piece.tensor >= state.size() || piece.count == 0) return no_such_piece(piece);
  const at::Tensor& tensor = state[piece.tensor].tensor;
  const auto size = static_cast<std::uint64_t>(tensor.numel());
  if (piece.begin > size || piece.count > size - piece.begin) return no_such_piece(piece);
  return tensor.view(-1).narrow(0, static_cast<std::int64_t>(piece.begin), static_cast<std::int64_t>(piece.count));
}

Result<void> write_piece(StateDict& state, const Piece& piece, const at::Tensor& values) {
  Result<at::Tensor> place = elements(state, piece);
  if (!place) return place.error();
  const bool fits = values.defined() && values.layout() == at::kStrided &&
                    values.scalar_type() == place->scalar_type() && values.numel() == place->numel();
  if (!fits) {
    return Error(Errc::bad_arguments, "the values for '" + state[piece.tensor].name + "' do not fit their piece");
  }
  place->copy_(values.reshape({-1}));
  return {};
}

Result<void> check_count(const Chunk& chunk, const std::vector<at::Tensor>& values) {
  if (values.size() == chunk.size()) return {};
  return Error(Errc::bad_arguments,
               std::to_string(values.size()) + " tensors for " + std::to_string(chunk.size()) + " pieces of a state");
}

}  // namespace

Result<std::vector<TensorInfo>> describe(const StateDict& state) {
  std::vector<TensorInfo> tensors;
  tensors.reserve(state.size());
  for (const NamedTensor& named : state) {
    const at::Tensor& tensor = named.tensor;
    if (!tensor.defined()) return Error(Errc::bad_arguments, "the tensor '" + named.name + "' is undefined");
    if (tensor.layout() != at::kStrided || tensor.is_quantized() || !tensor.is_cpu()) {
      return Error(Errc::unsupported,
                   "the tensor '" + named.name +
                       "' is sparse, quantized or not on the CPU; a state has dense tensors of the CPU");
    }
    tensors.push_back({named.name, tensor.sizes().vec(), static_cast<std::int32_t>(tensor.scalar_type())});
  }
  return tensors;
}

Result<StateDict> make_blank(const std::vector<TensorInfo>& tensors) {
  StateDict state;
  for (const TensorInfo& info : tensors) {
    const bool known = info.dtype >= 0 && info.dtype < static_cast<std::int32_t>(at::ScalarType::Undefined) &&
                       !c10::isQIntType(static_cast<at::ScalarType>(info.dtype));
    if (!known) {
      return Error(Errc::malformed_payload,
                   "the tensor '" + info.name + "' has the unknown dtype " + std::to_string(info.dtype));
    }
    const Result<void> made = tensor::catch_torch(Errc::malformed_payload, [&]() -> Result<void> {
      const auto dtype = static_cast<at::ScalarType>(info.dtype);
      state.push_back({info.name, at::empty(info.sizes, at::TensorOptions().dtype(dtype))});
      return {};
    });
    if (!made) return made.error();
  }
  return state;
}

Result<StateDict> make_contiguous(const StateDict& state) {
  return tensor::catch_torch(Errc::unsupported, [&]() -> Result<StateDict> {
    StateDict flat;
    for (const NamedTensor& named : state) {
      flat.push_back({named.name, named.tensor.detach().resolve_conj().resolve_neg().contiguous()});
    }
    return flat;
  });
}

std::vector<Chunk> cut(const StateDict& state, std::uint64_t bytes) {
  std::vector<Chunk> chunks;
  std::uint64_t room = 0;  // bytes for which the last chunk has room
  for (std::uint64_t number = 0; number < state.size(); ++number) {
    const auto size = static_cast<std::uint64_t>(state[number].tensor.numel());
    const auto width = static_cast<std::uint64_t>(state[number].tensor.element_size());
    for (std::uint64_t begin = 0; begin < size;) {
      if (room < width) {
        chunks.emplace_back();
        room = std::max(bytes, width);
      }
      const std::uint64_t count = std::min(size - begin, room / width);
      chunks.back().push_back({number, begin, count});
      begin += count;
      room -= count * width;
    }
  }
  return chunks;
}

Result<void> check_fits(const std::vector<TensorInfo>& given, const std::vector<TensorInfo>& module) {
  std::vector<std::string> differences;
  std::map<std::string_view, const TensorInfo*> expected;
  for (const TensorInfo& info : module) expected.emplace(info.name, &info);
  std::map<std::string_view, const TensorInfo*> found;
  for (const TensorInfo& info : given) {
    const auto own = expected.find(info.name);
    if (!found.emplace(info.name, &info).second) {
      differences.push_back("'" + info.name + "' is given twice");
    } else if (own == expected.end()) {
      differences.push_back("the module has no '" + info.name + "'");
    } else if (info != *own->second) {
      differences.push_back("'" + info.name + "' is " + shape_of(info) + ", that of the module " +
                            shape_of(*own->second));
    }
  }
  for (const auto& [name, info] : expected) {
    if (!found.contains(name)) differences.push_back("'" + std::string(name) + "' is missing");
  }
  if (differences.empty()) return {};
  std::string text = "the state does not fit the module: ";
  for (std::size_t i = 0; i < std::min(differences.size(), kMostDifferences); ++i) {
    text += (i > 0 ? "; " : "") + differences[i];
  }
  if (differences.size() > kMostDifferences) {
    text += "; and " + std::to_string(differences.size() - kMostDifferences) + " more differences";
  }
  return Error(Errc::bad_arguments, text);
}

Result<std::vector<at::Tensor>> read_chunk(const StateDict& state, const Chunk& chunk) {
  std::vector<at::Tensor> values;
  values.reserve(chunk.size());
  for (const Piece& piece : chunk) {
    Result<at::Tensor> part = elements(state, piece);
    if (!part) return part.error();
    values.push_back(*std::move(part));
  }
  return values;
}

Result<void> write_chunk(StateDict& state, const Chunk& chunk, const std::vector<at::Tensor>& values) {
  if (const Result<void> same = check_count(chunk, values); !same) return same;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (const Result<void> written = write_piece(state, chunk[i], values[i]); !written) return written;
  }
  return {};
}

StagedState::StagedState(StateDict blank) : body_(std::make_unique<Body>()) {
  const base::LockGuard lock(body_->mutex);
  for (const NamedTensor& named : blank) body_->missing += static_cast<std::uint64_t>(named.tensor.numel());
  body_->state = std::move(blank);
}

Result<void> StagedState::put(const Chunk& chunk, const std::vector<at::Tensor>& values) {
  Body& body = *body_;
  const base::LockGuard lock(body.mutex);
  if (body.released) return Error(Errc::bad_arguments, "the state was taken already");
  if (const Result<void> same = check_count(chunk, values); !same) return same;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const Piece& piece = chunk[i];
    if (const Result<at::Tensor> place = elements(body.state, piece); !place) return place.error();
    const auto next = body.received.lower_bound({piece.tensor, piece.begin});
    const bool reaches_next = next != body.received.end() && next->first.first == piece.tensor &&
                              next->first.second < piece.begin + piece.count;
    const bool in_previous = next != body.received.begin() && std::prev(next)->first.first == piece.tensor &&
                             std::prev(next)->second > piece.begin;
    if (reaches_next || in_previous) {
      return Error(Errc::bad_arguments, "elements of '" + body.state[piece.tensor].name + "' came twice");
    }
    if (const Result<void> written = write_piece(body.state, piece, values[i]); !written) return written;
    body.received.emplace(std::pair(piece.tensor, piece.begin), piece.begin + piece.count);
    body.missing -= piece.count;
  }
  return {};
}

Result<StateDict> StagedState::release() {
  Body& body = *body_;
  const base::LockGuard lock(body.mutex);
  if (body.released) return Error(Errc::bad_arguments, "the state was taken already");
  if (body.missing > 0) {
    return Error(Errc::bad_arguments, std::to_string(body.missing) + " elements of the state have not come");
  }
  body.released = true;
  return std::exchange(body.state, {});
}

}  // namespace caftan::nn

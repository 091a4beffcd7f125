/// The state of a module as it travels: a description of each tensor, and the pieces into which the values are cut.
/// Rules MD-6 to MD-9: docs/protocols/modules.md. Users start with remote_module.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/named_tensor.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::nn {

/// The description of a tensor: all but its values.
struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::int32_t dtype = 0;  ///< ATen's number
  bool operator==(const TensorInfo&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& sizes& dtype;
  }
};

/// A run of elements of one tensor of a state, in row-major order.
struct Piece {
  std::uint64_t tensor = 0;  ///< its place in the state
  std::uint64_t begin = 0;   ///< its first element
  std::uint64_t count = 0;   ///< of elements, >= 1
  bool operator==(const Piece&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& tensor& begin& count;
  }
};
/// The pieces of one message.
using Chunk = std::vector<Piece>;

/// Returns the descriptions of the tensors of a state.
/// Errors: bad_arguments (an undefined tensor), unsupported (one that is sparse, quantized or not on the CPU); both
/// name
///   the tensor.
Result<std::vector<TensorInfo>> describe(const StateDict& state);

/// Returns a state of contiguous tensors without values. Errors: malformed_payload, limit_exceeded (no memory).
Result<StateDict> make_blank(const std::vector<TensorInfo>& tensors);

/// Returns the tensors of a state as contiguous ones without a graph; copies only those that are not contiguous.
/// Precondition: `describe` accepts them. Errors: limit_exceeded (no memory).
Result<StateDict> make_contiguous(const StateDict& state);

/// Cuts a state into chunks, in order, of at most `bytes` each, but of one element at least (MD-7).
std::vector<Chunk> cut(const StateDict& state, std::uint64_t bytes);

/// Compares a state that is to be loaded with that of the module.
/// Errors: bad_arguments, naming each difference, at most 20 (MD-9).
Result<void> check_fits(const std::vector<TensorInfo>& given, const std::vector<TensorInfo>& module);

/// Returns the values of a chunk, each a flat view. Precondition: the tensors are contiguous.
/// Errors: bad_arguments (a piece that is not in the state).
Result<std::vector<at::Tensor>> read_chunk(const StateDict& state, const Chunk& chunk);

/// Writes the values of a chunk. Precondition: the tensors are contiguous. Errors: bad_arguments (a piece that is not
/// in the state, values that do not fit it).
Result<void> write_chunk(StateDict& state, const Chunk& chunk, const std::vector<at::Tensor>& values);

/// A copy of a module's state at its owner, read by chunks. Threads: one at a time.
class StateSource {
 public:
  /// @param state  contiguous tensors that nothing else changes
  explicit StateSource(StateDict state) : state_(std::move(state)) {}
  /// Errors: as read_chunk.
  Result<std::vector<at::Tensor>> read(const Chunk& chunk) const { return read_chunk(state_, chunk); }

 private:
  StateDict state_;
};

/// A place at the owner for a state that arrives by chunks, in any order. Threads: any, all methods.
class StagedState {
 public:
  /// @param blank  as make_blank returns it
  explicit StagedState(StateDict blank);
  /// Takes values. Errors: as write_chunk; bad_arguments (elements that have arrived before, or the state was released
  /// already).
  Result<void> put(const Chunk& chunk, const std::vector<at::Tensor>& values);
  /// Returns the state, once. Errors: bad_arguments (elements that have not arrived, or the state was released
  /// already).
  Result<StateDict> release();

 private:
  struct Body {
    base::Mutex mutex;
    StateDict state CAFTAN_GUARDED_BY(mutex);
    // (tensor, first element) -> element behind the last one
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> received CAFTAN_GUARDED_BY(mutex);
    std::uint64_t missing CAFTAN_GUARDED_BY(mutex) = 0;  // elements
    bool released CAFTAN_GUARDED_BY(mutex) = false;
  };

  std::unique_ptr<Body> body_;
};

/// The reply to `save`: the tensors of the state, and where to read them.
struct SavedModule {
  std::vector<TensorInfo> tensors;
  RRef<StateSource> source;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& tensors& source;
  }
};

}  // namespace caftan::nn

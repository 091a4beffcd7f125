/// The role type "rnn_lm.ps": holds an embedding table, a decoder, or both, and computes with them when the trainer
/// asks. It is passive: the trainer decides how large they are and when they change.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rpc/rref.hpp"
#include "parts.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::rnn_lm {

enum class Part : std::uint8_t { embedding, decoder };
bool is_valid(Part part) noexcept;

class ParameterServer {
 public:
  explicit ParameterServer(RoleContext& context);

  /// Makes a part with its initial parameters, in place of an earlier one of its kind.
  /// @return references to the parameters, in the part's order
  /// Errors: bad_arguments (an impossible shape).
  Result<std::vector<RRef<at::Tensor>>> open(Part part, ModelShape shape);

  // Errors of the methods below: bad_arguments (that part was not opened).

  /// As EmbeddingTable::forward. Errors: also remote_exception (a character that is not in the vocabulary).
  Result<at::Tensor> embed(at::Tensor characters, Mode mode);
  /// As Decoder::forward.
  Result<at::Tensor> decode(at::Tensor hidden, Mode mode);

  /// Returns copies of a part's parameters.
  Result<std::vector<at::Tensor>> snapshot(Part part);
  /// Takes over the values of a snapshot. Errors: also bad_arguments (of another model; nothing has changed then).
  Result<void> load(Part part, std::vector<at::Tensor> values);

 private:
  Result<std::vector<at::Tensor>> parameters_of(Part part) const;

  RoleContext& context_;
  std::optional<EmbeddingTable> embedding_;
  std::optional<Decoder> decoder_;
};

}  // namespace caftan::rnn_lm

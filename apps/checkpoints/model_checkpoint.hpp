/// What a later run needs to go on with the training of one model: a file in the `checkpoints` folder of the run,
/// written whole and renamed into place. Start with `write_checkpoint` and `read_checkpoint`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::checkpoints {

/// What has to be the same when a training goes on: names as in the file, and what they stand for.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct ModelCheckpoint {
  Facts facts{};
  std::uint32_t data = 0;  ///< DataSet::checksum
  std::int64_t step = 0;   ///< of the model
  std::vector<at::Tensor> parameters{};
  std::vector<at::Tensor> buffers{};
  wire::Bytes optimizer{};  ///< as the optimizer saves its state
  wire::Bytes more{};       ///< of the application
};

/// Returns the first fact in which a checkpoint is of another training, "model = convnet, here it is resnet18"; empty
/// if there is none.
std::string first_difference(const Facts& checkpoint, const Facts& here);

/// Writes `folder`/step-NNNNNN and removes the oldest beyond `keep`. Returns the file.
/// Errors: io_error, limit_exceeded (no memory).
Result<std::filesystem::path> write_checkpoint(const std::filesystem::path& folder, const ModelCheckpoint& checkpoint,
                                               std::int64_t keep);

/// Reads a checkpoint. @param path  the file, a folder of such files or a run's folder, whose newest one is taken
/// Errors, naming the file: io_error (there is none), invalid_config (of another training), malformed_payload (cut off,
///   damaged), unsupported (of a newer version).
Result<ModelCheckpoint> read_checkpoint(const std::filesystem::path& path, const Facts& here);

/// As read_checkpoint, without making tensors: a launcher must not have threads yet.
/// Errors: as read_checkpoint, and invalid_config (it stands beyond `most`; the text names `key`).
/// @return the step
Result<std::int64_t> check_checkpoint(const std::filesystem::path& path, const Facts& here, std::int64_t most,
                                      const std::string& key);

/// Takes over the state of an optimizer as a checkpoint has it. Learning rate and momentum stay as they are: a resumed
/// training goes on with those of its own file. Errors: those of LocalOptimizer::load.
Result<void> load_but_rates(optim::LocalOptimizer& optimizer, wire::ByteView state);

/// Returns a SHA-256 over the step and all parameters and buffers: "sha256:...".
std::string fingerprint_of(std::int64_t step, const std::vector<at::Tensor>& parameters,
                           const std::vector<at::Tensor>& buffers);

}  // namespace caftan::checkpoints

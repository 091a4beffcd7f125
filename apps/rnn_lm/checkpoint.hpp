/// What a later run needs to go on with a training bit for bit. A checkpoint is a folder with a file per owner and a
/// manifest, which is renamed into place last; a folder without a manifest is no checkpoint. Start with
/// `write_checkpoint` and `read_checkpoint`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"
#include "config.hpp"
#include "corpus/corpus.hpp"
#include "training.hpp"

namespace caftan::rnn_lm {

/// The facts about a model that must be equal for a checkpoint to fit a training.
struct ModelFacts {
  std::string vocabulary{};  ///< all characters, UTF-8
  std::uint32_t text = 0;    ///< CRC-32C
  std::int64_t emb = 0, hid = 0, layers = 0, bptt = 0, batch = 0;
  double dropout = 0;
  std::string optimizer{};
  std::uint64_t seed = 0;  ///< seed of the parameters, which follows from the seed of the run

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& vocabulary& text& emb& hid& layers& bptt& batch& dropout& optimizer& seed;
  }
};

ModelFacts facts_of(const TrainerConfig& config, const Training& training);
/// Returns what a training of this config and corpus would give, without making one and its tensors.
/// @param parameter_seed  as TrainerSeeds::parameters
ModelFacts facts_of(const TrainerConfig& config, const corpus::Corpus& corpus, std::uint64_t parameter_seed);

/// Returns the first difference with the keys to set, empty if there is none.
std::string difference(const ModelFacts& checkpoint, const ModelFacts& here);

/// A training as it was between two steps.
struct Checkpoint {
  ModelFacts model{};
  TrainingState state{};
  std::vector<at::Tensor> trainer{};    ///< as Training::snapshot
  std::vector<at::Tensor> embedding{};  ///< parameters
  std::vector<at::Tensor> decoder{};
  wire::Bytes optimizer{};  ///< its state at all owners
};

/// Returns the digest of where a training stands: its step, all of its losses, and the values of every tensor of all
/// owners. Equal digests of two runs mean that the runs learned the same bits.
std::string fingerprint_of(const Checkpoint& checkpoint);

/// Writes FOLDER/step-000600 and then deletes all but the newest `keep` of the folder.
/// @return the checkpoint's folder. Errors: io_error.
Result<std::filesystem::path> write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                               std::int64_t keep);

/// Returns whether a training that continues from `state` can end at `max_steps`. There may be no step left to take.
/// Errors: invalid_config (`state` is beyond max_steps).
Result<void> check_steps(const TrainingState& state, std::int64_t max_steps);

/// Returns where the training of a checkpoint stands. Reads all of its files and compares their sizes and checksums
/// with the manifest. Makes no tensors. Errors: those of `read_checkpoint` and then of `check_steps`, except for errors
/// that only the tensors of an undamaged file show.
Result<TrainingState> check_checkpoint(const std::filesystem::path& path, const ModelFacts& here,
                                       std::int64_t max_steps);

/// Reads a checkpoint that fits `here`. Nothing of it has an effect before all of it was read and checked.
/// @param path  of a checkpoint, or of a run's folder or its checkpoints: the newest whole one
/// Errors, naming file and way out: io_error (nothing there, or a file of it is missing), malformed_payload (cut off,
/// damaged, or a file of another checkpoint), unsupported (of a newer version), invalid_config (of another model).
Result<Checkpoint> read_checkpoint(const std::filesystem::path& path, const ModelFacts& here);

}  // namespace caftan::rnn_lm

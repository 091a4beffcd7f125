#include "checkpoint.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>
#include <tuple>

#include "caftan/tensor/packed.hpp"
#include "caftan/wire/checkpoint_file.hpp"
#include "caftan/wire/checkpoint_folder.hpp"
#include "fingerprint/fingerprint.hpp"

namespace caftan::rnn_lm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestKind = "rnn_lm.manifest";
constexpr const char* kPartKind = "rnn_lm.part";
constexpr const char* kManifest = "manifest";
constexpr std::array<const char*, 4> kParts{"trainer", "embedding", "decoder", "optimizer"};

/// What the manifest says of one file of the checkpoint.
struct FileFacts {
  std::string name{};
  std::uint64_t size = 0;      ///< of its one record, bytes
  std::uint32_t checksum = 0;  ///< of it

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& size& checksum;
  }
};

struct Manifest {
  ModelFacts model{};
  TrainingState state{};
  std::vector<FileFacts> files{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& model& state& files;
  }
};

Error at_file(const fs::path& file, const Error& error) { return {error.code(), file.string() + ": " + error.text()}; }

FileFacts facts_of(std::string name, wire::ByteView bytes) {
  return {.name = std::move(name), .size = bytes.size(), .checksum = wire::crc32c(bytes)};
}

Result<void> write_part(const fs::path& folder, Manifest& manifest, const std::string& name, wire::Bytes bytes) {
  manifest.files.push_back(facts_of(name, bytes));
  wire::CheckpointFile file{.kind = kPartKind, .records = {}};
  file.records.push_back({name, std::move(bytes)});
  return wire::write_checkpoint_file(folder / name, file);
}

Result<wire::Bytes> read_part(const fs::path& folder, const Manifest& manifest, const std::string& name) {
  const auto file = wire::read_checkpoint_file(folder / name, kPartKind);
  if (!file) return file.error();
  const auto bytes = file->find(name);
  if (!bytes) return at_file(folder / name, bytes.error());
  const FileFacts found = facts_of(name, *bytes);
  const bool vouched = std::ranges::any_of(manifest.files, [&](const FileFacts& facts) {
    return facts.name == found.name && facts.size == found.size && facts.checksum == found.checksum;
  });
  if (!vouched) {
    return at_file(
        folder / name,
        Error(Errc::malformed_payload, "it is not the file that the manifest beside it names: use another checkpoint"));
  }
  wire::Bytes copy;
  wire::append(copy, *bytes);
  return copy;
}

Result<void> read_tensors(const fs::path& folder, const Manifest& manifest, const std::string& name,
                          std::vector<at::Tensor>& to) {
  const auto bytes = read_part(folder, manifest, name);
  if (!bytes) return bytes.error();
  auto tensors = tensor::unpack_tensors(*bytes);
  if (!tensors) return at_file(folder / name, tensors.error());
  to = *std::move(tensors);
  return {};
}

/// Returns the whole checkpoints of a folder, the newest last.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  return wire::find_checkpoints(folder, [](const fs::path& path) {
    std::error_code error;
    return fs::exists(path / kManifest, error);
  });
}

Result<fs::path> find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / kManifest, error)) return path;
  for (const fs::path& folder : {path, path / "checkpoints"}) {
    if (const auto found = checkpoints_in(folder); !found.empty()) return found.back();
  }
  return Error(Errc::io_error,
               path.string() +
                   ": there is no whole checkpoint; resume names the folder of a checkpoint (step-N with a file " +
                   kManifest + ") or of a run that has some, or is left out to start anew");
}

void remove_old(const fs::path& folder, std::int64_t keep) {
  const auto all = checkpoints_in(folder);
  const auto count = static_cast<std::int64_t>(all.size());
  for (std::int64_t i = 0; i + keep < count; ++i) {
    std::error_code ignored;  // a failure to remove an old checkpoint does not end the training
    // Without its manifest the folder is no checkpoint any more.
    fs::remove(all[static_cast<std::size_t>(i)] / kManifest, ignored);
    fs::remove_all(all[static_cast<std::size_t>(i)], ignored);
  }
}

ModelFacts facts_of(const TrainerConfig& config, std::string vocabulary, std::uint32_t text, std::uint64_t seed) {
  return {.vocabulary = std::move(vocabulary),
          .text = text,
          .emb = config.emb,
          .hid = config.hid,
          .layers = config.layers,
          .bptt = config.bptt,
          .batch = config.batch,
          .dropout = config.dropout,
          .optimizer = config.optimizer.name == OptimizerConfig::Name::adam ? "adam" : "sgd",
          .seed = seed};
}

struct Found {
  fs::path folder;
  Manifest manifest;
};

/// Finds the checkpoint that `path` names, and checks that it fits `here` and has all its files.
Result<Found> find_fitting(const fs::path& path, const ModelFacts& here) {
  const auto folder = find_checkpoint(path);
  if (!folder) return folder.error();
  const fs::path file = *folder / kManifest;
  const auto read = wire::read_checkpoint_file(file, kManifestKind);
  if (!read) return read.error();
  const auto bytes = read->find(kManifest);
  if (!bytes) return at_file(file, bytes.error());
  auto manifest = wire::decode<Manifest>(*bytes);
  if (!manifest) return at_file(file, manifest.error());
  if (const std::string other = difference(manifest->model, here); !other.empty()) {
    return at_file(file, Error(Errc::invalid_config, "a checkpoint of another model: " + other +
                                                         "; take over its value, or leave resume out to start anew"));
  }
  for (const FileFacts& part : manifest->files) {
    if (std::error_code error; fs::exists(*folder / part.name, error)) continue;
    return at_file(*folder / part.name, Error(Errc::io_error, "it is missing; use an earlier checkpoint"));
  }
  return Found{*folder, *std::move(manifest)};
}

}  // namespace

ModelFacts facts_of(const TrainerConfig& config, const Training& training) {
  const Text& text = training.text();
  return facts_of(config, text.vocabulary.characters(), text.checksum, training.shape().parameter_seed);
}

ModelFacts facts_of(const TrainerConfig& config, const corpus::Corpus& corpus, std::uint64_t parameter_seed) {
  const std::string whole = whole_text(corpus);
  return facts_of(config, Vocabulary(whole).characters(), checksum_of(whole), parameter_seed);
}

std::string difference(const ModelFacts& checkpoint, const ModelFacts& here) {
  const auto differ = [](const std::string& key, const auto& there, const auto& wanted) {
    std::array<std::string, 2> texts;
    if constexpr (requires { std::to_string(there); }) {
      texts = {std::to_string(there), std::to_string(wanted)};
    } else {
      texts = {there, wanted};
    }
    return key + " = " + texts[0] + ", here it is " + texts[1];
  };
  const std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 5> sizes{
      {{"emb", checkpoint.emb, here.emb},
       {"hid", checkpoint.hid, here.hid},
       {"layers", checkpoint.layers, here.layers},
       {"bptt", checkpoint.bptt, here.bptt},
       {"batch", checkpoint.batch, here.batch}}};
  for (const auto& [key, there, wanted] : sizes) {
    if (there != wanted) return differ(key, there, wanted);
  }
  if (checkpoint.dropout != here.dropout) return differ("dropout", checkpoint.dropout, here.dropout);
  if (checkpoint.optimizer != here.optimizer) return differ("optimizer.name", checkpoint.optimizer, here.optimizer);
  if (checkpoint.text != here.text || checkpoint.vocabulary != here.vocabulary) return "another corpus";
  if (checkpoint.seed != here.seed) return "another run.seed";
  return {};
}

std::string fingerprint_of(const Checkpoint& checkpoint) {
  Fingerprint digest;
  digest.add(static_cast<std::uint64_t>(checkpoint.state.step));
  digest.add(checkpoint.state.history);
  for (const auto* tensors : {&checkpoint.trainer, &checkpoint.embedding, &checkpoint.decoder}) {
    for (const at::Tensor& tensor : *tensors) {
      const at::Tensor values = tensor.contiguous();
      digest.add(std::span(values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel())));
    }
  }
  return digest.text();
}

Result<fs::path> write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, std::int64_t keep) {
  const fs::path place = folder / wire::checkpoint_name(checkpoint.state.step);
  std::error_code error;
  fs::create_directories(place, error);
  if (error) return Error(Errc::io_error, "cannot make " + place.string() + ": " + error.message());
  Manifest manifest{.model = checkpoint.model, .state = checkpoint.state, .files = {}};
  const std::array<std::pair<const char*, const std::vector<at::Tensor>*>, 3> parts{
      {{"trainer", &checkpoint.trainer}, {"embedding", &checkpoint.embedding}, {"decoder", &checkpoint.decoder}}};
  for (const auto& [part, tensors] : parts) {
    auto bytes = tensor::pack_tensors(*tensors);
    if (!bytes) return bytes.error();
    if (auto done = write_part(place, manifest, part, *std::move(bytes)); !done) return done.error();
  }
  if (auto done = write_part(place, manifest, "optimizer", checkpoint.optimizer); !done) return done.error();
  auto encoded = wire::encode(manifest);
  if (!encoded) return encoded.error();
  wire::CheckpointFile file{.kind = kManifestKind, .records = {}};
  file.records.push_back({kManifest, *std::move(encoded)});
  if (auto done = wire::write_checkpoint_file(place / kManifest, file); !done) return done.error();
  remove_old(folder, keep);
  return place;
}

Result<void> check_steps(const TrainingState& state, std::int64_t max_steps) {
  if (state.step <= max_steps) return {};
  return Error(Errc::invalid_config, "the checkpoint stands at step " + std::to_string(state.step) +
                                         ", beyond max_steps = " + std::to_string(max_steps) +
                                         "; raise max_steps, or resume from an earlier checkpoint");
}

Result<TrainingState> check_checkpoint(const fs::path& path, const ModelFacts& here, std::int64_t max_steps) {
  const auto found = find_fitting(path, here);
  if (!found) return found.error();
  const auto steps = check_steps(found->manifest.state, max_steps);
  if (!steps) return at_file(found->folder, steps.error());
  for (const char* const part : kParts) {
    if (const auto whole = read_part(found->folder, found->manifest, part); !whole) return whole.error();
  }
  return found->manifest.state;
}

Result<Checkpoint> read_checkpoint(const fs::path& path, const ModelFacts& here) {
  const auto found = find_fitting(path, here);
  if (!found) return found.error();
  const auto& [folder, manifest] = *found;
  Checkpoint checkpoint{.model = manifest.model, .state = manifest.state};
  const std::array<std::pair<const char*, std::vector<at::Tensor>*>, 3> parts{
      {{"trainer", &checkpoint.trainer}, {"embedding", &checkpoint.embedding}, {"decoder", &checkpoint.decoder}}};
  for (const auto& [part, tensors] : parts) {
    if (auto done = read_tensors(folder, manifest, part, *tensors); !done) return done.error();
  }
  auto optimizer = read_part(folder, manifest, "optimizer");
  if (!optimizer) return optimizer.error();
  checkpoint.optimizer = *std::move(optimizer);
  return checkpoint;
}

}  // namespace caftan::rnn_lm

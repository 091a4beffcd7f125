#include "checkpoints/model_checkpoint.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "caftan/tensor/packed.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/checkpoint_file.hpp"
#include "caftan/wire/checkpoint_folder.hpp"
#include "fingerprint/fingerprint.hpp"

namespace caftan::checkpoints {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKind = "image_model";

/// The record `state` of the file.
struct State {
  Facts facts{};
  std::uint32_t data = 0;
  std::int64_t step = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& facts& data& step;
  }
};

Error at_file(const fs::path& file, const Error& error) { return {error.code(), file.string() + ": " + error.text()}; }

/// Returns the checkpoints of a folder, the newest last.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  return wire::find_checkpoints(folder, [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
  });
}

Result<fs::path> find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Error(Errc::io_error,
                 "there is no " + path.string() + "; a path without a leading / is relative to the file");
  }
  if (!fs::is_directory(path, error)) return path;
  for (const fs::path& folder : {path, path / "checkpoints"}) {
    if (const auto found = checkpoints_in(folder); !found.empty()) return found.back();
  }
  return Error(Errc::io_error,
               path.string() +
                   ": there is no checkpoint; resume names one (checkpoints/step-N of a run), the folder "
                   "of a run that has some, or is left out to start anew");
}

/// A checkpoint's file that was found, read and checked, and its state.
struct Found {
  fs::path path;
  wire::CheckpointFile file;
  State state;
};

Result<Found> find_fitting(const fs::path& path, const Facts& here) {
  const auto found = find_checkpoint(path);
  if (!found) return found.error();
  auto file = wire::read_checkpoint_file(*found, kKind);
  if (!file) return file.error();
  const auto bytes = file->find("state");
  if (!bytes) return at_file(*found, bytes.error());
  auto state = wire::decode<State>(*bytes);
  if (!state) return at_file(*found, state.error());
  if (const std::string other = first_difference(state->facts, here); !other.empty()) {
    return at_file(*found, Error(Errc::invalid_config, "a checkpoint of another training: " + other +
                                                           "; take over its value, or leave resume out to start anew"));
  }
  return Found{*found, *std::move(file), *std::move(state)};
}

Result<std::vector<at::Tensor>> read_tensors(const Found& found, const char* name) {
  const auto bytes = found.file.find(name);
  if (!bytes) return at_file(found.path, bytes.error());
  auto tensors = tensor::unpack_tensors(*bytes);
  if (!tensors) return at_file(found.path, tensors.error());
  return tensors;
}

Result<wire::Bytes> read_bytes(const Found& found, const char* name) {
  const auto bytes = found.file.find(name);
  if (!bytes) return at_file(found.path, bytes.error());
  wire::Bytes copy;
  wire::append(copy, *bytes);
  return copy;
}

void remove_old(const fs::path& folder, std::int64_t keep) {
  const auto all = checkpoints_in(folder);
  const auto count = static_cast<std::int64_t>(all.size());
  for (std::int64_t i = 0; i + keep < count; ++i) {
    std::error_code ignored;  // an old checkpoint that stays is no reason to end a training
    fs::remove(all[static_cast<std::size_t>(i)], ignored);
  }
}

}  // namespace

std::string first_difference(const Facts& checkpoint, const Facts& here) {
  for (const auto& [key, wanted] : here) {
    const auto there = std::ranges::find(checkpoint, key, [](const auto& fact) { return fact.first; });
    if (there == checkpoint.end()) return key + " is not known of it";
    if (there->second != wanted) return key + " = " + there->second + ", here it is " + wanted;
  }
  return {};
}

Result<fs::path> write_checkpoint(const fs::path& folder, const ModelCheckpoint& checkpoint, std::int64_t keep) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error(Errc::io_error, "cannot make " + folder.string() + ": " + error.message());
  wire::CheckpointFile file{.kind = kKind, .records = {}};
  auto state = wire::encode(State{.facts = checkpoint.facts, .data = checkpoint.data, .step = checkpoint.step});
  if (!state) return state.error();
  file.records.push_back({"state", *std::move(state)});
  for (const auto& [record, tensors] :
       {std::pair("parameters", &checkpoint.parameters), std::pair("buffers", &checkpoint.buffers)}) {
    auto bytes = tensor::pack_tensors(*tensors);
    if (!bytes) return bytes.error();
    file.records.push_back({record, *std::move(bytes)});
  }
  file.records.push_back({"optimizer", checkpoint.optimizer});
  file.records.push_back({"more", checkpoint.more});
  fs::path path = folder / wire::checkpoint_name(checkpoint.step);
  if (auto written = wire::write_checkpoint_file(path, file); !written) return written.error();
  remove_old(folder, keep);
  return path;
}

Result<ModelCheckpoint> read_checkpoint(const fs::path& path, const Facts& here) {
  const auto found = find_fitting(path, here);
  if (!found) return found.error();
  ModelCheckpoint checkpoint{.facts = found->state.facts, .data = found->state.data, .step = found->state.step};
  auto parameters = read_tensors(*found, "parameters");
  auto buffers = read_tensors(*found, "buffers");
  auto optimizer = read_bytes(*found, "optimizer");
  auto more = read_bytes(*found, "more");
  if (!parameters) return parameters.error();
  if (!buffers) return buffers.error();
  if (!optimizer) return optimizer.error();
  if (!more) return more.error();
  checkpoint.parameters = *std::move(parameters);
  checkpoint.buffers = *std::move(buffers);
  checkpoint.optimizer = *std::move(optimizer);
  checkpoint.more = *std::move(more);
  return checkpoint;
}

Result<std::int64_t> check_checkpoint(const fs::path& path, const Facts& here, std::int64_t most,
                                      const std::string& key) {
  const auto found = find_fitting(path, here);
  if (!found) return found.error();
  for (const char* const record : {"parameters", "buffers", "optimizer", "more"}) {
    if (const auto bytes = found->file.find(record); !bytes) return at_file(found->path, bytes.error());
  }
  if (found->state.step > most) {
    return at_file(found->path,
                   Error(Errc::invalid_config, "it stands at step " + std::to_string(found->state.step) + ", beyond " +
                                                   key + " = " + std::to_string(most) + "; raise " + key +
                                                   ", or resume from an earlier checkpoint"));
  }
  return found->state.step;
}

Result<void> load_but_rates(optim::LocalOptimizer& optimizer, wire::ByteView state) {
  const double lr = optimizer.lr(0);
  const std::optional<double> momentum = optimizer.momentum(0);
  if (auto loaded = optimizer.load(state); !loaded) return loaded;
  optimizer.set_lr(0, lr);
  if (momentum) optimizer.set_momentum(0, *momentum);
  return {};
}

std::string fingerprint_of(std::int64_t step, const std::vector<at::Tensor>& parameters,
                           const std::vector<at::Tensor>& buffers) {
  Fingerprint digest;
  digest.add(static_cast<std::uint64_t>(step));
  for (const auto* tensors : {&parameters, &buffers}) {
    for (const at::Tensor& tensor : *tensors) {
      const at::Tensor values = tensor.to(at::kFloat).contiguous();
      digest.add(std::span(values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel())));
    }
  }
  return digest.text();
}

}  // namespace caftan::checkpoints

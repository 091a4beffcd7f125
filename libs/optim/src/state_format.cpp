#include "state_format.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "caftan/tensor/codec.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/internal/block_pool.hpp"
#include "gradient_check.hpp"
#include "update.hpp"

namespace caftan::optim {
namespace {

constexpr std::uint64_t kMagic = 0x54504f4e41544643;  // "CFTANOPT"
constexpr std::uint32_t kVersion = 1;                 // without initial rates
constexpr std::uint32_t kWithInitial = 2;             // with them
constexpr std::uint32_t kWithLate = 3;                // a parameter may have a tensor of a late slot or lack it

constexpr std::uint32_t kWithLbfgs = 4;  // with the memory of LBFGS

/// The numbers of an LbfgsMemory. Its tensors stand behind those of the parameters.
struct LbfgsNumbers {
  std::uint64_t iterations = 0;
  std::uint64_t evaluations = 0;
  double t = 0;
  double previous_loss = 0;
  std::uint32_t changes = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& iterations& evaluations& t& previous_loss& changes;
  }
};

/// The description of a parameter in the file: enough to recognize another model.
struct Entry {
  std::vector<std::int64_t> sizes;
  std::int8_t dtype = 0;
  std::uint32_t group = 0;
  std::uint64_t steps = 0;
  std::array<bool, kStateSlots> present{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& sizes& dtype& group& steps& present;
  }
};

struct Head {
  std::vector<Algorithm> algorithms;
  std::vector<Entry> entries;
  wire::Bytes table;  ///< of the tensors behind the head

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& algorithms& entries& table;
  }
};

Error truncated() { return Error(Errc::malformed_payload, "the saved optimizer is truncated"); }
Error another_model(const std::string& difference) {
  return Error(Errc::bad_arguments, "the saved optimizer is of another model: " + difference);
}

/// @param initial_lrs  left empty by version 1
/// @param numbers  left as they are before version 4
Result<void> read_head(wire::ByteView bytes, std::uint32_t version, Head& head, std::vector<double>& initial_lrs,
                       LbfgsNumbers& numbers) {
  if (version < kWithInitial) return wire::decode_into(bytes, head);
  const auto read = version < kWithLbfgs ? wire::decode_into(bytes, std::tie(head, initial_lrs))
                                         : wire::decode_into(bytes, std::tie(head, initial_lrs, numbers));
  if (!read) return read;
  if (initial_lrs.size() == head.algorithms.size() || (version > kWithInitial && initial_lrs.empty())) return {};
  return Error(Errc::malformed_payload, "the saved optimizer has initial rates of another number of groups");
}

/// Returns the lowest version that can hold the state.
std::uint32_t version_for(const SavedOptimizer& optimizer) {
  if (optimizer.lbfgs.evaluations > 0) return kWithLbfgs;
  for (std::size_t i = 0; i < optimizer.states.size(); ++i) {
    const Algorithm& algorithm = optimizer.algorithms[optimizer.group_of[i]];
    const ParameterState& state = optimizer.states[i];
    for (std::size_t slot = 0; slot < kStateSlots; ++slot) {
      const bool expected = momentum(algorithm).value_or(0) != 0;
      if (state.steps > 0 && is_late(algorithm, slot) && state.tensors[slot].defined() != expected) return kWithLate;
    }
  }
  return optimizer.initial_lrs.empty() ? kVersion : kWithInitial;
}

Result<void> check_model(const Head& head, std::span<const Algorithm> algorithms,
                         std::span<const std::uint32_t> group_of, std::span<const at::Tensor> parameters) {
  if (head.algorithms.size() != algorithms.size()) {
    return another_model(std::to_string(head.algorithms.size()) + " parameter groups, here are " +
                         std::to_string(algorithms.size()));
  }
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    if (head.algorithms[i].index() != algorithms[i].index() || name_of(head.algorithms[i]) != name_of(algorithms[i])) {
      return another_model("group " + std::to_string(i) + " is stepped by " + std::string(name_of(head.algorithms[i])) +
                           ", here by " + std::string(name_of(algorithms[i])));
    }
    if (const Result<void> fits = check_options(head.algorithms[i]); !fits) {
      return Error(Errc::malformed_payload, "the saved optimizer has impossible options: " + fits.error().text());
    }
  }
  if (head.entries.size() != parameters.size()) {
    return another_model(std::to_string(head.entries.size()) + " parameters, here are " +
                         std::to_string(parameters.size()));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Entry& entry = head.entries[i];
    if (at::IntArrayRef(entry.sizes) != parameters[i].sizes() ||
        entry.dtype != static_cast<std::int8_t>(parameters[i].scalar_type())) {
      return another_model("it has other sizes or another dtype for " + describe(parameters[i], i));
    }
    if (entry.group != group_of[i]) return another_model(describe(parameters[i], i) + " is in another group");
  }
  return {};
}

/// Reads the tensors behind the head. They are copied, so that a loaded state does not keep the file's bytes in memory.
Result<std::vector<tensor::DecodedTensor>> read_tensors(wire::ByteView table, wire::ByteView rest) {
  auto layout = tensor::TensorLayout::parse(table, {.max_bytes = rest.size(), .max_tensors = table.size()});
  if (!layout) return layout.error().code() == Errc::limit_exceeded ? truncated() : layout.error();
  std::vector<wire::Block> blocks;
  wire::BlockPool pool;
  for (const std::uint64_t size : layout->segment_sizes()) {
    if (size > rest.size()) return truncated();
    auto block = pool.take(size);
    if (!block) return block.error();
    std::memcpy(block->data(), rest.data(), size);
    rest = rest.subspan(size);
    blocks.push_back(std::move(*block));
  }
  if (!rest.empty()) {
    return Error(Errc::malformed_payload, std::to_string(rest.size()) + " bytes too many in the saved optimizer");
  }
  return layout->build(std::move(blocks));
}

/// Returns whether a saved tensor can be one of the state tensors of `parameter`.
bool fits(const at::Tensor& tensor, const at::Tensor& parameter, const Algorithm& algorithm) {
  return tensor.defined() && tensor.sizes() == parameter.sizes() && tensor.scalar_type() == parameter.scalar_type() &&
         (tensor.layout() == at::kStrided || (keeps_sparse(algorithm) && tensor.is_sparse()));
}

/// Returns which state tensors a parameter has that was stepped.
std::array<bool, kStateSlots> needed(const Algorithm& algorithm, const ParameterState& state) {
  const SlotNames names = slots_of(algorithm);
  std::array<bool, kStateSlots> used{};
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    used[slot] = !names[slot].empty() && (!is_late(algorithm, slot) || state.tensors[slot].defined());
  }
  return used;
}

/// Returns whether the tensors that a saved parameter has can be those of the algorithm.
bool has_expected(const Entry& entry, const Algorithm& algorithm) {
  const SlotNames names = slots_of(algorithm);
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    const bool expected = entry.steps > 0 && !names[slot].empty();
    if (entry.present[slot] != expected && !(expected && is_late(algorithm, slot))) return false;
  }
  return true;
}

/// Gives the Custom algorithms of a file the code of those here.
void lend_code(std::span<Algorithm> to, std::span<const Algorithm> from) {
  for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i) {
    Custom* const custom = std::get_if<Custom>(&to[i]);
    const Custom* const here = std::get_if<Custom>(&from[i]);
    if (custom && here && custom->name == here->name) custom->code = here->code;
  }
}

/// @param tensors  those that belong to no single parameter
Result<LbfgsMemory> read_lbfgs(const LbfgsNumbers& numbers, std::span<const tensor::DecodedTensor> tensors,
                               std::span<const Algorithm> algorithms, std::span<const at::Tensor> parameters) {
  LbfgsMemory memory;
  const std::size_t expected = numbers.iterations > 0 ? 3 + 3 * std::size_t{numbers.changes} : 0;
  if (tensors.size() != expected) return Error(Errc::malformed_payload, "the saved optimizer has tensors left over");
  const LBFGS* const lbfgs = std::get_if<LBFGS>(&algorithms[0]);
  if (!lbfgs && numbers.evaluations == 0 && expected == 0) return memory;
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) elements += parameter.numel();
  bool fit = lbfgs && static_cast<std::int64_t>(numbers.changes) <= lbfgs->history_size;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i].tensor;
    fit = fit && tensor.defined() && tensor.layout() == at::kStrided &&
          tensor.scalar_type() == parameters[0].scalar_type() &&
          (i % 3 == 2 ? tensor.dim() == 0 : tensor.dim() == 1 && tensor.numel() == elements);
  }
  if (!fit) return Error(Errc::malformed_payload, "the saved optimizer has a memory that LBFGS cannot have here");
  memory.iterations = numbers.iterations;
  memory.evaluations = numbers.evaluations;
  memory.t = numbers.t;
  memory.previous_loss = numbers.previous_loss;
  if (tensors.empty()) return memory;
  memory.direction = tensors[0].tensor;
  memory.previous_gradient = tensors[1].tensor;
  memory.scale = tensors[2].tensor;
  for (std::size_t i = 3; i < tensors.size(); i += 3) {
    memory.history.push_back({tensors[i].tensor, tensors[i + 1].tensor, tensors[i + 2].tensor});
  }
  return memory;
}

}  // namespace

Result<SavedContent> after_prefix(wire::ByteView bytes, std::uint64_t magic, std::uint32_t newest) {
  std::uint64_t found = 0;
  std::uint32_t version = 0;
  if (!take(bytes, found)) return truncated();
  if (found != magic) return Error(Errc::malformed_payload, "these bytes are no saved optimizer");
  if (!take(bytes, version)) return truncated();
  if (version > newest) {
    return Error(Errc::protocol_mismatch, "the saved optimizer has version " + std::to_string(version) +
                                              ", this build reads up to " + std::to_string(newest) +
                                              ": load it with the version that wrote it, or a later one");
  }
  return SavedContent{version, bytes};
}

Result<wire::Bytes> write_state(const SavedOptimizer& optimizer, std::span<const at::Tensor> parameters) {
  Head head{optimizer.algorithms, {}, {}};
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterState& state = optimizer.states[i];
    Entry entry{parameters[i].sizes().vec(),
                static_cast<std::int8_t>(parameters[i].scalar_type()),
                optimizer.group_of[i],
                state.steps,
                {}};
    // A parameter that was never stepped has no values in its state, even if memory was allocated for its first step.
    if (state.steps > 0) entry.present = needed(optimizer.algorithms[entry.group], state);
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
      if (entry.present[t]) tensors.push_back(state.tensors[t]);
    }
    head.entries.push_back(std::move(entry));
  }
  const LbfgsMemory& lbfgs = optimizer.lbfgs;
  if (lbfgs.iterations > 0) {
    tensors.insert(tensors.end(), {lbfgs.direction, lbfgs.previous_gradient, lbfgs.scale});
    for (const LbfgsMemory::Change& change : lbfgs.history) {
      tensors.insert(tensors.end(), {change.gradient, change.parameter, change.inverse});
    }
  }
  auto encoded = tensor::encode_tensors(tensors);
  if (!encoded) return encoded.error();
  head.table = std::move(encoded->table);
  wire::Bytes bytes;
  put(bytes, kMagic);
  const std::uint32_t version = version_for(optimizer);
  put(bytes, version);
  const LbfgsNumbers numbers{lbfgs.iterations, lbfgs.evaluations, lbfgs.t, lbfgs.previous_loss,
                             static_cast<std::uint32_t>(lbfgs.history.size())};
  auto written = version >= kWithLbfgs ? wire::encode(std::tie(head, optimizer.initial_lrs, numbers))
                 : version > kVersion  ? wire::encode(std::tie(head, optimizer.initial_lrs))
                                       : wire::encode(head);
  if (!written) return written.error();
  put(bytes, std::uint64_t{written->size()});
  wire::append(bytes, *written);
  for (const wire::Segment& segment : encoded->segments) wire::append(bytes, segment.view());
  return bytes;
}

Result<SavedOptimizer> read_state(wire::ByteView bytes, std::span<const Algorithm> algorithms,
                                  std::span<const std::uint32_t> group_of, std::span<const at::Tensor> parameters) {
  const auto content = after_prefix(bytes, kMagic, kWithLbfgs);
  if (!content) return content.error();
  bytes = content->bytes;
  std::uint64_t size = 0;
  if (!take(bytes, size) || size > bytes.size()) return truncated();
  Head head;
  std::vector<double> initial_lrs;
  LbfgsNumbers numbers;
  auto read = read_head(bytes.first(size), content->version, head, initial_lrs, numbers);
  if (!read) return read.error();
  lend_code(head.algorithms, algorithms);
  if (Result<void> same = check_model(head, algorithms, group_of, parameters); !same) return same.error();
  auto tensors = read_tensors(head.table, bytes.subspan(size));
  if (!tensors) return tensors.error();

  SavedOptimizer saved{
      std::move(head.algorithms), {group_of.begin(), group_of.end()}, {}, std::move(initial_lrs), LbfgsMemory()};
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Entry& entry = head.entries[i];
    const Algorithm& algorithm = saved.algorithms[entry.group];
    if (!has_expected(entry, algorithm)) {
      return Error(Errc::malformed_payload,
                   "the saved optimizer has the wrong tensors for " + describe(parameters[i], i));
    }
    ParameterState& state = saved.states.emplace_back(ParameterState{entry.steps, {}});
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
      if (!entry.present[t]) continue;
      if (next == tensors->size() || !fits((*tensors)[next].tensor, parameters[i], algorithm)) {
        return Error(Errc::malformed_payload,
                     "the saved optimizer has no fitting tensor for " + describe(parameters[i], i));
      }
      state.tensors[t] = (*tensors)[next++].tensor;
    }
  }
  auto lbfgs = read_lbfgs(numbers, std::span(*tensors).subspan(next), saved.algorithms, parameters);
  if (!lbfgs) return lbfgs.error();
  saved.lbfgs = *std::move(lbfgs);
  return saved;
}

}  // namespace caftan::optim

#include "caftan/nn/remote_module.hpp"

#include <c10/core/GradMode.h>

#include <deque>

#include "caftan/nn/internal/module_control.hpp"

namespace caftan::nn {
namespace {

constexpr std::size_t kMostUnderWay = 4;  // messages of one state

Result<std::vector<RRef<at::Tensor>>> without_names(Result<std::vector<NamedReference>> named) {
  if (!named) return named.error();
  std::vector<RRef<at::Tensor>> references;
  references.reserve(named->size());
  for (NamedReference& one : *named) references.push_back(std::move(one.tensor));
  return references;
}

/// A chunk of a state that was asked for.
struct AskedChunk {
  const Chunk& chunk;
  Future<std::vector<at::Tensor>> values;
};

Result<void> write_first(StateDict& state, std::deque<AskedChunk>& under_way) {
  AskedChunk first = std::move(under_way.front());
  under_way.pop_front();
  const Result<std::vector<at::Tensor>> values = std::move(first.values).result();
  if (!values) return values.error();
  return write_chunk(state, first.chunk, *values);
}

}  // namespace

Result<void> ModuleHandle::serve(const CallSite& site, const rpc::Destination& to, RRef<ServedModule> module) {
  Result<RRef<ModuleControl>> control = site.try_remote(kServeModule, to, module);
  if (!control) return control.error();
  module_ = std::move(module);
  control_ = *std::move(control);
  return {};
}

Future<void> ModuleHandle::created() const { return control_.created(); }

RRefCalls<ModuleControl> ModuleHandle::control() const { return control_.with(options_); }

Result<std::vector<NamedReference>> ModuleHandle::list(TensorKind kind) const {
  return control().try_rpc_sync<&ModuleControl::list>(kind);
}

Result<std::vector<NamedReference>> ModuleHandle::try_named_parameters() const { return list(TensorKind::parameter); }
Result<std::vector<NamedReference>> ModuleHandle::try_named_buffers() const { return list(TensorKind::buffer); }
Result<std::vector<RRef<at::Tensor>>> ModuleHandle::try_parameters() const {
  return without_names(list(TensorKind::parameter));
}
Result<std::vector<RRef<at::Tensor>>> ModuleHandle::try_buffers() const {
  return without_names(list(TensorKind::buffer));
}

Result<StateDict> ModuleHandle::try_state_dict(const StateOptions& options) const {
  const c10::AutoGradMode no_graph(false);
  const Result<SavedModule> saved = control().try_rpc_sync<&ModuleControl::save>();
  if (!saved) return saved.error();
  Result<StateDict> state = make_blank(saved->tensors);
  if (!state) return state.error();
  const std::vector<Chunk> chunks = cut(*state, options.chunk);
  std::deque<AskedChunk> under_way;
  for (const Chunk& chunk : chunks) {
    if (under_way.size() == kMostUnderWay) {
      if (const Result<void> written = write_first(*state, under_way); !written) return written.error();
    }
    under_way.push_back({chunk, saved->source.with(options_).rpc_async<&StateSource::read>(chunk)});
  }
  while (!under_way.empty()) {
    if (const Result<void> written = write_first(*state, under_way); !written) return written.error();
  }
  return state;
}

Result<void> ModuleHandle::try_load_state_dict(const StateDict& state, const StateOptions& options) const {
  const c10::AutoGradMode no_graph(false);
  const Result<std::vector<TensorInfo>> tensors = describe(state);
  if (!tensors) return tensors.error();
  const Result<StateDict> values = make_contiguous(state);
  if (!values) return values.error();
  const Result<RRef<StagedState>> staged = control().try_rpc_sync<&ModuleControl::stage>(*tensors);
  if (!staged) return staged.error();
  std::deque<Future<void>> under_way;
  for (const Chunk& chunk : cut(*values, options.chunk)) {
    if (under_way.size() == kMostUnderWay) {
      if (const Result<void> first = std::move(under_way.front()).result(); !first) return first;
      under_way.pop_front();
    }
    const Result<std::vector<at::Tensor>> part = read_chunk(*values, chunk);
    if (!part) return part.error();
    under_way.push_back(staged->with(options_).rpc_async<&StagedState::put>(chunk, *part));
  }
  for (Future<void>& one : under_way) {
    if (const Result<void> ended = std::move(one).result(); !ended) return ended;
  }
  return control().try_rpc_sync<&ModuleControl::take>(*staged, options.wait);
}

Result<void> ModuleHandle::try_to(const std::string& device, const StateOptions& options) const {
  return control().try_rpc_sync<&ModuleControl::to>(device, options.wait);
}

Error detail::no_constructor(std::string_view type, std::string_view signature) {
  return Error(Errc::unknown_function, "this worker has no module " + std::string(signature) + ": nn::add_module<" +
                                           std::string(type) +
                                           ">(registry, \"...\").constructor<...>() with these types gives it one");
}

Error detail::no_method(std::string_view type, std::string_view method) {
  const std::string name = (method.starts_with('&') ? "" : "&") + std::string(method);
  return Error(Errc::unknown_function, "this worker has no name for " + name + " of a module: nn::add_module<" +
                                           std::string(type) + ">(registry, \"...\").method<" + name +
                                           ">(\"...\") gives it one (a function around a method: before, after)");
}

}  // namespace caftan::nn

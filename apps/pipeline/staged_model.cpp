#include "pipeline/staged_model.hpp"

#include "caftan/caftan.hpp"

namespace caftan::pipeline {

Result<StagedModel> StagedModel::try_make(const CallSite& site, const Options& options) {
  const std::vector<Place>& places = options.places;
  StageSpec spec = options.spec;
  std::vector<RemoteStage> stages;
  for (std::size_t i = 0; i < places.size(); ++i) {
    spec.first_unit = places[i].units.first;
    spec.end_unit = places[i].units.end;
    spec.next = i + 1 < places.size() ? places[i + 1].worker : options.home;
    auto made = RemoteStage::try_make(site, places[i].worker, spec);
    if (!made) return made.error();
    stages.push_back(*std::move(made));
  }
  optim::RemoteParameterGroup group{.parameters = {}, .algorithm = options.algorithm};
  for (const RemoteStage& stage : stages) {
    auto parameters = stage.try_named_parameters();  // waits for the constructor, and has its error
    if (!parameters) return parameters.error();
    for (nn::NamedReference& parameter : *parameters) {
      group.parameters.push_back(std::move(parameter.tensor));
      group.names.push_back(std::move(parameter.name));
    }
  }
  auto optimizer = optim::DistributedOptimizer::try_make(site, {std::move(group)});
  if (!optimizer) return optimizer.error();
  return StagedModel(std::move(stages), *std::move(optimizer));
}

Result<std::vector<StagedModel::StageValues>> StagedModel::values() const {
  std::vector<StageValues> values;
  for (const RemoteStage& stage : stages_) {
    auto state = stage.try_state_dict();
    if (!state) return state.error();
    const auto buffers = stage.try_named_buffers();
    if (!buffers) return buffers.error();
    const std::size_t parameters = state->size() - buffers->size();
    values.push_back({*std::move(state), parameters});
  }
  return values;
}

Result<StagedModel::Tensors> StagedModel::tensors() const {
  const auto values = this->values();
  if (!values) return values.error();
  Tensors tensors;
  for (const StageValues& of : *values) {
    for (std::size_t i = 0; i < of.state.size(); ++i) {
      (i < of.parameters ? tensors.parameters : tensors.buffers).push_back(of.state[i].tensor);
    }
  }
  return tensors;
}

Result<void> StagedModel::load(const checkpoints::ModelCheckpoint& checkpoint, const std::string& file) {
  auto values = this->values();
  if (!values) return values.error();
  std::size_t parameter = 0;
  std::size_t buffer = 0;
  bool fits = true;
  for (StageValues& of : *values) {
    for (std::size_t i = 0; fits && i < of.state.size(); ++i) {
      const auto& from = i < of.parameters ? checkpoint.parameters : checkpoint.buffers;
      std::size_t& next = i < of.parameters ? parameter : buffer;
      fits = next < from.size() && from[next].defined() && from[next].sizes() == of.state[i].tensor.sizes();
      if (fits) of.state[i].tensor = from[next++];
    }
  }
  if (!fits || parameter != checkpoint.parameters.size() || buffer != checkpoint.buffers.size()) {
    return Error(Errc::invalid_config, file + ": a checkpoint of another model");
  }
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (auto loaded = stages_[stage].try_load_state_dict((*values)[stage].state); !loaded) return loaded;
  }
  return optimizer_.try_load(checkpoint.optimizer);
}

Result<std::vector<StageReport>> StagedModel::reports() const {
  std::vector<Future<StageReport>> asked;
  for (const RemoteStage& stage : stages_) asked.push_back(stage.rpc_async<&StageModule::report>());
  std::vector<StageReport> reports;
  for (auto& one : asked) {
    auto report = std::move(one).result();
    if (!report) return report.error();
    reports.push_back(*std::move(report));
  }
  return reports;
}

}  // namespace caftan::pipeline

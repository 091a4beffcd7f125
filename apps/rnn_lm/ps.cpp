#include "ps.hpp"

#include "caftan/caftan.hpp"

namespace caftan::rnn_lm {
namespace {

Error not_opened(const char* part) { return {Errc::bad_arguments, std::string("no ") + part + " was opened here"}; }

}  // namespace

bool is_valid(Part part) noexcept { return part == Part::embedding || part == Part::decoder; }

ParameterServer::ParameterServer(RoleContext& context) : context_(context) {}

Result<std::vector<RRef<at::Tensor>>> ParameterServer::open(Part part, ModelShape shape) {
  if (auto possible = shape.check(); !possible) return possible.error();
  if (part == Part::embedding) {
    embedding_.emplace(shape, context_.seed("dropout"));
  } else {
    decoder_.emplace(shape, context_.seed("dropout"));
  }
  const auto parameters = parameters_of(part);
  if (!parameters) return parameters.error();
  std::vector<RRef<at::Tensor>> references;
  for (const at::Tensor& parameter : *parameters) references.push_back(context_.make_rref(parameter));
  return references;
}

Result<at::Tensor> ParameterServer::embed(at::Tensor characters, Mode mode) {
  if (!embedding_) return not_opened("embedding table");
  return embedding_->forward(characters, mode);
}

Result<at::Tensor> ParameterServer::decode(at::Tensor hidden, Mode mode) {
  if (!decoder_) return not_opened("decoder");
  return decoder_->forward(hidden, mode);
}

Result<std::vector<at::Tensor>> ParameterServer::parameters_of(Part part) const {
  if (part == Part::embedding) {
    if (!embedding_) return not_opened("embedding table");
    return embedding_->parameters();
  }
  if (!decoder_) return not_opened("decoder");
  return decoder_->parameters();
}

Result<std::vector<at::Tensor>> ParameterServer::snapshot(Part part) {
  auto parameters = parameters_of(part);
  if (!parameters) return parameters;
  for (at::Tensor& parameter : *parameters) parameter = parameter.detach().clone();
  return parameters;
}

Result<void> ParameterServer::load(Part part, std::vector<at::Tensor> values) {
  const auto parameters = parameters_of(part);
  if (!parameters) return parameters.error();
  return load_parameters(*parameters, values);
}

}  // namespace caftan::rnn_lm

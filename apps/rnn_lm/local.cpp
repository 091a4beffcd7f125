#include "local.hpp"

#include <torch/csrc/autograd/autograd.h>

namespace caftan::rnn_lm {

Result<LocalTraining> LocalTraining::make(const TrainerConfig& config, const LocalSeeds& seeds) {
  auto training = Training::make(config, seeds.trainer);
  if (!training) return training.error();
  return LocalTraining(*std::move(training), seeds);
}

LocalTraining::LocalTraining(Training training, const LocalSeeds& seeds)
    : training_(std::move(training)),
      embedding_(std::make_shared<EmbeddingTable>(training_.shape(), seeds.embedding_dropout)),
      decoder_(std::make_shared<Decoder>(training_.shape(), seeds.decoder_dropout)) {
  ends_.embed = [embedding = embedding_](const at::Tensor& characters, const Mode& mode) -> Result<at::Tensor> {
    return embedding->forward(characters, mode).alias();
  };
  ends_.decode = [decoder = decoder_](const at::Tensor& hidden, const Mode& mode) -> Result<at::Tensor> {
    return decoder->forward(hidden.alias(), mode).alias();
  };
}

std::vector<at::Tensor> LocalTraining::parameters() const {
  std::vector<at::Tensor> all = training_.parameters();
  for (const auto* list : {&embedding_->parameters(), &decoder_->parameters()}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  return all;
}

Result<double> LocalTraining::step(const Step& step) {
  const auto loss = training_.forward(ends_);
  if (!loss) return loss.error();
  step(torch::autograd::grad({*loss}, parameters()));
  training_.end_step(loss->detach());
  return loss->item<double>();
}

}  // namespace caftan::rnn_lm

/// The trainer's whole state apart from calls: text, windows, LSTM, what it carries between windows, and the curve. The
/// role drives it with calls to other workers, `LocalTraining` without any. Start with `forward`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "config.hpp"
#include "parts.hpp"
#include "text.hpp"

namespace caftan::rnn_lm {

/// The first and the last part of the model, wherever they live.
/// @return as EmbeddingTable::forward and Decoder::forward
struct Ends {
  using Forward = std::function<Result<at::Tensor>(const at::Tensor& input, const Mode& mode)>;
  Forward embed;
  Forward decode;
};

/// The seeds of the trainer's replica, as RoleContext::seed gives them for these purposes.
struct TrainerSeeds {
  std::uint64_t parameters = 0;  ///< of all parts
  std::uint64_t dropout = 0;     ///< between LSTM layers
  std::uint64_t sample = 0;
};

/// Everything that decides how a training goes on, apart from parameters, optimizers and seeds.
struct TrainingState {
  std::int64_t step = 0;      ///< training steps taken
  std::int64_t position = 0;  ///< position of the windows: how many characters into the rows
  std::uint64_t history = 0;  ///< a mix of the bits of all losses so far
  double loss_sum = 0;        ///< sum of the losses of the steps since the last validation, nats per character
  std::int64_t loss_count = 0;
  double best = std::numeric_limits<double>::infinity();  ///< smallest validation loss so far, nats per character
  double learning_rate = 0;
  std::int64_t validated_at = -1;  ///< the step of the last validation; -1 = none
  double valid_loss = 0;           ///< what it gave

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& position& history& loss_sum& loss_count& best& learning_rate& validated_at& valid_loss;
  }
};

/// One point of the curve.
struct Validation {
  double train_loss = 0;  ///< mean training loss since the last point, nats per character
  double valid_loss = 0;  ///< nats per character
};

/// Threads: one at a time.
class Training {
 public:
  /// Reads the text.
  /// Errors: those of `corpus::read_corpus`; invalid_config (the text is too short for one window of the batch).
  static Result<Training> make(const TrainerConfig& config, const TrainerSeeds& seeds);

  const Text& text() const noexcept { return text_; }
  const ModelShape& shape() const noexcept { return shape_; }
  /// Returns the LSTM's parameters.
  const std::vector<at::Tensor>& parameters() const noexcept { return lstm_.parameters(); }

  /// Takes the next window through the model, and detaches the LSTM's state for the window after it.
  /// @return the mean loss, a scalar recorded by autograd, in nats per character
  /// Errors: those of the ends.
  Result<at::Tensor> forward(const Ends& ends);

  /// Ends the step that `forward` began, once all parameters have changed.
  void end_step(const at::Tensor& loss);

  /// Measures the loss on the text that is never learned from, without dropout, and returns a point of the curve; the
  /// learning rate decays unless the loss is the best so far. Errors: those of the ends, and invalid_config (the loss
  /// or its perplexity is not finite); nothing has changed then.
  Result<Validation> validate(const Ends& ends);

  /// Returns a text that the model finds probable, drawn from keys of the seed: the same whenever it is asked for.
  /// Errors: those of the ends.
  Result<std::string> generate(const Ends& ends, const GenerateConfig& config) const;

  const TrainingState& state() const noexcept { return state_; }
  /// Returns LSTM parameters, then hidden and cell state of each layer: copies.
  std::vector<at::Tensor> snapshot() const;
  /// Goes on from a state and a snapshot.
  /// Errors: bad_arguments (they are of another model or text; nothing has changed then).
  Result<void> resume(const TrainingState& state, const std::vector<at::Tensor>& snapshot);

 private:
  Training(const TrainerConfig& config, const TrainerSeeds& seeds, Text text, const ModelShape& shape);
  at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& targets) const;
  Result<double> valid_loss(const Ends& ends) const;
  Mode train_mode() const noexcept;

  Text text_;
  ModelShape shape_;
  std::uint64_t sample_seed_;
  double decay_;
  std::int64_t batch_;
  Lstm lstm_;
  LstmState carried_;
  TrainingState state_;
};

}  // namespace caftan::rnn_lm

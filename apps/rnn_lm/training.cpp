#include "training.hpp"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "caftan/base/ids.hpp"
#include "caftan/base/keyed_random.hpp"
#include "caftan/base/settings_io.hpp"
#include "progress_text.hpp"

namespace caftan::rnn_lm {
namespace {

/// Returns the first index whose cumulated probability exceeds `draw`.
std::int64_t pick(const at::Tensor& logits, double temperature, float draw) {
  const at::Tensor cumulated = at::softmax(logits.view(-1).to(at::kDouble).div(temperature), 0).cumsum(0);
  const auto* const values = cumulated.const_data_ptr<double>();
  const auto* const found = std::upper_bound(values, values + cumulated.numel(), static_cast<double>(draw));
  return std::min<std::int64_t>(found - values, cumulated.numel() - 1);
}

/// Errors: invalid_config (the loss, or the perplexity that belongs to it, is not finite).
Result<void> check_finite(double valid_loss, const TrainingState& state) {
  const double measured = perplexity(valid_loss);
  if (std::isfinite(valid_loss) && std::isfinite(measured)) return {};
  const bool is_loss = !std::isfinite(valid_loss);
  const std::string what =
      is_loss ? "validation loss" : "perplexity of a validation loss of " + format_digits(valid_loss);
  return Error(Errc::invalid_config,
               diverged_text(state.step, what, is_loss ? valid_loss : measured, state.learning_rate));
}

}  // namespace

Result<Training> Training::make(const TrainerConfig& config, const TrainerSeeds& seeds) {
  auto text = read_text(config);
  if (!text) return text.error();
  const ModelShape shape{.vocabulary = text->vocabulary.size(),
                         .emb = config.emb,
                         .hid = config.hid,
                         .layers = config.layers,
                         .dropout = config.dropout,
                         .parameter_seed = seeds.parameters};
  if (auto possible = shape.check(); !possible) return possible.error();
  return Training(config, seeds, *std::move(text), shape);
}

Training::Training(const TrainerConfig& config, const TrainerSeeds& seeds, Text text, const ModelShape& shape)
    : text_(std::move(text)),
      shape_(shape),
      sample_seed_(seeds.sample),
      decay_(config.optimizer.decay),
      batch_(config.batch),
      lstm_(shape, seeds.dropout),
      carried_(lstm_.zero_state(config.batch)),
      state_{.learning_rate = config.optimizer.lr} {}

Mode Training::train_mode() const noexcept { return {.train = true, .step = static_cast<std::uint64_t>(state_.step)}; }

at::Tensor Training::loss_of(const at::Tensor& logits, const at::Tensor& targets) const {
  return at::cross_entropy_loss(logits.reshape({-1, shape_.vocabulary}), targets.reshape(-1));
}

Result<at::Tensor> Training::forward(const Ends& ends) {
  const Window window = text_.train.next();
  if (window.starts) carried_ = lstm_.zero_state(batch_);
  const Mode mode = train_mode();
  const auto embedded = ends.embed(window.inputs, mode);
  if (!embedded) return embedded.error();
  const auto logits = ends.decode(lstm_.forward(*embedded, carried_, mode), mode);
  if (!logits) return logits.error();
  return loss_of(*logits, window.targets);
}

void Training::end_step(const at::Tensor& loss) {
  const auto value = loss.item<double>();
  ++state_.step;
  state_.position = text_.train.position();
  state_.history = mix64(state_.history ^ std::bit_cast<std::uint64_t>(value));
  state_.loss_sum += value;
  ++state_.loss_count;
}

Result<double> Training::valid_loss(const Ends& ends) const {
  const at::NoGradGuard no_grad;
  LstmState carried = lstm_.zero_state(text_.valid.rows());
  double sum = 0;
  std::int64_t count = 0;
  for (const Window& window : text_.valid.all()) {
    const auto embedded = ends.embed(window.inputs, {});
    if (!embedded) return embedded.error();
    const auto logits = ends.decode(lstm_.forward(*embedded, carried, {}), {});
    if (!logits) return logits.error();
    sum += loss_of(*logits, window.targets).item<double>() * static_cast<double>(window.targets.numel());
    count += window.targets.numel();
  }
  return sum / static_cast<double>(count);
}

Result<Validation> Training::validate(const Ends& ends) {
  const auto valid = valid_loss(ends);
  if (!valid) return valid.error();
  if (auto finite = check_finite(*valid, state_); !finite) return finite.error();
  const double steps = static_cast<double>(std::max<std::int64_t>(state_.loss_count, 1));
  const Validation point{.train_loss = state_.loss_sum / steps, .valid_loss = *valid};
  if (*valid < state_.best) {
    state_.best = *valid;
  } else {
    state_.learning_rate *= decay_;
  }
  state_.validated_at = state_.step;
  state_.valid_loss = *valid;
  state_.loss_sum = 0;
  state_.loss_count = 0;
  state_.history = mix64(state_.history ^ std::bit_cast<std::uint64_t>(*valid));
  return point;
}

Result<std::string> Training::generate(const Ends& ends, const GenerateConfig& config) const {
  const at::NoGradGuard no_grad;
  LstmState carried = lstm_.zero_state(1);
  std::vector<std::int64_t> drawn;
  std::int64_t last = 0;  // index 0, the first character of the vocabulary: usually the end of a line
  while (static_cast<std::int64_t>(drawn.size()) < config.chars) {
    const auto embedded = ends.embed(at::full({1, 1}, last, at::kLong), {});
    if (!embedded) return embedded.error();
    const auto logits = ends.decode(lstm_.forward(*embedded, carried, {}), {});
    if (!logits) return logits.error();
    const base::RandomKey key{.seed = sample_seed_, .context = drawn.size()};
    last = pick(*logits, config.temperature, base::random_uniform(key));
    drawn.push_back(last);
  }
  return text_.vocabulary.decode(drawn);
}

std::vector<at::Tensor> Training::snapshot() const {
  std::vector<at::Tensor> tensors;
  for (const auto* list : {&lstm_.parameters(), &carried_.hidden, &carried_.cell}) {
    for (const at::Tensor& tensor : *list) tensors.push_back(tensor.detach().clone());
  }
  return tensors;
}

Result<void> Training::resume(const TrainingState& state, const std::vector<at::Tensor>& snapshot) {
  const Error other(Errc::bad_arguments, "the state of a training on another text or of another model");
  if (state.step < 0 || state.loss_count < 0 || !text_.train.has_position(state.position)) return other;
  LstmState zero = lstm_.zero_state(batch_);
  std::vector<at::Tensor> targets = lstm_.parameters();
  targets.insert(targets.end(), zero.hidden.begin(), zero.hidden.end());
  targets.insert(targets.end(), zero.cell.begin(), zero.cell.end());
  if (!load_parameters(targets, snapshot)) return other;
  carried_ = std::move(zero);
  text_.train.seek(state.position);
  state_ = state;
  return {};
}

}  // namespace caftan::rnn_lm

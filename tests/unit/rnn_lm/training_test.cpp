// The training without calls: what it learns, which settings change its results, and how it resumes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "rnn_lm/local.hpp"
#include "small_texts.hpp"

namespace caftan::rnn_lm::training_test {
namespace {

constexpr LocalSeeds kSeeds{{1, 2, 3}, 4, 5};

class LocalRun : public ::testing::Test {
 protected:
  LocalRun() : config_(make_config(folder_.write("text", make_text(3000)))) {}

  LocalTraining make(const LocalSeeds& seeds = kSeeds) const { return LocalTraining::make(config_, seeds).value(); }

  /// Plain gradient descent.
  static double step(LocalTraining& training, double rate = 1.0) {
    const auto parameters = training.parameters();
    const auto descend = [&](const std::vector<at::Tensor>& gradients) {
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < gradients.size(); ++i) parameters[i].sub_(gradients[i] * rate);
    };
    return training.step(descend).value();
  }
  static bool equal(const LocalTraining& a, const LocalTraining& b) {
    const auto left = a.parameters();
    const auto right = b.parameters();
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!left[i].equal(right[i])) return false;
    }
    return left.size() == right.size();
  }

  test::Folder folder_;
  TrainerConfig config_;
};

TEST_F(LocalRun, Learns) {
  LocalTraining training = make();
  const double before = training.validate().value().valid_loss;
  for (int i = 0; i < 60; ++i) step(training);
  const Validation point = training.validate().value();
  EXPECT_LT(point.valid_loss, before - 0.5);
  EXPECT_EQ(training.training().state().step, 60);
  EXPECT_EQ(training.training().state().best, point.valid_loss);
}

TEST_F(LocalRun, IsTheSameBitForBitForTheSameSeeds) {
  config_.dropout = 0.3;
  config_.layers = 2;
  LocalTraining first = make();
  LocalTraining second = make();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(first), step(second));
  EXPECT_TRUE(equal(first, second));
  EXPECT_EQ(first.training().state().history, second.training().state().history);
}

TEST_F(LocalRun, EverySeedMatters) {
  config_.dropout = 0.3;
  config_.layers = 2;
  LocalTraining reference = make();
  step(reference);
  for (const LocalSeeds& seeds : {LocalSeeds{{9, 2, 3}, 4, 5}, LocalSeeds{{1, 9, 3}, 4, 5}, LocalSeeds{{1, 2, 3}, 9, 5},
                                  LocalSeeds{{1, 2, 3}, 4, 9}}) {
    LocalTraining other = make(seeds);
    step(other);
    EXPECT_FALSE(equal(other, reference));
  }
}

TEST_F(LocalRun, ValidationChangesNothingThatLaterStepsSee) {
  config_.dropout = 0.3;
  LocalTraining validated = make();
  LocalTraining other = make();
  for (int i = 0; i < 3; ++i) {
    step(validated);
    step(other);
    static_cast<void>(validated.validate().value());
  }
  EXPECT_TRUE(equal(validated, other));
}

TEST_F(LocalRun, TheLearningRateDecaysWhenValidationBringsNothingBetter) {
  config_.optimizer.decay = 0.25;
  config_.optimizer.lr = 1;
  LocalTraining training = make();
  static_cast<void>(training.validate().value());
  EXPECT_EQ(training.training().state().learning_rate, 1);
  static_cast<void>(training.validate().value());  // equal is not better
  EXPECT_EQ(training.training().state().learning_rate, 0.25);
}

TEST_F(LocalRun, F5_AValidationWhoseLossOrPerplexityIsNotFiniteEndsTheTraining) {
  config_.optimizer.lr = 0.5;
  config_.optimizer.decay = 0.25;
  const auto validated_with = [&](float logit) {
    Training training = Training::make(config_, kSeeds.trainer).value();
    const EmbeddingTable embedding(training.shape(), 4);
    const Ends ends{.embed = [&](const at::Tensor& x, const Mode& mode) -> Result<at::Tensor> {
                      return embedding.forward(x, mode);
                    },
                    .decode = [&](const at::Tensor& x, const Mode&) -> Result<at::Tensor> {
                      at::Tensor logits = at::zeros({x.size(0), x.size(1), training.shape().vocabulary});
                      // Makes the first character of the vocabulary probable, whatever the input.
                      logits.select(2, 0).fill_(logit);
                      return logits;
                    }};
    const auto point = training.validate(ends);
    EXPECT_FALSE(point) << point->valid_loss;
    EXPECT_EQ(point.error().code(), Errc::invalid_config);
    EXPECT_EQ(training.state().learning_rate, 0.5) << "nothing has changed";
    EXPECT_EQ(training.state().validated_at, -1);
    return point.error().text();
  };
  EXPECT_THAT(
      validated_with(1e31F),
      ::testing::MatchesRegex("step 0: the perplexity of a validation loss of .*e\\+3[01] is inf, the training has "
                              "diverged; its learning rate was 0.5: start anew with a lower optimizer.lr, .*"));
  EXPECT_THAT(validated_with(std::numeric_limits<float>::quiet_NaN()),
              ::testing::StartsWith("step 0: the validation loss is nan, the training has diverged; "));
}

TEST_F(LocalRun, TheTrainerGoesOnFromItsStateAndSnapshot) {
  Training first = Training::make(config_, kSeeds.trainer).value();
  EmbeddingTable embedding(first.shape(), 4);
  Decoder decoder(first.shape(), 5);
  const Ends ends{
      .embed = [&](const at::Tensor& x, const Mode& mode) -> Result<at::Tensor> { return embedding.forward(x, mode); },
      .decode = [&](const at::Tensor& x, const Mode& mode) -> Result<at::Tensor> { return decoder.forward(x, mode); }};
  const auto advance = [&](Training& training) {
    const at::Tensor loss = training.forward(ends).value().detach();
    training.end_step(loss);
    return loss.item<double>();
  };
  // Advances beyond the end of the text, where the windows start over.
  for (int i = 0; i < 70; ++i) static_cast<void>(advance(first));
  Training second = Training::make(config_, {8, 2, 3}).value();
  ASSERT_TRUE(second.resume(first.state(), first.snapshot()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(advance(second), advance(first));
  EXPECT_EQ(second.state().history, first.state().history);
  EXPECT_EQ(second.generate(ends, {.chars = 40, .temperature = 1}).value(),
            first.generate(ends, {.chars = 40, .temperature = 1}).value());
}

TEST_F(LocalRun, NothingIsCarriedFromTheEndOfTheTextToItsStart) {
  Training training = Training::make(config_, kSeeds.trainer).value();
  const EmbeddingTable embedding(training.shape(), 4);
  const Decoder decoder(training.shape(), 5);
  const Ends ends{
      .embed = [&](const at::Tensor& x, const Mode& mode) -> Result<at::Tensor> { return embedding.forward(x, mode); },
      .decode = [&](const at::Tensor& x, const Mode& mode) -> Result<at::Tensor> { return decoder.forward(x, mode); }};
  const auto loss = [&] { return training.forward(ends).value().item<double>(); };
  const double first = loss();
  for (std::int64_t i = 1; i < training.text().train.count(); ++i) EXPECT_NE(loss(), first);
  EXPECT_EQ(loss(), first) << "the same window and parameters";
}

TEST_F(LocalRun, ASnapshotOfAnotherModelChangesNothing) {
  Training training = Training::make(config_, kSeeds.trainer).value();
  const auto before = training.snapshot();
  config_.hid = 13;
  const Training other = Training::make(config_, kSeeds.trainer).value();
  EXPECT_EQ(training.resume(other.state(), other.snapshot()).error().code(), Errc::bad_arguments);
  TrainingState impossible = training.state();
  impossible.position = 7;
  EXPECT_EQ(training.resume(impossible, before).error().code(), Errc::bad_arguments);
  const auto after = training.snapshot();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].equal(before[i]));
  EXPECT_EQ(training.state().step, 0);
}

TEST(Parts, EachParameterOfTheLstmIsDrawnByItself) {
  const Lstm lstm({.vocabulary = 5, .emb = 3, .hid = 3, .layers = 2, .parameter_seed = 1}, 0);
  const auto& parameters = lstm.parameters();
  ASSERT_EQ(parameters.size(), 8U);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(parameters[i].equal(parameters[j])) << i << " is as " << j;
  }
}

TEST(Parts, AnImpossibleShapeIsRefused) {
  const ModelShape good{.vocabulary = 5, .emb = 2, .hid = 3, .layers = 1};
  EXPECT_TRUE(good.check());
  for (auto change : {+[](ModelShape& s) { s.vocabulary = 0; }, +[](ModelShape& s) { s.hid = -1; },
                      +[](ModelShape& s) { s.emb = std::int64_t{1} << 40; }, +[](ModelShape& s) { s.dropout = 1; }}) {
    ModelShape bad = good;
    change(bad);
    EXPECT_EQ(bad.check().error().code(), Errc::bad_arguments);
  }
}

}  // namespace
}  // namespace caftan::rnn_lm::training_test

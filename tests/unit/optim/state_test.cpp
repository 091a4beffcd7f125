// Saved states of optimizers: a loaded state equals the saved one; bytes that are no state of this model are refused
// and change nothing.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "caftan/optim/internal/state_bulk.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "caftan/optim/schedules.hpp"
#include "caftan/tensor/codec.hpp"
#include "caftan/wire/archive.hpp"
#include "heavy_ball.hpp"

namespace caftan::optim::state_test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

struct Model {
  explicit Model(const Algorithm& algorithm, std::int64_t width = 5)
      : parameters{at::ones({3, width}).requires_grad_(), at::ones({4}).requires_grad_(),
                   at::ones({2}).requires_grad_()},
        optimizer(
            LocalOptimizer::make({{{parameters[0], parameters[1]}, algorithm}, {{parameters[2]}, algorithm}}).value()) {
  }

  /// Trains over the steps [from, to). The last parameter never has a gradient; the first parameter has none in step 0.
  void train(int from, int to) {
    for (int step = from; step < to; ++step) {
      at::manual_seed(static_cast<std::uint64_t>(step));
      Tensors gradients{at::randn(parameters[0].sizes()), at::randn({4}), at::Tensor()};
      if (step == 0) gradients[0] = at::Tensor();
      ASSERT_TRUE(optimizer.step(gradients));
    }
  }
  void take_values(const Model& other) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(other.parameters[i]);
  }
  bool equals(const Model& other) const {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!at::equal(parameters[i], other.parameters[i])) return false;
    }
    return true;
  }

  Tensors parameters;
  LocalOptimizer optimizer;
};

class States : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, States,
                         ::testing::Values(SGD{.lr = 0.1}, SGD{.lr = 0.1, .momentum = 0.9}, Adam{.lr = 0.1},
                                           Adam{.amsgrad = true, .fused = true}, AdamW{},
                                           Adagrad{.lr_decay = 0.1, .initial_accumulator_value = 0.5}, Adadelta{},
                                           RMSprop{}, RMSprop{.momentum = 0.9, .centered = true}, Rprop{}, Adamax{},
                                           Custom{.name = "heavy_ball",
                                                  .lr = 0.1,
                                                  .options = {{"beta", 0.5}},
                                                  .code = std::make_shared<HeavyBall>()}));

TEST_P(States, OP5_TrainingGoesOnBitForBit) {
  Model whole(GetParam());
  whole.train(0, 3);
  whole.optimizer.set_lr(0, 0.0125);
  const wire::Bytes state = whole.optimizer.save().value();
  Model resumed(GetParam());
  resumed.take_values(whole);
  ASSERT_TRUE(resumed.optimizer.load(state));
  EXPECT_EQ(resumed.optimizer.lr(0), 0.0125);
  whole.train(3, 8);
  resumed.train(3, 8);
  EXPECT_TRUE(resumed.equals(whole));
  EXPECT_EQ(resumed.optimizer.save().value(), whole.optimizer.save().value());
}

TEST_P(States, OP1_EveryTruncationIsRefusedAndChangesNothing) {
  Model model(GetParam());
  model.train(0, 2);
  const wire::Bytes state = model.optimizer.save().value();
  for (std::size_t size = 0; size < state.size(); ++size) {
    const Result<void> loaded = model.optimizer.load(wire::ByteView(state).first(size));
    ASSERT_FALSE(loaded) << size << " of " << state.size();
    EXPECT_EQ(loaded.error().code(), Errc::malformed_payload) << size << ": " << loaded.error().message();
  }
  EXPECT_EQ(model.optimizer.save().value(), state);
  wire::Bytes longer = state;
  longer.push_back(std::byte{0});
  EXPECT_EQ(model.optimizer.load(longer).error().code(), Errc::malformed_payload);
}

TEST_P(States, OP1_ChangedBytesAreRefusedOrReadWithoutHarm) {
  Model model(GetParam());
  model.train(0, 2);
  const wire::Bytes state = model.optimizer.save().value();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < state.size(); ++at) {
    for (const unsigned change : {0x01U, 0x80U, 0xffU}) {
      wire::Bytes changed = state;
      changed[at] ^= static_cast<std::byte>(change);
      if (!model.optimizer.load(changed)) ++refused;
    }
  }
  EXPECT_GT(refused, 60U) << "at least what is in front of the tensors";
}

TEST(SavedState, OP1_ATensorThatBelongsToNoParameterIsRefused) {
  Model model(SGD{});
  wire::Bytes state = model.optimizer.save().value();
  // The head of the saved state ends with a table of no tensors, behind which no segments stand.
  const wire::Bytes empty_table = tensor::encode_tensors({}).value().table;
  const wire::Bytes no_tensors = wire::encode(empty_table).value();
  const auto one = tensor::encode_tensors(Tensors{at::ones({4})}).value();
  state.resize(state.size() - no_tensors.size());
  const wire::Bytes& table = one.table;
  wire::append(state, wire::encode(table).value());
  constexpr std::size_t kMagicAndVersion = 12;
  const std::uint64_t head = state.size() - kMagicAndVersion - sizeof head;
  std::memcpy(state.data() + kMagicAndVersion, &head, sizeof head);
  for (const wire::Segment& segment : one.segments) wire::append(state, segment.view());
  const Result<void> loaded = model.optimizer.load(state);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Errc::malformed_payload);
  EXPECT_THAT(loaded.error().text(), HasSubstr("tensors left over"));
}

TEST(SavedState, OP3_AnotherModelIsRefusedAndTheDifferenceNamed) {
  Model model(Adam{});
  model.train(0, 2);
  const wire::Bytes state = model.optimizer.save().value();
  const auto refusal = [&state](LocalOptimizer& other) { return other.load(state).error(); };

  Model wider(Adam{}, 6);
  EXPECT_EQ(refusal(wider.optimizer).code(), Errc::bad_arguments);
  EXPECT_THAT(refusal(wider.optimizer).text(), HasSubstr("parameter 0 (Float [3, 6])"));
  Model other_algorithm(AdamW{});
  EXPECT_EQ(refusal(other_algorithm.optimizer).code(), Errc::bad_arguments);
  EXPECT_THAT(refusal(other_algorithm.optimizer).text(), HasSubstr("stepped by Adam, here by AdamW"));
  Model other_code(Custom{.name = "b", .code = std::make_shared<HeavyBall>()});
  Model code(Custom{.name = "a", .code = std::make_shared<HeavyBall>()});
  EXPECT_THAT(other_code.optimizer.load(code.optimizer.save().value()).error().text(),
              HasSubstr("stepped by a, here by b"));
  const Tensors& p = model.parameters;
  LocalOptimizer one_group = LocalOptimizer::make({{p, Adam{}}}).value();
  EXPECT_THAT(refusal(one_group).text(), HasSubstr("2 parameter groups, here are 1"));
  LocalOptimizer grouped_otherwise = LocalOptimizer::make({{{p[0]}, Adam{}}, {{p[1], p[2]}, Adam{}}}).value();
  EXPECT_THAT(refusal(grouped_otherwise).text(), HasSubstr("parameter 1 (Float [4]) is in another group"));
  LocalOptimizer fewer = LocalOptimizer::make({{{p[0]}, Adam{}}, {{p[2]}, Adam{}}}).value();
  EXPECT_THAT(refusal(fewer).text(), HasSubstr("3 parameters, here are 2"));
}

std::uint32_t version_of(const wire::Bytes& state) {
  std::uint32_t version = 0;
  std::memcpy(&version, state.data() + 8, sizeof version);
  return version;
}

TEST(SavedState, B7_OP5_ASecondScheduleAfterLoadingHasTheBaseOfTheFirst) {
  Model whole(SGD{.lr = 1.0});
  whole.optimizer.set_lr(1, 0.5);
  const LambdaLR warm_up(whole.optimizer, [](std::int64_t) { return 0.1; });
  const wire::Bytes state = whole.optimizer.save().value();
  EXPECT_EQ(version_of(state), 2U);
  Model resumed(SGD{.lr = 3.0});
  ASSERT_TRUE(resumed.optimizer.load(state));
  EXPECT_EQ(resumed.optimizer.lr(0), 0.1);
  EXPECT_EQ(resumed.optimizer.initial_lrs(), (std::vector<double>{1.0, 0.5}));
  EXPECT_EQ(resumed.optimizer.save().value(), state);
  const LambdaLR second(resumed.optimizer, [](std::int64_t) { return 1.0; });
  EXPECT_EQ(resumed.optimizer.lr(1), 0.5);
  for (std::size_t size = 0; size < state.size(); ++size) {
    EXPECT_EQ(resumed.optimizer.load(wire::ByteView(state).first(size)).error().code(), Errc::malformed_payload)
        << size << " of " << state.size();
  }
}

TEST(SavedState, B7_OP2_AStateWithoutASchedulesRatesIsOfTheFirstVersionAndItsRatesAreTheBase) {
  Model whole(SGD{.lr = 0.25});
  const wire::Bytes state = whole.optimizer.save().value();
  EXPECT_EQ(version_of(state), 1U);
  Model resumed(SGD{.lr = 3.0});
  (void)resumed.optimizer.initial_lrs();
  ASSERT_TRUE(resumed.optimizer.load(state));
  EXPECT_EQ(resumed.optimizer.initial_lrs(), (std::vector<double>{0.25, 0.25}));
}

/// Optimizers whose momentum a schedule may change, from none and to none.
class ChangedMomentum : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, ChangedMomentum,
                         ::testing::Values(SGD{.lr = 0.1}, SGD{.lr = 0.1, .fused = true}, RMSprop{.centered = true},
                                           SGD{.lr = 0.1, .momentum = 0.9}, RMSprop{.momentum = 0.9}));

TEST_P(ChangedMomentum, OP5_TrainingGoesOnBitForBit) {
  for (const double later : {0.0, 0.7}) {
    Model whole(GetParam());
    whole.train(0, 3);
    whole.optimizer.set_momentum(0, later);
    const wire::Bytes before = whole.optimizer.save().value();
    whole.train(3, 5);
    const wire::Bytes state = whole.optimizer.save().value();
    Model resumed(GetParam());
    resumed.take_values(whole);
    ASSERT_TRUE(resumed.optimizer.load(before)) << "before the first step with the new momentum";
    ASSERT_TRUE(resumed.optimizer.load(state));
    EXPECT_EQ(resumed.optimizer.momentum(0), later);
    resumed.optimizer.set_momentum(0, 0.8);
    whole.optimizer.set_momentum(0, 0.8);
    whole.train(5, 8);
    resumed.train(5, 8);
    EXPECT_TRUE(resumed.equals(whole));
    EXPECT_EQ(resumed.optimizer.save().value(), whole.optimizer.save().value());
  }
}

TEST(ChangedMomenta, OP2_OnlyAStateThatOlderBuildsCannotReadHasTheNewVersion) {
  Model model(SGD{.lr = 0.1});
  model.train(0, 2);
  EXPECT_EQ(version_of(model.optimizer.save().value()), 1U);
  model.optimizer.set_momentum(0, 0.5);
  EXPECT_EQ(version_of(model.optimizer.save().value()), 3U) << "a momentum without a buffer";
  model.train(2, 3);
  EXPECT_EQ(version_of(model.optimizer.save().value()), 1U);
  model.optimizer.set_momentum(0, 0);
  const wire::Bytes state = model.optimizer.save().value();
  EXPECT_EQ(version_of(state), 3U) << "a buffer without a momentum";
  for (std::size_t size = 0; size < state.size(); ++size) {
    ASSERT_EQ(model.optimizer.load(wire::ByteView(state).first(size)).error().code(), Errc::malformed_payload) << size;
  }
}

TEST(StateBulk, OP1_ComesBackAndOtherTensorsAreRefused) {
  Model model(SGD{.momentum = 0.5});
  model.train(0, 2);
  const wire::Bytes state = model.optimizer.save().value();
  EXPECT_EQ(from_bulk(to_bulk(state)).value(), state);
  for (const at::Tensor& other : {at::Tensor(), at::ones({4}), at::ones({2, 2}, at::kByte)}) {
    EXPECT_EQ(from_bulk(other).error().code(), Errc::malformed_payload);
  }
}

TEST(SavedState, OP2_ANewerVersionSaysWhatToDo) {
  Model model(SGD{});
  wire::Bytes state = model.optimizer.save().value();
  const std::uint32_t version = 5;
  std::memcpy(state.data() + 8, &version, sizeof version);
  const Error error = model.optimizer.load(state).error();
  EXPECT_EQ(error.code(), Errc::protocol_mismatch);
  EXPECT_THAT(error.text(), HasSubstr("version 5, this build reads up to 4"));
}

}  // namespace
}  // namespace caftan::optim::state_test

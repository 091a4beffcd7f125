// The bytes of a saved DistributedOptimizer, and which owner gets what of it: the state of a parameter follows it.
#include "placement.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>

#include "caftan/optim/local_optimizer.hpp"
#include "heavy_ball.hpp"
#include "lbfgs.hpp"
#include "saved_state.hpp"

namespace caftan::optim::placement_test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

wire::Bytes bytes_of(std::initializer_list<unsigned> values) {
  wire::Bytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// ---- the bytes

TEST(SavedStates, OP2_ThoseOfTheFirstTwoVersionsAreRead) {
  wire::Bytes first =
      bytes_of({'C', 'F', 'T', 'D', 'T', 'O', 'P', 'T',                                         // magic
                1,   0,   0,   0,                                                               // version
                5,   0,   0,   0,   0,   0,   0,   0,                                           // step
                1,   0,   0,   0,   0,   0,   0,   0xe0, 0x3f,                                  // rates: 0.5
                1,   1,   'a', 2,   0,   0,   0,   0,    3,    0, 0, 0, 3, 0x10, 0x11, 0x12});  // owner, groups, state
  SavedState saved;
  ASSERT_TRUE(saved.read(first));
  EXPECT_EQ(saved.step, StepNumber{5});
  EXPECT_EQ(saved.lrs, std::vector<double>{0.5});
  ASSERT_EQ(saved.owners.size(), 1U);
  EXPECT_EQ(saved.owners[0].worker, "a");
  EXPECT_EQ(saved.owners[0].groups, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(saved.owners[0].state, bytes_of({0x10, 0x11, 0x12}));
  EXPECT_FALSE(saved.has_parameters());
  wire::Bytes second = first;
  second[8] = std::byte{2};
  wire::append(second, bytes_of({1, 0, 0, 0, 0, 0, 0, 0, 0x40}));  // initial rates: 2
  SavedState with_initial;
  ASSERT_TRUE(with_initial.read(second));
  EXPECT_EQ(with_initial.initial_lrs, std::vector<double>{2});
  first.push_back(std::byte{0});
  EXPECT_EQ(SavedState().read(first).error().code(), Errc::malformed_payload);
}

SavedState example() {
  SavedState saved;
  saved.step = {7};
  saved.lrs = {0.5, 0.25};
  saved.initial_lrs = {1, 2};
  saved.momenta = {0.9, std::nullopt};
  saved.owners.push_back({"b", {0, 1}, bytes_of({1, 2, 3}), {0, 2}, {"w", "v"}});
  saved.owners.push_back({"a", {1}, bytes_of({4}), {1}, {"x"}});
  return saved;
}

TEST(SavedStates, AManifestStandsInFrontOfTheParts) {
  wire::Bytes bytes;
  ASSERT_TRUE(example().write(bytes));
  EXPECT_EQ(bytes[8], std::byte{3});
  SavedState read;
  ASSERT_TRUE(read.read(bytes));
  EXPECT_EQ(read.step, StepNumber{7});
  EXPECT_EQ(read.lrs, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(read.initial_lrs, (std::vector<double>{1, 2}));
  EXPECT_EQ(read.momenta, (Momenta{0.9, std::nullopt}));
  ASSERT_EQ(read.owners.size(), 2U);
  EXPECT_EQ(read.owners[0].parameters, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(read.owners[1].names, std::vector<std::string>{"x"});
  EXPECT_EQ(read.owners[1].state, bytes_of({4}));
}

TEST(SavedStates, OP1_EveryTruncationAndEachChangedByteIsRefused) {
  wire::Bytes bytes;
  ASSERT_TRUE(example().write(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<void> read = SavedState().read(wire::ByteView(bytes).first(size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code(), Errc::malformed_payload) << size;
  }
  for (std::size_t at = 12; at < bytes.size(); ++at) {
    for (const unsigned change : {0x01U, 0x80U}) {
      wire::Bytes changed = bytes;
      changed[at] ^= static_cast<std::byte>(change);
      EXPECT_EQ(SavedState().read(changed).error().code(), Errc::malformed_payload) << at;
    }
  }
  wire::Bytes damaged = bytes;
  damaged.back() ^= std::byte{1};
  EXPECT_THAT(SavedState().read(damaged).error().text(), HasSubstr("the part of a"));
  damaged = bytes;
  damaged[24] ^= std::byte{1};
  EXPECT_THAT(SavedState().read(damaged).error().text(), HasSubstr("its manifest"));
  bytes.push_back(std::byte{0});
  EXPECT_THAT(SavedState().read(bytes).error().text(), HasSubstr("1 bytes too many"));
}

TEST(SavedStates, OP2_ANewerVersionSaysWhatToDo) {
  wire::Bytes bytes;
  ASSERT_TRUE(example().write(bytes));
  bytes[8] = std::byte{4};
  const Error error = SavedState().read(bytes).error();
  EXPECT_EQ(error.code(), Errc::protocol_mismatch);
  EXPECT_THAT(error.text(), HasSubstr("version 4, this build reads up to 3: load it with the version that wrote it"));
}

// ---- who gets what

/// Six parameters in two groups, each with a state of its own, and the owners that step them.
struct Model {
  /// @param owners  of each parameter
  Model(std::vector<std::string> owners, const Algorithm& first, const Algorithm& second)
      : owners_(std::move(owners)), algorithms_{first, second} {
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      parameters.push_back(at::full({static_cast<std::int64_t>(i + 1)}, 1.0 + static_cast<double>(i)).requires_grad_());
    }
  }

  /// Returns the owners in the order in which the parameters name them, with an optimizer for each.
  std::vector<Placed> place() const {
    std::vector<Placed> placed;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      auto owner = std::find_if(placed.begin(), placed.end(), [&](const Placed& p) { return p.worker == owners_[i]; });
      if (owner == placed.end()) owner = placed.insert(placed.end(), Placed{owners_[i], {}, {}, {}});
      if (owner->groups.empty() || owner->groups.back() != group_of(i)) owner->groups.push_back(group_of(i));
      owner->parameters.push_back(i);
      if (!names.empty()) owner->names.push_back(names[i]);
    }
    return placed;
  }
  std::vector<LocalOptimizer> make() const {
    std::vector<LocalOptimizer> optimizers;
    for (const Placed& owner : place()) {
      std::vector<ParameterGroup> groups;
      for (const std::uint32_t group : owner.groups) groups.push_back({{}, algorithms_[group]});
      std::size_t at = 0;
      for (const std::uint64_t number : owner.parameters) {
        while (owner.groups[at] != group_of(number)) ++at;
        groups[at].parameters.push_back(parameters[number]);
      }
      optimizers.push_back(LocalOptimizer::make(std::move(groups)).value());
    }
    return optimizers;
  }
  /// Steps each owner's parameters by gradients that depend on parameter and step alone.
  void train(std::vector<LocalOptimizer>& optimizers, int from, int to) const {
    const std::vector<Placed> placed = place();
    for (int step = from; step < to; ++step) {
      for (std::size_t owner = 0; owner < placed.size(); ++owner) {
        Tensors gradients;
        for (const std::uint64_t number : placed[owner].parameters) {
          const bool none = step == 0 && number == 2;
          gradients.push_back(none ? at::Tensor()
                                   : at::full(parameters[number].sizes(), std::sin(1.0 + static_cast<double>(number) +
                                                                                   3.0 * static_cast<double>(step))));
        }
        ASSERT_TRUE(optimizers[owner].step(gradients));
      }
    }
  }
  SavedState save(const std::vector<LocalOptimizer>& optimizers) const {
    SavedState saved;
    const std::vector<Placed> placed = place();
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const Placed& owner = placed[i];
      saved.owners.push_back({owner.worker, owner.groups, optimizers[i].save().value(), owner.parameters, owner.names});
    }
    return saved;
  }
  void take_values(const Model& other) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(other.parameters[i]);
  }

  static std::uint32_t group_of(std::size_t number) { return number < 4 ? 0 : 1; }
  Tensors parameters;
  std::vector<std::string> names;

 private:
  std::vector<std::string> owners_;
  std::vector<Algorithm> algorithms_;
};

const std::vector<std::string> kSpread{"a", "b", "a", "c", "b", "a"};

class Placements : public ::testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(Owners, Placements,
                         ::testing::Values(kSpread, std::vector<std::string>{"d", "d", "d", "d", "d", "d"},
                                           std::vector<std::string>{"a", "b", "c", "d", "e", "f"},
                                           std::vector<std::string>{"c", "c", "a", "a", "c", "b"},
                                           std::vector<std::string>{"b", "a", "b", "c", "a", "b"}));

void expect_to_go_on(const Algorithm& first, const Algorithm& second, const std::vector<std::string>& owners) {
  Model whole(kSpread, first, second);
  auto optimizers = whole.make();
  whole.train(optimizers, 0, 3);
  const SavedState saved = whole.save(optimizers);
  Model moved(owners, first, second);
  moved.take_values(whole);
  const auto parts = place_parts(saved, moved.place());
  ASSERT_TRUE(parts) << parts.error().message();
  auto there = moved.make();
  for (std::size_t i = 0; i < there.size(); ++i) {
    const Result<void> loaded = there[i].load((*parts)[i]);
    ASSERT_TRUE(loaded) << loaded.error().message();
  }
  whole.train(optimizers, 3, 6);
  moved.train(there, 3, 6);
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(moved.parameters[i].detach(), whole.parameters[i].detach())) << i;
  }
}

TEST_P(Placements, OP13_TrainingGoesOnBitForBitAtOtherOwners) {
  expect_to_go_on(SGD{.lr = 0.1, .momentum = 0.9}, Adam{.lr = 0.1, .amsgrad = true}, GetParam());
  expect_to_go_on(RMSprop{.centered = true}, SGD{}, GetParam());
  const Custom ball{.name = "heavy_ball", .lr = 0.1, .options = {{"beta", 0.5}}, .code = std::make_shared<HeavyBall>()};
  expect_to_go_on(Adagrad{}, ball, GetParam());
}

TEST(Placements, OP13_WithNamesTheListMayHaveAnotherOrder) {
  Model whole(kSpread, SGD{.lr = 0.1, .momentum = 0.9}, Adam{});
  whole.names = {"p0", "p1", "p2", "p3", "p4", "p5"};
  auto optimizers = whole.make();
  whole.train(optimizers, 0, 2);
  const SavedState saved = whole.save(optimizers);
  // The same parameters, the first group turned round.
  std::vector<Placed> here{{"x", {0}, {0, 1, 2, 3}, {"p3", "p2", "p1", "p0"}}, {"y", {1}, {4, 5}, {"p4", "p5"}}};
  const auto parts = place_parts(saved, here);
  ASSERT_TRUE(parts) << parts.error().message();
  LocalOptimizer turned =
      LocalOptimizer::make({{{whole.parameters[3], whole.parameters[2], whole.parameters[1], whole.parameters[0]},
                             SGD{.lr = 0.1, .momentum = 0.9}}})
          .value();
  ASSERT_TRUE(turned.load((*parts)[0]));
  const auto expected = optimizers[0].state(0);  // of parameter 0, at owner a
  EXPECT_TRUE(at::equal(turned.state(3).at("momentum_buffer"), expected.at("momentum_buffer")));
  here[1].names[1] = "p6";
  EXPECT_THAT(place_parts(saved, here).error().text(), HasSubstr("it has no state of p6, which is at y"));
  here[1] = {"y", {1}, {4}, {"p4"}};
  EXPECT_THAT(place_parts(saved, here).error().text(), HasSubstr("it has a state of p5, which is not here"));
}

TEST(Placements, OP3_AnotherModelIsRefusedAndTheDifferenceNamed) {
  Model whole(kSpread, SGD{}, Adam{});
  auto optimizers = whole.make();
  const SavedState saved = whole.save(optimizers);
  const auto refusal = [&](std::vector<Placed> here) { return place_parts(saved, here).error(); };
  EXPECT_EQ(refusal({{"a", {0, 1}, {0, 1, 2, 3, 4}, {}}}).code(), Errc::bad_arguments);
  EXPECT_THAT(refusal({{"a", {0, 1}, {0, 1, 2, 3, 4}, {}}}).text(), HasSubstr("6 parameters, here are 5"));
  EXPECT_THAT(refusal({{"a", {0, 1}, {0, 1, 2, 3, 4, 6}, {}}}).text(),
              HasSubstr("it has no state of parameter 6, which is at a"));
  EXPECT_THAT(refusal({{"a", {0}, {0, 1, 2, 3, 4}, {}}, {"b", {1}, {5}, {}}}).text(),
              HasSubstr("parameter 4 is in another group"));
  EXPECT_THAT(refusal({{"a", {0, 1, 2}, {0, 1, 2, 3, 4, 5}, {}}}).text(), HasSubstr("it has no group 2"));
}

TEST(Placements, OP1_PartsThatDoNotFitTheirManifestAreRefused) {
  Model whole(kSpread, SGD{}, Adam{});
  auto optimizers = whole.make();
  const std::vector<Placed> here{{"z", {0, 1}, {0, 1, 2, 3, 4, 5}, {}}};
  SavedState saved = whole.save(optimizers);
  saved.owners[0].parameters.pop_back();
  EXPECT_EQ(place_parts(saved, here).error().code(), Errc::malformed_payload);
  EXPECT_THAT(place_parts(saved, here).error().text(), HasSubstr("(the part of a)"));
  saved = whole.save(optimizers);
  saved.owners[1].parameters[0] = 0;
  EXPECT_THAT(place_parts(saved, here).error().text(), HasSubstr("parameter 0 twice"));
  saved = whole.save(optimizers);
  saved.owners[2].state.pop_back();
  EXPECT_EQ(place_parts(saved, here).error().code(), Errc::malformed_payload);
  saved = whole.save(optimizers);
  saved.owners[0].groups.push_back(2);
  EXPECT_EQ(place_parts(saved, here).error().code(), Errc::malformed_payload);
}

TEST(Placements, OP13_AStateOfAnOlderBuildFitsOnlyTheOwnersThatSavedIt) {
  Model whole(kSpread, SGD{}, Adam{});
  auto optimizers = whole.make();
  SavedState saved = whole.save(optimizers);
  for (SavedOwner& owner : saved.owners) owner.parameters.clear();
  EXPECT_TRUE(place_parts(saved, whole.place()));
  std::vector<Placed> here = whole.place();
  here[1].worker = "q";
  const Error error = place_parts(saved, here).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("owner 1 was b, here it is q"));
  EXPECT_THAT(error.text(), HasSubstr("load it where it was saved, save it again"));
  here.pop_back();
  EXPECT_THAT(place_parts(saved, here).error().text(), HasSubstr("3 owners, here are 2"));
}

TEST(Placements, OP13_TheMemoryOfLbfgsMovesWhole) {
  const Tensors parameters{at::full({2}, 1.0).requires_grad_(), at::full({3}, 2.0).requires_grad_()};
  LocalOptimizer optimizer = LocalOptimizer::make({{parameters, LBFGS{.max_iter = 2}}}).value();
  ASSERT_TRUE(optimizer.step([&]() -> Result<LocalEvaluation> {
    return LocalEvaluation{1.0, {parameters[0].detach() * 2, parameters[1].detach() * 2}};
  }));
  SavedState saved;
  saved.owners.push_back({"a", {0}, optimizer.save().value(), {0, 1}, {}});
  const auto moved = place_parts(saved, std::vector<Placed>{{"b", {0}, {0, 1}, {}}});
  ASSERT_TRUE(moved);
  EXPECT_EQ((*moved)[0], saved.owners[0].state);
  EXPECT_THAT(place_parts(saved, std::vector<Placed>{{"b", {0}, {1, 0}, {}}}).error().text(),
              HasSubstr("the memory of LBFGS is that of all parameters in their order"));
}

}  // namespace
}  // namespace caftan::optim::placement_test

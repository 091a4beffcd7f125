// A checkpoint comes back as it was written; one that does not fit or is not whole is named.
#include "checkpoints/model_checkpoint.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caftan/wire/checkpoint_file.hpp"
#include "folder.hpp"

namespace caftan::checkpoints::model_checkpoint_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Facts kFacts{{"model", "convnet"}, {"batch", "32"}};

ModelCheckpoint make(std::int64_t step) {
  return {.facts = kFacts,
          .data = 77,
          .step = step,
          .parameters = {at::arange(6, at::kFloat).view({2, 3}), at::ones({2})},
          .buffers = {at::ones({}, at::kLong)},
          .optimizer = {std::byte{1}, std::byte{2}},
          .more = {std::byte{9}}};
}

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() { write(20); }
  void write(std::int64_t step) const { write_checkpoint(folder(), make(step), 2).value(); }
  std::filesystem::path folder() const { return folder_.path() / "run/checkpoints"; }
  test::Folder folder_;
};

TEST_F(Checkpoints, ComeBackAsTheyWere) {
  for (const std::filesystem::path& path : {folder() / "step-000020", folder(), folder_.path() / "run"}) {
    const ModelCheckpoint read = read_checkpoint(path, kFacts).value();
    EXPECT_EQ(read.step, 20);
    EXPECT_EQ(read.data, 77U);
    EXPECT_TRUE(read.parameters[0].equal(make(20).parameters[0]));
    EXPECT_EQ(read.parameters.size(), 2U);
    EXPECT_EQ(read.buffers[0].scalar_type(), at::kLong);
    EXPECT_EQ(read.optimizer, make(20).optimizer);
    EXPECT_EQ(read.more, make(20).more);
    EXPECT_EQ(check_checkpoint(path, kFacts, 20, "rounds").value(), 20);
  }
}

TEST_F(Checkpoints, TheNewestStay) {
  write(1000000);
  write(30);
  EXPECT_EQ(read_checkpoint(folder(), kFacts).value().step, 1000000);
  EXPECT_FALSE(std::filesystem::exists(folder() / "step-000020"));
  EXPECT_TRUE(std::filesystem::exists(folder() / "step-000030"));
}

TEST_F(Checkpoints, OfAnotherTrainingAreNamedWithTheDifference) {
  const auto other = read_checkpoint(folder(), {{"model", "resnet18"}});
  EXPECT_EQ(other.error().code(), Errc::invalid_config);
  EXPECT_THAT(other.error().text(), HasSubstr("step-000020: a checkpoint of another training: model = convnet, here it "
                                              "is resnet18; take over"));
  EXPECT_EQ(first_difference(kFacts, {{"trainers", "3"}}), "trainers is not known of it");
  EXPECT_EQ(first_difference(kFacts, kFacts), "");
}

TEST_F(Checkpoints, BeyondTheEndNameTheKeyToRaise) {
  const auto beyond = check_checkpoint(folder(), kFacts, 19, "rounds");
  EXPECT_EQ(beyond.error().code(), Errc::invalid_config);
  EXPECT_THAT(beyond.error().text(), HasSubstr("it stands at step 20, beyond rounds = 19; raise rounds"));
}

TEST_F(Checkpoints, ThatAreCutOrDamagedAreNamed) {
  const std::string whole = folder_.read("run/checkpoints/step-000020");
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    folder_.write("run/checkpoints/step-000020", whole.substr(0, size));
    const auto cut = check_checkpoint(folder(), kFacts, 20, "rounds");
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code(), Errc::malformed_payload) << size;
    EXPECT_THAT(cut.error().text(), HasSubstr("step-000020"));
    EXPECT_FALSE(read_checkpoint(folder(), kFacts));
  }
  std::string damaged = whole;
  damaged[whole.size() - 20] = static_cast<char>(damaged[whole.size() - 20] ^ 1);
  folder_.write("run/checkpoints/step-000020", damaged);
  EXPECT_EQ(check_checkpoint(folder(), kFacts, 20, "rounds").error().code(), Errc::malformed_payload);
}

TEST_F(Checkpoints, OfANewerVersionNameTheFileAndBothVersions) {
  constexpr std::size_t kVersionAt = 8;  // behind the magic, little-endian
  std::string newer = folder_.read("run/checkpoints/step-000020");
  ASSERT_EQ(newer[kVersionAt], static_cast<char>(wire::kCheckpointVersion));
  newer[kVersionAt] = static_cast<char>(wire::kCheckpointVersion + 6);
  folder_.write("run/checkpoints/step-000020", newer);
  const auto expect_refusal = [&](const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_THAT(error.text(), AllOf(HasSubstr((folder() / "step-000020").string() + ": it has version 7"),
                                    HasSubstr("this build reads up to 1"), HasSubstr("use the Caftan that wrote it")));
  };
  for (const std::filesystem::path& path : {folder() / "step-000020", folder_.path() / "run"}) {
    expect_refusal(read_checkpoint(path, kFacts).error());
    expect_refusal(check_checkpoint(path, kFacts, 20, "rounds").error());
  }
}

TEST_F(Checkpoints, AFolderWithoutAnyAndOneThatIsNotThere) {
  std::filesystem::create_directory(folder_.path() / "empty");
  EXPECT_THAT(read_checkpoint(folder_.path() / "empty", kFacts).error().text(), HasSubstr("there is no checkpoint"));
  EXPECT_THAT(read_checkpoint(folder_.path() / "none", kFacts).error().text(), HasSubstr("relative to the file"));
}

TEST(FingerprintOfAModel, EachNumberCounts) {
  const ModelCheckpoint of = make(20);
  const std::string print = fingerprint_of(of.step, of.parameters, of.buffers);
  EXPECT_EQ(print, fingerprint_of(of.step, of.parameters, of.buffers));
  EXPECT_NE(print, fingerprint_of(21, of.parameters, of.buffers));
  EXPECT_NE(print, fingerprint_of(of.step, of.parameters, {at::ones({}, at::kLong) + 1}));
  std::vector<at::Tensor> changed{of.parameters[0] + 0, of.parameters[1].clone()};
  EXPECT_EQ(print, fingerprint_of(of.step, changed, of.buffers));
  changed[1][1] += 1e-6;
  EXPECT_NE(print, fingerprint_of(of.step, changed, of.buffers));
}

}  // namespace
}  // namespace caftan::checkpoints::model_checkpoint_test

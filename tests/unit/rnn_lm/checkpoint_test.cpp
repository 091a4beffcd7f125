// Checkpoints: a written checkpoint is read back; any other content is refused as a whole, with an error that names the
// file and what to do.
#include "rnn_lm/checkpoint.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "small_texts.hpp"

namespace caftan::rnn_lm::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

Checkpoint make_checkpoint(std::int64_t step) {
  Checkpoint checkpoint;
  checkpoint.model = {.vocabulary = "ab", .text = 7, .emb = 8, .hid = 12, .layers = 1, .bptt = 10, .batch = 4};
  checkpoint.model.optimizer = "adam";
  checkpoint.state.step = step;
  checkpoint.state.best = 1.5;
  checkpoint.trainer = {at::ones({3, 4}), at::arange(0, 5, at::kFloat)};
  checkpoint.embedding = {at::ones({2, 8}) * step};
  checkpoint.decoder = {at::ones({2, 12}), at::ones({2})};
  checkpoint.optimizer.resize(100, std::byte{3});
  return checkpoint;
}

class Checkpoints : public ::testing::Test {
 protected:
  fs::path write(std::int64_t step, std::int64_t keep = 2) const {
    return write_checkpoint(run_.path() / "checkpoints", make_checkpoint(step), keep).value();
  }
  Result<Checkpoint> read(const fs::path& path) const { return read_checkpoint(path, make_checkpoint(0).model); }
  static std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  static void put(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

  test::Folder run_;
};

TEST(FingerprintOfACheckpoint, M12_CountsEachTensorOfEachOwnerToItsLastBit) {
  const Checkpoint whole = make_checkpoint(100);
  const std::string of_whole = fingerprint_of(whole);
  EXPECT_EQ(fingerprint_of(make_checkpoint(100)), of_whole);
  std::size_t tensors = 0;
  for (const auto part : {&Checkpoint::trainer, &Checkpoint::embedding, &Checkpoint::decoder}) {
    for (std::size_t i = 0; i < (whole.*part).size(); ++i) {
      for (const bool last : {false, true}) {
        Checkpoint changed = make_checkpoint(100);
        auto* const values = (changed.*part)[i].data_ptr<float>();
        float& value = last ? values[(changed.*part)[i].numel() - 1] : values[0];
        value = std::nextafter(value, 1e9F);
        EXPECT_NE(fingerprint_of(changed), of_whole) << "tensor " << tensors << (last ? ", its last value" : "");
      }
      ++tensors;
    }
  }
  EXPECT_EQ(tensors, 5U);
  Checkpoint other_losses = make_checkpoint(100);
  other_losses.state.history = 1;
  EXPECT_NE(fingerprint_of(other_losses), of_whole);
  Checkpoint other_step = make_checkpoint(100);
  other_step.state.step = 101;
  EXPECT_NE(fingerprint_of(other_step), of_whole);
}

TEST_F(Checkpoints, ComeBackBitForBitByTheirOwnFolderTheirParentsOrTheRuns) {
  write(100);
  const fs::path newest = write(200);
  for (const fs::path& path : {newest, newest.parent_path(), run_.path()}) {
    const Checkpoint read_back = read(path).value();
    EXPECT_EQ(read_back.state.step, 200);
    EXPECT_EQ(read_back.state.best, 1.5);
    EXPECT_TRUE(read_back.embedding.at(0).equal(at::ones({2, 8}) * 200));
    EXPECT_TRUE(read_back.trainer.at(1).equal(at::arange(0, 5, at::kFloat)));
    EXPECT_EQ(read_back.decoder.size(), 2U);
    EXPECT_EQ(read_back.optimizer, make_checkpoint(0).optimizer);
  }
}

TEST_F(Checkpoints, OnlyTheNewestStay) {
  for (const std::int64_t step : {50, 900, 1000, 1100}) write(step, 2);
  EXPECT_FALSE(fs::exists(run_.path() / "checkpoints" / "step-000900"));
  EXPECT_TRUE(fs::exists(run_.path() / "checkpoints" / "step-001000"));
  EXPECT_EQ(read(run_.path()).value().state.step, 1100);
}

TEST_F(Checkpoints, OneThatWasNeverFinishedIsNone) {
  write(100);
  const fs::path unfinished = write(200);
  fs::remove(unfinished / "manifest");
  EXPECT_EQ(read(run_.path()).value().state.step, 100);
  const auto error = read(unfinished).error();
  EXPECT_EQ(error.code(), Errc::io_error);
  EXPECT_THAT(error.text(), AllOf(HasSubstr(unfinished.string()), HasSubstr("or is left out to start anew")));
}

TEST_F(Checkpoints, AnyFileCutOffAnywhereIsNamed) {
  const fs::path folder = write(100);
  for (const char* name : {"manifest", "trainer", "embedding", "decoder", "optimizer"}) {
    const std::string whole = bytes_of(folder / name);
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 40) {
      put(folder / name, whole.substr(0, size));
      const auto cut = read(folder);
      ASSERT_FALSE(cut) << name << " " << size;
      ASSERT_EQ(cut.error().code(), Errc::malformed_payload);
      ASSERT_THAT(cut.error().text(), AllOf(HasSubstr((folder / name).string()), HasSubstr("earlier checkpoint")));
    }
    fs::remove(folder / name);
    const auto missing = read(folder).error();
    ASSERT_EQ(missing.code(), Errc::io_error) << name;
    if (std::string(name) != "manifest") {  // without a manifest the folder is no checkpoint
      ASSERT_EQ(missing.text(), (folder / name).string() + ": it is missing; use an earlier checkpoint");
    }
    put(folder / name, whole);
  }
  EXPECT_TRUE(read(folder));
}

TEST_F(Checkpoints, AFileOfAnotherCheckpointIsNoticed) {
  const fs::path old = write(100);
  const fs::path folder = write(200);
  fs::copy_file(old / "embedding", folder / "embedding", fs::copy_options::overwrite_existing);
  const auto error = read(folder).error();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_THAT(error.text(), AllOf(HasSubstr("embedding: it is not the file that the manifest"), HasSubstr("another")));
}

TEST_F(Checkpoints, OfANewerVersionAsksForTheCaftanThatWroteIt) {
  const fs::path folder = write(100);
  std::string bytes = bytes_of(folder / "manifest");
  bytes[8] = 2;
  put(folder / "manifest", bytes);
  EXPECT_EQ(read(folder).error().code(), Errc::unsupported);
  EXPECT_THAT(read(folder).error().text(), AllOf(HasSubstr("manifest: it has version 2"), HasSubstr("wrote it")));
}

TEST_F(Checkpoints, OfAnotherModelNamesTheKeyAndBothValues) {
  const fs::path folder = write(100);
  const auto refused = [&](auto change) {
    ModelFacts here = make_checkpoint(0).model;
    change(here);
    const auto error = read_checkpoint(folder, here).error();
    EXPECT_EQ(error.code(), Errc::invalid_config);
    EXPECT_THAT(error.text(), AllOf(HasSubstr("manifest: a checkpoint of another model: "),
                                    HasSubstr("leave resume out to start anew")));
    return error.text();
  };
  EXPECT_THAT(refused([](ModelFacts& m) { m.hid = 64; }), HasSubstr("hid = 12, here it is 64"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.emb = 9; }), HasSubstr("emb = 8"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.layers = 2; }), HasSubstr("layers = 1"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.bptt = 2; }), HasSubstr("bptt = 10"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.batch = 2; }), HasSubstr("batch = 4"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.dropout = 0.5; }), HasSubstr("dropout"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.optimizer = "sgd"; }), HasSubstr("optimizer.name = adam, here it is sgd"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.text = 8; }), HasSubstr("another corpus"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.vocabulary = "abc"; }), HasSubstr("another corpus"));
  EXPECT_THAT(refused([](ModelFacts& m) { m.seed = 1; }), HasSubstr("another run.seed"));
}

}  // namespace
}  // namespace caftan::rnn_lm::checkpoint_test

// Checkpoint files: a written file is read back; a file that is cut off, damaged, newer or something else is refused
// with an error that names it.
#include "caftan/wire/checkpoint_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "folder.hpp"

namespace caftan::wire::checkpoint_file_test {
namespace {

using ::testing::HasSubstr;

Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  append(bytes, std::as_bytes(std::span(text)));
  return bytes;
}

CheckpointFile make_file() {
  return {.kind = "test", .records = {{"a", bytes_of("123")}, {"empty", {}}, {"b", bytes_of(std::string(5000, 'x'))}}};
}

class CheckpointOnDisk : public ::testing::Test {
 protected:
  const test::Folder own_;
  const std::filesystem::path folder_ = own_.path();
};

TEST(Checkpoint, ReadsWhatWasWritten) {
  const auto file = decode_checkpoint(encode_checkpoint(make_file()).value(), "test").value();
  ASSERT_EQ(file.records.size(), 3U);
  EXPECT_EQ(file.find("b").value().size(), 5000U);
  EXPECT_TRUE(file.find("empty").value().empty());
  EXPECT_EQ(file.find("c").error().code(), Errc::malformed_payload);
  EXPECT_THAT(file.find("c").error().text(), HasSubstr("'c'"));
}

TEST(Checkpoint, HasTheChecksumThatOthersCompute) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);  // RFC 3720
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Checkpoint, EveryTruncationIsRefused) {
  const Bytes whole = encode_checkpoint(make_file()).value();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = decode_checkpoint(ByteView(whole).first(size), "test");
    ASSERT_FALSE(cut) << size;
    ASSERT_EQ(cut.error().code(), Errc::malformed_payload) << size;
    ASSERT_THAT(cut.error().text(), HasSubstr("cut off")) << size;
  }
}

TEST(Checkpoint, EveryChangedByteIsRefused) {
  const Bytes whole = encode_checkpoint(make_file()).value();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= std::byte{0x10};
    ASSERT_FALSE(decode_checkpoint(changed, "test")) << at;
  }
}

TEST(Checkpoint, OfANewerVersionSaysWhichOneAndWhatToDo) {
  Bytes newer = encode_checkpoint(make_file()).value();
  newer[8] = std::byte{7};
  const auto read = decode_checkpoint(newer, "test");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Errc::unsupported);
  EXPECT_THAT(read.error().text(), HasSubstr("version 7"));
  EXPECT_THAT(read.error().text(), HasSubstr("use the Caftan that wrote it"));
}

TEST(Checkpoint, OfAnotherKindOrNoneAtAllSaysSo) {
  EXPECT_THAT(decode_checkpoint(encode_checkpoint(make_file()).value(), "model").error().text(),
              HasSubstr("of 'test', not of 'model'"));
  EXPECT_THAT(decode_checkpoint(bytes_of("caftan = 1\n[run]\nname = \"x\"\n"), "test").error().text(),
              HasSubstr("no checkpoint"));
}

TEST(Checkpoint, HasTheBytesThatThePageSays) {
  const Bytes bytes = encode_checkpoint({.kind = "k", .records = {{"r", bytes_of("x")}}}).value();
  EXPECT_EQ(bytes.size(), 24U + 7U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 8), "CAFTANck");
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 1);
  EXPECT_EQ(std::to_integer<int>(bytes[16]), 7);
}

TEST_F(CheckpointOnDisk, ReplacesTheOldFileAndLeavesNothingBeside) {
  const auto path = folder_ / "model.checkpoint";
  ASSERT_TRUE(write_checkpoint_file(path, {.kind = "test", .records = {}}));
  ASSERT_TRUE(write_checkpoint_file(path, make_file()));
  EXPECT_EQ(read_checkpoint_file(path, "test").value().records.size(), 3U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(CheckpointOnDisk, ErrorsNameTheFile) {
  const auto path = folder_ / "model.checkpoint";
  EXPECT_EQ(read_checkpoint_file(path, "test").error().code(), Errc::io_error);
  EXPECT_THAT(read_checkpoint_file(path, "test").error().text(), HasSubstr(path.string()));
  EXPECT_EQ(read_checkpoint_file(folder_, "test").error().code(), Errc::io_error);
  EXPECT_EQ(write_checkpoint_file(folder_ / "missing" / "x", make_file()).error().code(), Errc::io_error);
  std::ofstream(path) << "CAFTANck";
  EXPECT_EQ(read_checkpoint_file(path, "test").error().code(), Errc::malformed_payload);
  EXPECT_THAT(read_checkpoint_file(path, "test").error().text(), HasSubstr(path.string() + ": it was cut off"));
}

}  // namespace
}  // namespace caftan::wire::checkpoint_file_test

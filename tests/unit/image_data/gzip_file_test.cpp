// What a packed file has is read whole, or refused with its name and what is wrong with it.
#include "image_data/gzip_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_files.hpp"

namespace caftan::image_data::gzip_file_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kMost = 1U << 20U;

std::string long_text() {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(i);
  return text;
}

std::string as_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class GzipFile : public ::testing::Test {
 protected:
  Result<std::vector<std::uint8_t>> read(const std::string& bytes, std::size_t most = kMost) const {
    return read_gzip_file(folder_.write("file", bytes), most);
  }
  /// Expects an error and returns its text behind the name of the file.
  std::string error(Errc code, const std::string& bytes, std::size_t most = kMost) const {
    const auto read_bytes = read(bytes, most);
    if (read_bytes) return "no error";
    EXPECT_EQ(read_bytes.error().code(), code);
    EXPECT_THAT(read_bytes.error().text(), StartsWith(folder_ / "file: "));
    return read_bytes.error().text();
  }
  test::Folder folder_;
};

TEST_F(GzipFile, IsUnpacked) {
  EXPECT_EQ(as_text(read(test::gzipped(long_text())).value()), long_text());
  EXPECT_TRUE(read(test::gzipped("")).value().empty());
}

TEST_F(GzipFile, APlainFileIsTakenAsItIs) {
  EXPECT_EQ(as_text(read("plain").value()), "plain");
  EXPECT_TRUE(read("").value().empty());
}

TEST_F(GzipFile, EachCutIsFound) {
  const std::string whole = test::gzipped("some bytes that are packed");
  for (std::size_t size = 2; size < whole.size(); ++size) {
    EXPECT_THAT(error(Errc::malformed_payload, whole.substr(0, size)), HasSubstr("cut off")) << size;
  }
}

TEST_F(GzipFile, DamageIsFound) {
  const std::string whole = test::gzipped(long_text());
  for (std::size_t at = 12; at < whole.size(); at += 997) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const auto read_bytes = read(damaged);
    ASSERT_FALSE(read_bytes) << "byte " << at << " may be anything";
    EXPECT_EQ(read_bytes.error().code(), Errc::malformed_payload) << at;
  }
  EXPECT_THAT(error(Errc::malformed_payload, whole + "x"), HasSubstr("other bytes follow its end"));
}

TEST_F(GzipFile, NoMoreIsUnpackedThanAsked) {
  const std::string zeros(100000, '\0');
  EXPECT_EQ(read(test::gzipped(zeros), zeros.size()).value().size(), zeros.size());
  EXPECT_THAT(error(Errc::limit_exceeded, test::gzipped(zeros), zeros.size() - 1), HasSubstr("more than 99999 bytes"));
  EXPECT_THAT(error(Errc::limit_exceeded, "plain", 4), HasSubstr("more than 4 bytes"));
}

TEST_F(GzipFile, AMissingFileAndAFolderAreNamed) {
  const auto none = read_gzip_file(folder_.path() / "none", kMost);
  EXPECT_EQ(none.error().code(), Errc::io_error);
  EXPECT_THAT(none.error().text(), HasSubstr("none: there is no such file"));
  EXPECT_THAT(read_gzip_file(folder_.path(), kMost).error().text(), HasSubstr("it is no file"));
}

}  // namespace
}  // namespace caftan::image_data::gzip_file_test

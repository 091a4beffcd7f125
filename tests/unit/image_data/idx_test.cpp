// The header of an IDX file says what follows; anything else is refused.
#include "image_data/idx.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "image_files.hpp"

namespace caftan::image_data::idx_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string error(const std::string& text, std::size_t dimensions) {
  const auto bytes = bytes_of(text);
  const auto read = read_idx(bytes, dimensions, "a.idx");
  if (read) return "no error";
  EXPECT_EQ(read.error().code(), Errc::malformed_payload);
  return read.error().text();
}

TEST(Idx, HasTheSizesAndValues) {
  const auto bytes = bytes_of(test::idx_header({2, 1, 3}) + "abcdef");
  const auto read = read_idx(bytes, 3, "a.idx").value();
  EXPECT_THAT(read.sizes, ElementsAre(2, 1, 3));
  EXPECT_THAT(read.values, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  const auto line = bytes_of(test::idx_header({300}) + std::string(300, 'x'));
  EXPECT_THAT(read_idx(line, 1, "a.idx").value().sizes, ElementsAre(300, 1, 1));
}

TEST(Idx, EachCutIsFound) {
  const std::string whole = test::idx_header({2, 1, 3}) + "abcdef";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(error(whole.substr(0, size), 3), HasSubstr("a.idx: it is cut off")) << size;
  }
  EXPECT_THAT(error(whole + "g", 3), HasSubstr("other bytes follow its end: it has 7 values, its header announces 6"));
}

TEST(Idx, OtherFilesAreRefused) {
  EXPECT_THAT(error("text of somebody", 3), HasSubstr("it is no IDX file"));
  std::string floats = test::idx_header({1, 1, 1}) + "a";
  floats[2] = '\x0d';
  EXPECT_THAT(error(floats, 3), HasSubstr("IDX type 13, not unsigned bytes (8)"));
  EXPECT_THAT(error(test::idx_header({3}) + "abc", 3), HasSubstr("1 dimensions, not 3"));
  EXPECT_THAT(error(test::idx_header({1, 0, 3}), 3), HasSubstr("dimension 1 has size 0"));
  EXPECT_THAT(error(test::idx_header({0xffffffff, 0xffffffff, 0xffffffff}), 3), HasSubstr("more than 2^40 values"));
}

}  // namespace
}  // namespace caftan::image_data::idx_test

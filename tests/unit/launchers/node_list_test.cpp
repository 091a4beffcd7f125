// LN-5: what Slurm's lists of nodes name.
#include "caftan/launchers/internal/node_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::launchers::node_list_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> nodes(std::string_view list) {
  auto expanded = expand_node_list(list);
  EXPECT_TRUE(expanded) << list << ": " << expanded.error().message();
  return expanded ? *std::move(expanded) : std::vector<std::string>();
}

std::string refusal(std::string_view list) {
  const auto expanded = expand_node_list(list);
  EXPECT_FALSE(expanded) << list;
  return expanded ? "" : expanded.error().text();
}

TEST(NodeList, LN5_PlainNames) {
  EXPECT_THAT(nodes("node1"), ElementsAre("node1"));
  EXPECT_THAT(nodes("b,a,c.example.org"), ElementsAre("b", "a", "c.example.org"));
}

TEST(NodeList, LN5_RangesKeepTheirZeros) {
  EXPECT_THAT(nodes("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(nodes("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(nodes("n[098-101,7]-ib"), ElementsAre("n098-ib", "n099-ib", "n100-ib", "n101-ib", "n7-ib"));
}

TEST(NodeList, LN5_CommasInBracketsSeparateNumbersOnly) {
  EXPECT_THAT(nodes("gpu[01-02,5],login,cpu[3]"), ElementsAre("gpu01", "gpu02", "gpu5", "login", "cpu3"));
}

TEST(NodeList, LN5_TheLastBracketCountsFastest) {
  EXPECT_THAT(nodes("r[1-2]n[3-4]"), ElementsAre("r1n3", "r1n4", "r2n3", "r2n4"));
}

TEST(NodeList, LN5_WhatIsNoListIsRefused) {
  EXPECT_EQ(refusal(""), "\"\" is no list of nodes: it is empty");
  for (const char* const list : {",", "a,", ",a", "a,,b"}) EXPECT_THAT(refusal(list), HasSubstr("a node has no name"));
  for (const char* const list : {"n[1", "n[1,2", "a,n[1-"}) EXPECT_THAT(refusal(list), HasSubstr("a [ without its ]"));
  EXPECT_THAT(refusal("n1]"), HasSubstr("a ] without its ["));
  for (const char* const list : {"n[]", "n[1,]", "n[-3]", "n[1-]", "n[a-b]", "n[3-1]", "n[1--2]", "n[[1]]", "n[1 ]"}) {
    EXPECT_THAT(refusal(list), HasSubstr("is no range of numbers")) << list;
  }
  EXPECT_THAT(refusal("n[1-99999999999999999999]"), HasSubstr("is no range of numbers"));
  EXPECT_THAT(refusal("n[" + std::string(100'000, '0') + "1-60000]"), HasSubstr("is no range of numbers"));
  EXPECT_EQ(nodes("n[18446744073709551615]"), std::vector<std::string>{"n18446744073709551615"});
}

TEST(NodeList, LN5_AShortTextThatNamesTooManyIsRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(nodes("n[1-65536]").size(), 65536U);
  for (const char* const list : {"n[1-65537]", "n[0-18446744073709551615]", "n[1-65536],m", "a[1-300]b[1-300]",
                                 "n[1-40000,1-40000]", "a[1-9]b[1-9]c[1-9]d[1-9]e[1-9]f[1-9]g[1-9]h[1-9]i[1-9]"}) {
    EXPECT_THAT(refusal(list), HasSubstr("it names more than 65536 nodes")) << list;
  }
}

TEST(NodeList, LN5_AControlCharacterIsNotShown) {
  EXPECT_EQ(refusal("n[\x1b]"), "\"n[?]\" is no list of nodes: '?' is no range of numbers");
}

}  // namespace
}  // namespace caftan::launchers::node_list_test

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "caftan/base/settings_io.hpp"

namespace caftan::settings_text_test {
namespace {

TEST(Durations, AreNumbersWithAUnit) {
  EXPECT_EQ(*parse_duration("250ms"), 250'000'000);
  EXPECT_EQ(*parse_duration("2s"), 2'000'000'000);
  EXPECT_EQ(*parse_duration("1.5s"), 1'500'000'000);
  EXPECT_EQ(*parse_duration("10min"), 600'000'000'000);
  EXPECT_EQ(*parse_duration("1h"), 3'600'000'000'000);
  EXPECT_EQ(*parse_duration("7ns"), 7);
  EXPECT_EQ(*parse_duration("0s"), 0);
  EXPECT_EQ(*parse_duration("9223372036854775807ns"), std::numeric_limits<std::int64_t>::max());
}

TEST(Durations, OtherTextIsRefused) {
  for (const char* text : {"", "s", "10", "-1s", "1 s", "1S", "1..5s", ".5s", "1.s", "1.5ns", "1e3s", "1sec", "1h30min",
                           "9223372036854775808ns", "9999999999h", "99999999999999999999999999999999999999999s",
                           "1.0000000000000000000000000000000001s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Durations, AreWrittenInTheLargestWholeUnit) {
  for (const char* text : {"250ms", "2s", "10min", "1h", "90s", "7ns", "1001us", "0s"}) {
    EXPECT_EQ(format_duration(*parse_duration(text)), text);
  }
}

TEST(Sizes, AreWholeBytesWithAUnit) {
  EXPECT_EQ(*parse_bytes("64MiB"), 64LL << 20);
  EXPECT_EQ(*parse_bytes("1.5KiB"), 1536);
  EXPECT_EQ(*parse_bytes("12B"), 12);
  for (const char* text : {"64MB", "64", "MiB", "1.3B", "8388608TiB", "-1B"}) EXPECT_FALSE(parse_bytes(text)) << text;
  for (const char* text : {"64MiB", "1536KiB", "12B", "3TiB", "0B"}) {
    EXPECT_EQ(format_bytes(*parse_bytes(text)), text);
  }
}

TEST(Numbers, ReadBackAsTheSameTomlFloat) {
  EXPECT_EQ(format_number(475), "475.0");
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(1e300), "1e+300");
  EXPECT_EQ(format_number(-0.0), "-0.0");
  EXPECT_EQ(format_number(std::nan("")), "nan");
}

TEST(Numbers, ForPeopleHaveAsManyDigitsAsAreAskedFor) {
  EXPECT_EQ(format_digits(475), "475");
  EXPECT_EQ(format_digits(0.002), "0.002");
  EXPECT_EQ(format_digits(1e30), "1e+30");
  EXPECT_EQ(format_digits(1.0 / 3, 3), "0.333");
  EXPECT_EQ(format_digits(0.1, 17), "0.10000000000000001");
  EXPECT_EQ(format_fixed(2.345, 1), "2.3");
  EXPECT_EQ(format_fixed(-0.04, 1), "0.0");
  EXPECT_EQ(format_fixed(-0.06, 1), "-0.1");
  EXPECT_EQ(format_fixed(-0.0, 0), "0");
}

TEST(Strings, AreEscaped) { EXPECT_EQ(quote_toml("a\"b\\c\n\t\x1b\x7f"), "\"a\\\"b\\\\c\\n\\t\\u001B\\u007F\""); }

}  // namespace
}  // namespace caftan::settings_text_test

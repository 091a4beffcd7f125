#include "caftan/base/settings.hpp"

#include <gtest/gtest.h>

#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::settings_test {
namespace {

using namespace std::chrono_literals;

struct Everything {
  enum class Mode { slow, fast };
  struct Inner {
    std::int64_t depth = 3;
    static void settings(auto& s, Inner& c) { s("depth", c.depth, "how deep").at_least(0).unit("levels"); }
  };
  bool on = true;
  int count = 2;
  std::uint8_t small = 7;
  std::uint64_t large = 0;
  double rate = 0.5;
  float narrow = 0.25F;
  std::string text = "a";
  std::string choice = "x";
  Mode mode = Mode::fast;
  std::chrono::milliseconds wait = 250ms;
  ByteSize size = ByteSize::mib(64);
  std::filesystem::path file = "data";
  std::vector<std::string> names{"p", "q"};
  std::vector<std::int64_t> numbers{1, 2};
  std::optional<int> maybe;
  Inner inner;

  static void settings(auto& s, Everything& c) {
    s("on", c.on, "whether");
    s("count", c.count, "how many").range(1, 9);
    s("small", c.small, "fits a byte");
    s("large", c.large, "not negative");
    s("rate", c.rate, "share").greater_than(0).less_than(1);
    s("narrow", c.narrow, "single precision");
    s("text", c.text, "words");
    s("choice", c.choice, "one letter").one_of({"x", {"y", "the other"}});
    s("mode", c.mode, "speed").one_of({"slow", "fast"});
    s("wait", c.wait, "pause").range(1ms, 1h);
    s("size", c.size, "memory").at_least(ByteSize::kib(1));
    s("file", c.file, "where");
    s("names", c.names, "people");
    s("numbers", c.numbers, "figures");
    s("maybe", c.maybe, "if at all").at_least(1);
    s("inner", c.inner, "a table inside");
  }
};
static_assert(HasSettings<Everything>);
static_assert(!HasSettings<int>);

std::string read(std::string_view text, Everything& into) {
  Diagnostics diagnostics("f");
  auto fields = bind_settings(into);
  const SettingsNode root = parse_settings(text, diagnostics);
  ReadSettings options;
  options.base = "/base/configs";
  read_settings(root, fields, options, diagnostics);
  return diagnostics.render(false);
}

constexpr std::string_view kOther = R"(on = false
count = 9
small = 255
large = 9223372036854775807
rate = 0.25
narrow = 0.5
text = "é \"q\" \\ \n"
choice = "y"
mode = "slow"
wait = "2s"
size = "1KiB"
file = "../x.bin"
names = []
numbers = [-3]
maybe = 4
inner.depth = 0
)";

TEST(Settings, EveryKindIsRead) {
  Everything c;
  ASSERT_EQ(read(kOther, c), "");
  EXPECT_FALSE(c.on);
  EXPECT_EQ(c.count, 9);
  EXPECT_EQ(c.small, 255);
  EXPECT_EQ(c.large, 9223372036854775807ULL);
  EXPECT_EQ(c.rate, 0.25);
  EXPECT_EQ(c.narrow, 0.5F);
  EXPECT_EQ(c.text, "é \"q\" \\ \n");
  EXPECT_EQ(c.choice, "y");
  EXPECT_EQ(c.mode, Everything::Mode::slow);
  EXPECT_EQ(c.wait, 2s);
  EXPECT_EQ(c.size.bytes, 1024);
  EXPECT_EQ(c.file, "/base/x.bin") << "relative to the file";
  EXPECT_TRUE(c.names.empty());
  EXPECT_EQ(c.numbers, std::vector<std::int64_t>{-3});
  EXPECT_EQ(c.maybe, 4);
  EXPECT_EQ(c.inner.depth, 0);
}

TEST(Settings, AnInitialPathIsRelativeToTheFileAsAGivenOneIs) {
  Everything c;
  for (int time = 0; time < 2; ++time) {  // what was resolved stays as it is
    ASSERT_EQ(read("", c), "");
    EXPECT_EQ(c.file, "/base/configs/data");
  }
}

TEST(Settings, TheDumpReadsBackAsTheSame) {
  for (const std::string_view text : {std::string_view(""), kOther}) {
    Everything first;
    ASSERT_EQ(read(text, first), "");
    const std::string dump = dump_settings(bind_settings(first), "");
    Everything second;
    ASSERT_EQ(read(dump, second), "") << dump;
    second.file = first.file;  // the dump has a relative path, which was read relative to the file
    EXPECT_EQ(dump_settings(bind_settings(second), ""), dump);
  }
}

TEST(Settings, AFieldWithAnErrorKeepsItsValueAndAllAreReported) {
  Everything c;
  EXPECT_EQ(read("on = 1\ncount = 10\nsmall = 256\nlarge = -1\nrate = 1\ntext = 3\nchoice = \"z\"\nmode = 0\nwait = "
                 "\"0s\"\nsize = 3\nfile = \"\"\nnames = [1]\nnumbers = [1.5]\nmaybe = 0\ninner = 3\n",
                 c),
            "f:1:6: error: on must be true or false, is the integer 1\n"
            "f:2:9: error: count must be 1..9, is 10\n"
            "f:3:9: error: small must be 0..255, is 256\n"
            "f:4:9: error: large must be >= 0, is -1\n"
            "f:5:8: error: rate must be >0..<1, is 1\n"
            "f:6:8: error: text must be a string, is the integer 3\n"
            "f:7:10: error: choice must be x | y, is \"z\"\n"
            "f:8:8: error: mode must be a string: slow | fast, is the integer 0\n"
            "f:9:8: error: wait must be 1ms..1h, is 0s\n"
            "f:10:8: error: size must be a string with a unit such as \"64MiB\", is the integer 3\n"
            "f:11:8: error: file must not be empty\n"
            "f:12:10: error: names must be a list of strings, has the integer 1\n"
            "f:13:12: error: numbers must be a list of integers, has the number 1.5\n"
            "f:14:9: error: maybe must be >= 1, is 0\n"
            "f:15:9: error: inner must be a table, is the integer 3\n"
            "error: 15 errors; f is not valid\n");
  EXPECT_EQ(dump_settings(bind_settings(c), ""), [] {
    Everything fresh;
    return dump_settings(bind_settings(fresh), "");
  }());
}

TEST(Settings, UnknownKeysOfInnerTablesNameTheirTable) {
  Everything c;
  EXPECT_EQ(read("[inner]\ndept = 1\n", c),
            "f:2:1: error: unknown key 'dept' in [inner]; did you mean 'depth'?\nerror: 1 error; f is not valid\n");
}

TEST(Settings, DatesAreNoStrings) {
  Everything c;
  EXPECT_EQ(read("text = 1979-05-27\n", c),
            "f:1:8: error: text must be a string, is the date or time 1979-05-27\nerror: 1 error; f is not valid\n");
}

TEST(Settings, HelpIsTomlWithEveryDefaultExplained) {
  Everything c;
  const std::string help = help_settings(bind_settings(c), "roles.x.config");
  EXPECT_NE(help.find("rate    = 0.5         # share, >0..<1; default 0.5\n"), std::string::npos) << help;
  EXPECT_NE(help.find("choice  = \"x\"         # one letter: x | y (the other); default x\n"), std::string::npos)
      << help;
  EXPECT_NE(help.find("# maybe               # if at all, 1..; default none\n"), std::string::npos) << help;
  EXPECT_NE(help.find("[roles.x.config.inner]  # a table inside\ndepth = 3  # how deep, levels, 0..; default 3\n"),
            std::string::npos)
      << help;
  Everything other;
  Diagnostics diagnostics("help");
  auto fields = bind_settings(other);
  const SettingsNode root = parse_settings(help, diagnostics);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.render(true);
}

TEST(Settings, DeclarationsForgetTheTypeAndGiveItBack) {
  const auto declaration = SettingsDeclaration::of<Everything>();
  std::any value = declaration.make();
  auto fields = declaration.bind(value);
  fields[1].set(std::int64_t{5});
  EXPECT_EQ(std::any_cast<Everything&>(value).count, 5);
  EXPECT_EQ(count_settings(fields), 16U);
  std::any nothing = SettingsDeclaration().make();
  EXPECT_TRUE(SettingsDeclaration().bind(nothing).empty());
}

TEST(Overrides, CreateTablesOnTheWayAndTakeBareWordsAsStrings) {
  Diagnostics diagnostics("f");
  SettingsNode root = parse_settings("inner = { depth = 1 }\n", diagnostics);
  apply_override(root, "inner.depth=2", 0, diagnostics);
  apply_override(root, "a.b.c=some-word", 1, diagnostics);
  apply_override(root, "list=[\"a\", \"b\"]", 2, diagnostics);
  apply_override(root, "equals=\"x=y\"", 3, diagnostics);
  ASSERT_TRUE(diagnostics.ok()) << diagnostics.render(false);
  EXPECT_EQ(root.find("inner")->value.find("depth")->value.describe(), "the integer 2");
  EXPECT_EQ(root.find("inner")->value.find("depth")->value.place.override_index, 0);
  EXPECT_EQ(root.find("a")->value.find("b")->value.find("c")->value.describe(), "the string \"some-word\"");
  EXPECT_EQ(root.find("list")->value.items.size(), 2U);
  EXPECT_EQ(root.find("equals")->value.describe(), "the string \"x=y\"");
}

TEST(Overrides, U4_ATableSetsTheKeysThatItNamesAndLosesNone) {
  Diagnostics diagnostics("f");
  SettingsNode root =
      parse_settings("[a]\nkept = 1\nset = 2\nlist = [1, 2]\ninner = { kept = 3, set = 4 }\n", diagnostics);
  apply_override(root, "a={set=5, list=[6], inner={set=7}, more=8}", 0, diagnostics);
  apply_override(root, "a.inner={}", 1, diagnostics);
  apply_override(root, "b={c=9}", 2, diagnostics);
  ASSERT_TRUE(diagnostics.ok()) << diagnostics.render(false);
  const SettingsNode& a = root.find("a")->value;
  const SettingsNode& inner = a.find("inner")->value;
  EXPECT_EQ(a.find("kept")->value.describe(), "the integer 1");
  EXPECT_EQ(a.find("set")->value.describe(), "the integer 5");
  EXPECT_EQ(a.find("set")->key_place.override_index, 0);
  EXPECT_EQ(a.find("list")->value.items.size(), 1U);
  EXPECT_EQ(a.find("more")->value.describe(), "the integer 8");
  EXPECT_EQ(inner.find("kept")->value.describe(), "the integer 3");
  EXPECT_EQ(inner.find("set")->value.describe(), "the integer 7");
  EXPECT_EQ(inner.place.line, 5) << "the table stays where the file has it";
  EXPECT_EQ(root.find("b")->value.find("c")->value.describe(), "the integer 9");
  apply_override(root, "a=1", 3, diagnostics);
  EXPECT_EQ(root.find("a")->value.describe(), "the integer 1");
}

TEST(Overrides, CannotSmuggleInOtherKeys) {
  Diagnostics diagnostics("f");
  SettingsNode root;
  apply_override(root, "a=1\nb=2", 0, diagnostics);
  EXPECT_FALSE(diagnostics.ok());
  EXPECT_TRUE(root.entries.empty());
}

}  // namespace
}  // namespace caftan::settings_test

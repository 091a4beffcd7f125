#include "caftan/base/settings_diagnostics.hpp"

#include <gtest/gtest.h>

namespace caftan::settings_diagnostics_test {
namespace {

TEST(DidYouMean, FindsTheNearestName) {
  EXPECT_EQ(nearest("gama", {"gamma", "hidden"}), "gamma");
  EXPECT_EQ(nearest("seeed", {"speeds", "seed"}), "seed");
  EXPECT_EQ(nearest("learning_rate", {"learning_rats1", "learning_rat"}), "learning_rat")
      << "a later one may be nearer";
  EXPECT_EQ(nearest("nmae", {"name"}), "name") << "two swapped letters are one mistake";
  EXPECT_EQ(nearest("observers", {"observer", "server"}), "observer");
  EXPECT_EQ(nearest("max_epsiodes", {"max_episodes"}), "max_episodes");
}

TEST(DidYouMean, FindsANameByItsBeginning) {
  EXPECT_EQ(nearest("Pendulum", {"Acrobot-v1", "Pendulum-v1"}), "Pendulum-v1");
  EXPECT_EQ(nearest("host", {"hosts", "hosts.place"}), "hosts") << "the nearest one, not the first";
  EXPECT_EQ(nearest("hos", {"hospital"}), "") << "three letters are the beginning of too much";
}

TEST(DidYouMean, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest("restart", {"replicas", "type", "hosts"}), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("abc", {"xyz"}), "");
  EXPECT_EQ(did_you_mean("abc", {"xyz"}), "");
  EXPECT_EQ(did_you_mean("abd", {"abc"}), "; did you mean 'abc'?");
}

TEST(Diagnostics, AreInTheOrderOfTheFile) {
  Diagnostics diagnostics("a.toml");
  diagnostics.set_overrides({"x=1"});
  diagnostics.error({.override_index = 0}, "from the command line");
  diagnostics.error({.line = 9, .column = 2}, "ninth");
  diagnostics.warning({.line = 3, .column = 1}, "third");
  diagnostics.error({.line = 9, .column = 1}, "ninth, earlier");
  diagnostics.error({}, "whole file");
  EXPECT_EQ(diagnostics.render(false),
            "a.toml: error: whole file\n"
            "a.toml:3:1: warning: third\n"
            "a.toml:9:1: error: ninth, earlier\n"
            "a.toml:9:2: error: ninth\n"
            "command line: error: x=1: from the command line\n"
            "error: 4 errors; a.toml is not valid\n");
  EXPECT_EQ(diagnostics.to_error().text(), "a.toml: error: whole file (and 3 more)");
  EXPECT_EQ(diagnostics.to_error().code(), Errc::invalid_config);
}

TEST(Diagnostics, WarningsAloneAreNoFailure) {
  Diagnostics diagnostics("a.toml");
  diagnostics.warning({.line = 1, .column = 1}, "hm");
  EXPECT_TRUE(diagnostics.ok());
  EXPECT_EQ(diagnostics.render(false), "a.toml:1:1: warning: hm\n");
}

TEST(Diagnostics, SnippetsUnderlineCharactersNotBytes) {
  Diagnostics diagnostics("a.toml");
  diagnostics.set_source("x = 1\n\t\"\xC3\xA9\xE2\x82\xAC\" = 3 \x1b\r\n");
  diagnostics.error({.line = 2, .column = 9, .length = 1}, "no");
  EXPECT_EQ(diagnostics.render(true),
            "a.toml:2:9: error: no\n"
            "    2 | \t\"\xC3\xA9\xE2\x82\xAC\" = 3 ?\n"
            "      | \t       ^\n"
            "error: 1 error; a.toml is not valid\n");
}

}  // namespace
}  // namespace caftan::settings_diagnostics_test

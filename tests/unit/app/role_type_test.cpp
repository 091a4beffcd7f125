#include "caftan/app/role_type.hpp"

#include <gtest/gtest.h>

#include "caftan/app/place.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::role_type_test {
namespace {

struct Counter {
  struct Config {
    int start = 0;
  };
  static void settings(auto& s, Config& c) { s("start", c.start, "first value").range(0, 1000); }
};
struct Plain {};
struct OutOfRange {
  int start = -1;
  static void settings(auto& s, OutOfRange& c) { s("start", c.start, "first value").at_least(0); }
};
struct Twice {
  int a = 0;
  static void settings(auto& s, Twice& c) {
    s("a", c.a, "one");
    s("a", c.a, "the same");
  }
};
struct NoNames {
  enum class Kind { one } kind = Kind::one;
  static void settings(auto& s, NoNames& c) { s("kind", c.kind, "without names"); }
};

TEST(RoleTypes, SettingsAreThoseOfTheRoleOrOfItsConfig) {
  const SettingsDeclaration counter = role_settings<Counter>();
  std::any config = counter.make();
  EXPECT_EQ(counter.bind(config).front().name, "start");
  EXPECT_EQ(std::any_cast<Counter::Config>(config).start, 0);
  std::any none = role_settings<Plain>().make();
  EXPECT_TRUE(role_settings<Plain>().bind(none).empty());
}

TEST(RoleTypes, HelpIsAPieceOfAFile) {
  RoleTypes types;
  types.add({.name = "counter", .doc = "Counts", .config = role_settings<Counter>()}).value();
  types
      .add({.name = "driver",
            .uses = {{.name = "counters", .role_type = "counter", .max = RoleUse::kAnyNumber}},
            .drives = true})
      .value();
  EXPECT_EQ(help_role_type(*types.find("counter")),
            "counter: Counts\n\n[roles.NAME]\ntype = \"counter\"\n\n[roles.NAME.config]\n"
            "start = 0  # first value, 0..1000; default 0\n");
  EXPECT_EQ(help_role_type(*types.find("driver")),
            "driver\n(drives the run: it ends when all roles that drive have returned)\n\n[roles.NAME]\ntype = "
            "\"driver\"\n\n[roles.NAME.uses]\ncounters = \"ROLE\"  # a role, or a list of roles, of type counter, at "
            "least 1; required\n");
  EXPECT_EQ(list_role_types(types), "counter  Counts\ndriver   drives the run\n");
}

TEST(RoleTypes, WrongRegistrationsAreRefused) {
  RoleTypes types;
  types.add({.name = "counter"}).value();
  const auto refused = [&](RoleType type) { return types.add(std::move(type)).error().text(); };
  EXPECT_EQ(refused({.name = "counter"}), "role type 'counter' is registered twice");
  EXPECT_EQ(refused({.name = "a b"}), "role type 'a b': a name is made of letters, digits and _ . -");
  EXPECT_EQ(refused({.name = "x", .uses = {{.name = "a"}, {.name = "a"}}}), "role type x: use 'a' is declared twice");
  EXPECT_EQ(refused({.name = "x", .uses = {{.name = "a"}, {.name = "b"}, {.name = "b"}}}),
            "role type x: use 'b' is declared twice");
  EXPECT_EQ(refused({.name = "x", .uses = {{.name = "a", .min = 2, .max = 1}}}),
            "role type x: use 'a' has no name or no range");
  EXPECT_EQ(refused({.name = "x", .config = SettingsDeclaration::of<OutOfRange>()}),
            "role type x: a default is refused by its own declaration: x:1:9: error: start must be >= 0, is -1");
  EXPECT_EQ(refused({.name = "x", .config = SettingsDeclaration::of<Twice>()}),
            "role type x: setting a is declared twice");
  EXPECT_EQ(refused({.name = "x", .config = SettingsDeclaration::of<NoNames>()}),
            "role type x: setting kind is an enum without one_of");
}

TEST(RolePlace, KnowsTheReplicasThatTheRoleUsesAndItsSeeds) {
  const std::any first = Counter::Config{.start = 1};
  const std::any second = Counter::Config{.start = 2};
  const RolePlace place{.role = "user", .root_seed = 7, .uses = {{"counters", {&first, &second}}}};
  EXPECT_EQ(count_used(place, "counters"), 2U);
  EXPECT_EQ(count_used(place, "others"), 0U);
  const auto configs = used_configs<Counter::Config>(place, "counters");
  ASSERT_EQ(configs.size(), 2U);
  EXPECT_EQ(configs[0]->start, 1);
  EXPECT_EQ(configs[1]->start, 2);
  EXPECT_TRUE(used_configs<Counter::Config>(place, "others").empty());
  EXPECT_EQ(stream_seed(place, "data"), stream_seed(7, "user", 0, "data"));
}

}  // namespace
}  // namespace caftan::app::testing::role_type_test

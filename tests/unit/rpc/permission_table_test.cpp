// Who may call what at a worker: docs/protocols/permissions.md.
#include "caftan/rpc/internal/permission_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace caftan::permission_table_test {
namespace {

using rpc::PermissionTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

int add(int a, int b) { return a + b; }
int subtract(int a, int b) { return a - b; }
int find_role() { return 0; }
int serve() { return 0; }
struct Counter {
  int count() { return 0; }
};
struct Role {
  int play() { return 0; }
  int pause() { return 0; }
};

class Record final : public rpc::PeerRecord {
 public:
  Record(WorkerId id, std::string name) : id_(id), name_(std::move(name)) {}
  WorkerId id() const noexcept override { return id_; }
  const std::string& name() const noexcept override { return name_; }

 private:
  const WorkerId id_;
  const std::string name_;
};

/// The worker "callee" of three members, as rules have it.
class Permitted : public ::testing::Test {
 protected:
  Permitted() {
    registry_.add<&add>("math.add");
    registry_.add<&subtract>("math.subtract");
    registry_.add<&find_role>("caftan.role.player");
    registry_.add<Counter>("counter").constructor<>().method<&Counter::count>("count");
    registry_.add_role<Role>("player").method<&Role::play>("play").method<&Role::pause>("pause");
  }
  /// Registers what services have, and makes the table.
  PermissionTable make(const PeerPermissions& of_caller) {
    const auto entries = registry_.entries();
    registry_.add<&serve>("caftan.gather.value");
    EXPECT_TRUE(registry_.freeze());
    return PermissionTable({.peers = {{"caller", of_caller}}}, registry_,
                           {.self = WorkerId{0},
                            .members = {"callee", "caller", "other"},
                            .entries = entries,
                            .log = [this](const std::string& line) { log_.push_back(line); }});
  }
  Peer peer(std::uint32_t id) { return Peer(std::make_shared<Record>(WorkerId{id}, names_[id])); }
  /// Returns the names of what member `id` may call.
  std::vector<std::string> allowed(const PermissionTable& table, std::uint32_t id = 1) {
    std::vector<std::string> names;
    for (const rpc::FunctionEntry* entry : registry_.entries()) {
      if (table.check_call(peer(id), *entry, false)) names.push_back(entry->name);
    }
    return names;
  }
  const rpc::FunctionEntry& entry(const std::string& name) {
    const auto entries = registry_.entries();
    return **std::ranges::find(entries, name, [](const rpc::FunctionEntry* one) { return one->name; });
  }

  const std::vector<std::string> names_{"callee", "caller", "other"};
  Registry registry_;
  std::vector<std::string> log_;
};

TEST_F(Permitted, PM2_AnUnusedCallerHasMethodsAndOpenFunctions) {
  registry_.open("math.su*");
  const PermissionTable table = make({.uses = {.allowed = false, .name = "no use"}});
  EXPECT_THAT(allowed(table),
              ElementsAre("caftan.gather.value", "counter.count", "math.subtract", "player.pause", "player.play"));
  EXPECT_FALSE(table.check_operator(peer(1), false));
  EXPECT_TRUE(table.check_reference(peer(1)));
}

TEST_F(Permitted, PM2_ACallerThatUsesTheWorkerMayCallEverything) {
  const PermissionTable table = make({.uses = {.allowed = true}});
  EXPECT_EQ(allowed(table).size(), registry_.entries().size());
  EXPECT_TRUE(table.check_operator(peer(1), true));
  EXPECT_THAT(allowed(table, 2), ElementsAre("caftan.gather.value", "counter.count", "player.pause", "player.play"))
      << "no rule is about this member";
}

TEST_F(Permitted, PM3_FunctionsAreThoseThatTheRuleNames) {
  registry_.open("math.*");
  const PermissionTable table = make({.uses = {.allowed = true}, .functions = {{{"math.add", "counter.*"}, "rule"}}});
  EXPECT_THAT(allowed(table), ElementsAre("caftan.gather.value", "caftan.role.player", "counter.count", "math.add",
                                          "player.pause", "player.play"))
      << "an open function is taken back, the role is left";
  EXPECT_EQ(table.check_call(peer(1), entry("math.subtract"), false).error().text(),
            "caller may not call math.subtract here: rule");
}

TEST_F(Permitted, PM3_MethodsOfTheRoleFollowTheRuleAboutRoles) {
  const PermissionTable table = make({.uses = {.allowed = true}, .role = {{false, "no role"}}});
  EXPECT_THAT(allowed(table),
              ElementsAre("caftan.gather.value", "counter()", "counter.count", "math.add", "math.subtract"));
}

TEST_F(Permitted, PM3_OneMethodOfARoleIsAllowedByItsNameAndMakesTheRoleFindable) {
  const PermissionTable table = make({.functions = {{{"player.play"}, "rule"}}, .role = {{false, "no role"}}});
  EXPECT_THAT(allowed(table), ElementsAre("caftan.gather.value", "caftan.role.player", "player.play"));
}

TEST_F(Permitted, PM3_ARoleThatIsAllowedNeedsNoUse) {
  const PermissionTable table = make({.uses = {.allowed = false, .name = "no use"}, .role = {{true, "role"}}});
  EXPECT_THAT(allowed(table),
              ElementsAre("caftan.gather.value", "caftan.role.player", "counter.count", "player.pause", "player.play"));
}

TEST_F(Permitted, PM3_OperatorsAndReferencesHaveRulesOfTheirOwn) {
  const PermissionTable table =
      make({.uses = {.allowed = true}, .operators = {{false, "no op"}}, .references = {{false, "no ref"}}});
  EXPECT_EQ(table.check_operator(peer(1), false).error().text(), "caller may not have operators run here: no op");
  EXPECT_EQ(table.check_reference(peer(1)).error().text(), "caller may not refer to objects here: no ref");
  EXPECT_TRUE(table.check_call(peer(1), entry("math.add"), false));
  EXPECT_EQ(table.check_call(peer(1), entry("math.add"), true).error().text(),
            "caller may not refer to objects here: no ref")
      << "a creation gives its caller a reference";
}

TEST_F(Permitted, PM6_ServiceFunctionsAreForAll) {
  const PermissionTable table = make({.uses = {.allowed = false, .name = "no use"}, .functions = {{{}, "none"}}});
  EXPECT_TRUE(table.check_call(peer(1), entry("caftan.gather.value"), false));
  EXPECT_TRUE(table.check_call(peer(2), entry("caftan.gather.value"), false));
}

TEST_F(Permitted, PM7_AWorkerMayDoEverythingAtItself) {
  const PermissionTable table = make({});
  EXPECT_EQ(allowed(table, 0).size(), registry_.entries().size());
  EXPECT_TRUE(table.check_operator(peer(0), true));
  EXPECT_TRUE(table.check_reference(peer(0)));
}

TEST_F(Permitted, PM8_TheFirstRefusalOfEachKindIsLogged) {
  const PermissionTable table = make({.uses = {.allowed = false, .name = "no use"}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(table.check_call(peer(1), entry("math.add"), false).error().code(), Errc::not_permitted);
    EXPECT_FALSE(table.check_call(peer(1), entry("math.subtract"), false));
    EXPECT_FALSE(table.check_call(peer(2), entry("math.add"), false));
    EXPECT_FALSE(table.check_operator(peer(1), false));
  }
  EXPECT_THAT(log_, ElementsAre("not permitted: caller may not call math.add here: no use (logged once)",
                                HasSubstr("caller may not call math.subtract"),
                                HasSubstr("other may not call math.add"), HasSubstr("caller may not have operators")));
}

TEST_F(Permitted, RulesMadeByHandNameMembersAndFunctions) {
  ASSERT_TRUE(registry_.freeze());
  const auto check = [this](const Permissions& rules) { return rpc::check_permissions(rules, names_, registry_); };
  EXPECT_TRUE(check({.peers = {{"caller", {.functions = {{{"math.*"}, "rule"}}}}}}));
  const auto unknown = check({.peers = {{"caler", {}}}});
  EXPECT_EQ(unknown.error().code(), Errc::invalid_config);
  EXPECT_THAT(unknown.error().text(), HasSubstr("no worker 'caler' in this job; did you mean 'caller'?"));
  EXPECT_THAT(check({.others = {.functions = {{{"math.ad"}, "rule"}}}}).error().text(),
              HasSubstr("nothing is registered as 'math.ad'; did you mean 'math.add'?"));
}

TEST_F(Permitted, AnOpenNameThatNothingHasIsRefusedByTheRegistry) {
  registry_.open("math.multiply");
  EXPECT_THAT(registry_.freeze().error().text(), HasSubstr("'math.multiply' is open, but nothing of that name"));
}

}  // namespace
}  // namespace caftan::permission_table_test

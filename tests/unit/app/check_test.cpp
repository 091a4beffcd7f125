// What `check` finds, as whole expected outputs (BI-1).
#include <gtest/gtest.h>

#include "role_types.hpp"

namespace caftan::app::testing::check_test {
namespace {

constexpr std::string_view kGood = R"(caftan = 1
[run]
name = "cartpole"
[roles.agent]
type = "cartpole.agent"
[roles.agent.config]
gamma = 0.99
[roles.agent.uses]
observers = "observer"
[roles.observer]
type = "cartpole.observer"
)";

/// Returns what check prints for a file that differs from a good one in one place.
std::string check(std::string_view from, std::string_view to, std::vector<std::string> overrides = {}) {
  std::string text(kGood);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return load(text, std::move(overrides)).diagnostics.render(false);
}

std::string one(const std::string& line) {
  return line + "error: 1 error; " + (line.starts_with("command line: ") ? "the command line" : "app.toml") +
         " is not valid\n";
}

TEST(Check, BI1_AGoodFileSaysNothing) { EXPECT_EQ(load(kGood).diagnostics.render(true), ""); }

TEST(Check, BI1_SyntaxKeepsTheParsersTextAndPlace) {
  EXPECT_EQ(check("name = ", "name "), one("app.toml:3:6: error: Error while parsing key-value pair: expected '=', saw "
                                           "'\"'\n"));
}

TEST(Check, BI1_DuplicateKey) {
  EXPECT_EQ(check("gamma = 0.99", "gamma = 0.99\ngamma = 0.9"),
            one("app.toml:8:9: error: Error while parsing key-value pair: cannot redefine existing floating-point "
                "'gamma'\n"));
}

TEST(Check, BI1_DuplicateTable) {
  EXPECT_EQ(
      check("[roles.observer]", "[roles.agent]"),
      one("app.toml:10:1: error: Error while parsing table header: cannot redefine existing table 'roles.agent'\n"));
}

TEST(Check, BI1_InvalidUtf8) {
  EXPECT_EQ(check("cartpole\"", "cart\xffpole\""), one("app.toml:3:12: error: Encountered invalid utf-8 sequence\n"));
}

TEST(Check, BI1_NestingIsBounded) {
  EXPECT_EQ(check("name = \"cartpole\"", "name = " + std::string(300, '[')),
            one("app.toml:3:264: error: Error while parsing value: exceeded maximum nested value depth of 256 "
                "(TOML_MAX_NESTED_VALUES)\n"));
}

TEST(Check, BI1_KeysHaveABoundedNumberOfParts) {
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  EXPECT_EQ(check("name = \"cartpole\"", key + " = 1"), one("app.toml:3:32: error: a key has more than 16 parts\n"));
  EXPECT_EQ(check("", "", {key + "=1"}).find("command line: error: a.a.a"), 0U);
  EXPECT_EQ(check("name = \"cartpole\"", "name = 'a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r'"),
            one("app.toml:3:8: error: name must be a-z 0-9 -, 1..64 characters, is "
                "\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r\"\n"));
}

std::string nested(int levels, const std::string& key) {
  std::string text = "x = ";
  for (int i = 0; i < levels; ++i) text += "{ " + key + " = ";
  return text + "1" + std::string(static_cast<std::size_t>(levels), '}');
}

TEST(Check, BI1_NestingByDottedKeysIsBoundedToo) {
  const std::string deepest = nested(32, "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a");
  EXPECT_EQ(check("[run]", deepest + "\n[run]"), one("app.toml:2:1: error: unknown key 'x'\n"));
  const std::string deeper = nested(34, "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a");
  EXPECT_EQ(check("[run]", deeper + "\n[run]"), one("app.toml:2:1157: error: nested deeper than 512 levels\n"));
}

TEST(Check, BI1_UnknownKeyAtTheTop) {
  EXPECT_EQ(check("[run]", "[rum]"), one("app.toml:2:2: error: unknown key 'rum'; did you mean 'run'?\n"));
}

TEST(Check, BI1_UnknownKeyInATable) {
  EXPECT_EQ(check("name =", "nmae ="), one("app.toml:3:1: error: unknown key 'nmae' in [run]; did you mean 'name'?\n"));
}

TEST(Check, BI1_UnknownKeyInARole) {
  EXPECT_EQ(check("type = \"cartpole.observer\"", "type = \"cartpole.observer\"\nrestart = \"never\""),
            one("app.toml:12:1: error: unknown key 'restart' in [roles.observer]\n"));
}

TEST(Check, BI1_UnknownKeyInAConfigNamesItsTypeAndTheHelp) {
  const LoadedApplication loaded = load(std::string(kGood).replace(kGood.find("gamma "), 6, "gama  "));
  EXPECT_EQ(loaded.diagnostics.render(true),
            "app.toml:7:1: error: unknown key 'gama' in [roles.agent.config] (cartpole.agent); did you mean 'gamma'?\n"
            "    7 | gama  = 0.99\n"
            "      | ^^^^ `caftan help cartpole.agent` lists its 11 keys\n"
            "error: 1 error; app.toml is not valid\n");
}

TEST(Check, BI1_UnknownUse) {
  EXPECT_EQ(check("observers = \"observer\"", "observers = \"observer\"\nobserver = \"observer\""),
            one("app.toml:10:1: error: unknown key 'observer' in [roles.agent.uses] (cartpole.agent); did you mean "
                "'observers'?\n"));
}

TEST(Check, BI1_AUseThatTheProgramDoesNotDeclareSaysHowMainDeclaresOne) {
  const std::string declare =
      "(cartpole.agent); declare the use in main: program.role<...>(\"cartpole.agent\").uses<...>(\"teacher\")\n";
  EXPECT_EQ(check("observers = \"observer\"", "observers = \"observer\"\nteacher = \"observer\""),
            one("app.toml:10:1: error: unknown key 'teacher' in [roles.agent.uses] " + declare));
  EXPECT_EQ(check("", "", {"roles.agent.uses.teacher=observer"}),
            one("command line: error: roles.agent.uses.teacher=observer: unknown key 'teacher' " + declare));
}

TEST(Check, BI1_UnknownKeyInAnOverride) {
  EXPECT_EQ(check("", "", {"roles.observer.replica=4"}),
            one("command line: error: roles.observer.replica=4: unknown key 'replica'; did you mean 'replicas'?\n"));
}

TEST(Check, BI1_WrongTypes) {
  EXPECT_EQ(
      check("name = \"cartpole\"",
            "name = 3\nstart_timeout = 10\nseed = \"x\"\ndeterministic = 1\nplacement = true\nwall = \"5 years\""),
      "app.toml:3:8: error: name must be a string, is the integer 3\n"
      "app.toml:4:17: error: start_timeout must be a string with a unit such as \"30s\", is the integer 10\n"
      "app.toml:5:8: error: seed must be an integer, is the string \"x\"\n"
      "app.toml:6:17: error: deterministic must be true or false, is the integer 1\n"
      "app.toml:7:13: error: placement must be a string: one_process | processes | hosts, is true\n"
      "app.toml:8:8: error: wall must be a string with a unit (ns, us, ms, s, min, h) such as \"10s\", is the "
      "string \"5 years\"\n"
      "error: 6 errors; app.toml is not valid\n");
}

TEST(Check, BI1_TablesThatAreNone) {
  EXPECT_EQ(check("[run]\nname = \"cartpole\"", "run = 3\nlimits = [1]"),
            "app.toml:2:7: error: run must be a table, is the integer 3\n"
            "app.toml:3:10: error: limits must be a table, is a list\n"
            "error: 2 errors; app.toml is not valid\n");
  EXPECT_EQ(check("[roles.agent.config]\ngamma = 0.99", "config = \"none\""),
            one("app.toml:6:10: error: config must be a table, is the string \"none\"\n"));
  EXPECT_EQ(
      check("[roles.agent.uses]\nobservers = \"observer\"", "[roles.agent]\nuses = []"),
      one("app.toml:8:1: error: Error while parsing table header: cannot redefine existing table 'roles.agent'\n"));
}

TEST(Check, BI1_OutOfRange) {
  EXPECT_EQ(check("gamma = 0.99",
                  "gamma = 1.5\nlearning_rate = -0.01\ndropout = 1\nrunning_average = 0\nhidden = "
                  "65537\nmax_episodes = 0"),
            "app.toml:7:9: error: gamma must be 0..1, is 1.5\n"
            "app.toml:8:17: error: learning_rate must be >0..1000, is -0.01\n"
            "app.toml:9:11: error: dropout must be 0..<1, is 1\n"
            "app.toml:10:19: error: running_average must be >0..1, is 0\n"
            "app.toml:11:10: error: hidden must be 1..65536, is 65537\n"
            "app.toml:12:16: error: max_episodes must be >= 1, is 0\n"
            "error: 6 errors; app.toml is not valid\n");
  EXPECT_EQ(check("name = \"cartpole\"", "seed = -1\nstart_timeout = \"2h\"\nstop_timeout = \"1ms\""),
            "app.toml:3:8: error: seed must be 0..2^63-1, is -1\n"
            "app.toml:4:17: error: start_timeout must be 1s..1h, is 2h\n"
            "app.toml:5:16: error: stop_timeout must be 100ms..10min, is 1ms\n"
            "error: 3 errors; app.toml is not valid\n");
}

TEST(Check, BI1_ErrorsOfValuesThatNothingCouldHoldSayTheRange) {
  EXPECT_EQ(check("name = \"cartpole\"",
                  "start_timeout = \"-5s\"\nstop_timeout = \"99999999999999999999h\"\nwall = \"9999999h\""),
            "app.toml:3:17: error: start_timeout must be 1s..1h, is -5s\n"
            "app.toml:4:16: error: stop_timeout must be 100ms..10min, is 99999999999999999999h\n"
            "app.toml:5:8: error: wall must be 1s..2562047h, is 9999999h\n"
            "error: 3 errors; app.toml is not valid\n");
  EXPECT_EQ(check("", "", {"limits.message=-1B", "limits.tensors=9999999TiB", "cluster.rpc_timeout=-1ms"}),
            "command line: error: limits.message=-1B: message must be 1KiB..4095MiB, is -1B\n"
            "command line: error: limits.tensors=9999999TiB: tensors must be 1KiB..8388607TiB, is 9999999TiB\n"
            "command line: error: cluster.rpc_timeout=-1ms: rpc_timeout must be 0s..2562047h, is -1ms\n"
            "error: 3 errors; the command line is not valid\n");
  EXPECT_EQ(check("", "", {"limits.message=8GiB"}),  // T2: a frame counts its parts in 32 bits
            "command line: error: limits.message=8GiB: message must be 1KiB..4095MiB, is 8GiB\n"
            "error: 1 error; the command line is not valid\n");
  EXPECT_EQ(check("", "", {"roles.agent.config.gamma=99999999999999999999", "roles.agent.config.solved_at=1e999"}),
            "command line: error: roles.agent.config.gamma=99999999999999999999: gamma must be 0..1, is "
            "99999999999999999999\n"
            "command line: error: roles.agent.config.solved_at=1e999: solved_at must be a finite number, is 1e999\n"
            "error: 2 errors; the command line is not valid\n");
  EXPECT_EQ(check("", "", {"run.seed=99999999999999999999", "roles.observer.replicas=-99999999999999999999"}),
            "command line: error: run.seed=99999999999999999999: seed must be 0..2^63-1, is 99999999999999999999\n"
            "command line: error: roles.observer.replicas=-99999999999999999999: replicas must be 1..1024, is "
            "-99999999999999999999\n"
            "error: 2 errors; the command line is not valid\n");
}

TEST(Check, U1_ALearningRateThatNoTrainingSurvivesIsNamedByItsKey) {
  EXPECT_EQ(check("", "", {"roles.agent.config.learning_rate=1e300"}),
            one("command line: error: roles.agent.config.learning_rate=1e300: learning_rate must be >0..1000, is "
                "1e+300\n"));
  EXPECT_EQ(check("gamma = 0.99", "learning_rate = 1000"), "");
}

TEST(Check, BI1_OverrideOfAnUnknownRole) {
  EXPECT_EQ(check("", "", {"roles.agnt.config.gamma=1"}),
            one("command line: error: roles.agnt.config.gamma=1: no role 'agnt' in the file; did you mean 'agent'? (it "
                "has: agent, observer)\n"));
}

TEST(Check, BI1_ReplicasBeyondTheLimit) {
  EXPECT_EQ(check("type = \"cartpole.observer\"", "type = \"cartpole.observer\"\nreplicas = 1025"),
            one("app.toml:12:12: error: replicas must be 1..1024, is 1025\n"));
}

TEST(Check, BI1_UnknownChoiceListsThem) {
  EXPECT_EQ(check("gamma = 0.99", "protocol = \"fuse\""),
            one("app.toml:7:12: error: protocol must be two_calls | fused | rollout, is \"fuse\"; did you mean "
                "'fused'?\n"));
}

TEST(Check, BI1_NotFinite) {
  EXPECT_EQ(check("gamma = 0.99", "gamma = nan\nlearning_rate = inf"),
            "app.toml:7:9: error: gamma must be a finite number, is nan\n"
            "app.toml:8:17: error: learning_rate must be a finite number, is inf\n"
            "error: 2 errors; app.toml is not valid\n");
}

TEST(Check, BI1_IntegerOverflow) {
  EXPECT_EQ(check("name = \"cartpole\"", "seed = 9223372036854775808"),
            one("app.toml:3:27: error: Error while parsing decimal integer: '9223372036854775808' is not representable "
                "in 64 bits\n"));
  EXPECT_EQ(check("type = \"cartpole.observer\"", "type = \"cartpole.observer\"\ntorch_threads = 4294967297"),
            one("app.toml:12:17: error: torch_threads must be 1..1024, is 4294967297\n"));
}

TEST(Check, BI1_SizesNeedUnits) {
  EXPECT_EQ(check("[roles.agent]", "[limits]\nmessage = 64\ntensors = \"16GB\"\nsend_queue = \"1B\"\n[roles.agent]"),
            "app.toml:5:11: error: message must be a string with a unit such as \"64MiB\", is the integer 64\n"
            "app.toml:6:11: error: tensors must be a string with a unit (B, KiB, MiB, GiB, TiB) such as \"16GiB\", is "
            "the string \"16GB\"\n"
            "app.toml:7:14: error: send_queue must be >= 1KiB, is 1B\n"
            "error: 3 errors; app.toml is not valid\n");
}

TEST(Check, BI1_RunName) {
  EXPECT_EQ(check("\"cartpole\"", "\"Cart Pole\""),
            one("app.toml:3:8: error: name must be a-z 0-9 -, 1..64 characters, is \"Cart Pole\"\n"));
  EXPECT_EQ(check("\"cartpole\"", "\"\""),
            one("app.toml:3:8: error: name must be a-z 0-9 -, 1..64 characters, is \"\"\n"));
  EXPECT_EQ(
      check("\"cartpole\"", "\"-rf\""),
      one("app.toml:3:8: error: name must begin with a letter or digit, is \"-rf\": commands would take the run's "
          "folder for an option\n"));
}

TEST(Check, BI1_SchemaVersion) {
  EXPECT_EQ(check("caftan = 1\n", "\n"),
            one("app.toml:1:1: error: missing key 'caftan', the version of the schema; add: caftan = 1\n"));
  EXPECT_EQ(check("caftan = 1", "caftan = 2\nwhatever = 3"),
            one("app.toml:1:10: error: caftan must be 1, is 2: this Caftan reads schema 1; schema 2 is read by a later "
                "one\n"));
  EXPECT_EQ(check("caftan = 1", "caftan = 0"), one("app.toml:1:10: error: caftan must be 1, is 0\n"));
  EXPECT_EQ(check("caftan = 1", "caftan = \"1\""),
            one("app.toml:1:10: error: caftan must be the integer 1, is the string \"1\"\n"));
}

TEST(Check, BI1_MissingRequiredKey) {
  EXPECT_EQ(check("type = \"cartpole.observer\"\n", "replicas = 2\n"),
            one("app.toml:10:1: error: missing key 'type' in [roles.observer]\n"));
  EXPECT_EQ(load("caftan = 1\n[roles.trainer]\ntype = \"parameter_server.trainer\"\nuses.server = \"server\"\n"
                 "[roles.server]\ntype = \"parameter_server.server\"\n")
                .diagnostics.render(false),
            one("app.toml:5:1: error: missing key 'model' in [roles.server.config] (parameter_server.server)\n"));
}

TEST(Check, BI1_UnknownRoleType) {
  EXPECT_EQ(check("\"cartpole.agent\"", "\"cartpol.agent\""),
            one("app.toml:5:8: error: no role type 'cartpol.agent' in this program; did you mean 'cartpole.agent'? (it "
                "has: cartpole.agent, cartpole.observer, parameter_server.server, parameter_server.trainer)\n"));
  EXPECT_EQ(check("\"cartpole.agent\"", "\"chess\""),
            one("app.toml:5:8: error: no role type 'chess' in this program (it has: cartpole.agent, cartpole.observer, "
                "parameter_server.server, parameter_server.trainer)\n"));
}

TEST(Check, BI1_RoleNames) {
  EXPECT_EQ(
      check("[roles.observer]\ntype = \"cartpole.observer\"\n",
            "[roles.observer]\ntype = \"cartpole.observer\"\nreplicas = 2\n[roles.Observer]\ntype = "
            "\"cartpole.observer\"\n[roles.observer-1]\ntype = \"cartpole.observer\"\n"),
      "app.toml:13:8: error: a role's name must be a-z 0-9 - _, start with a letter and have 1..64 characters, is "
      "\"Observer\"\n"
      "app.toml:15:1: error: worker 'observer-1' of role 'observer-1' has the name of a worker of role 'observer' "
      "(line 10)\n"
      "error: 2 errors; app.toml is not valid\n");
}

TEST(Check, BI1_UseMissing) {
  EXPECT_EQ(check("observers = \"observer\"\n", ""),
            one("app.toml:4:1: error: role 'agent' (cartpole.agent) needs 'observers' in [roles.agent.uses]; "
                "candidates: observer\n"));
  EXPECT_EQ(
      check("observers = \"observer\"\n[roles.observer]\ntype = \"cartpole.observer\"\n", ""),
      one("app.toml:4:1: error: role 'agent' (cartpole.agent) needs 'observers' in [roles.agent.uses]; no role is "
          "a cartpole.observer\n"));
}

TEST(Check, BI1_UseOfAMissingRole) {
  EXPECT_EQ(check("observers = \"observer\"", "observers = \"obserwer\""),
            one("app.toml:9:13: error: uses.observers: no role 'obserwer'; did you mean 'observer'?\n"));
  EXPECT_EQ(check("observers = \"observer\"", "observers = 3"),
            one("app.toml:9:13: error: uses.observers must be a string, the name of a role, or a list of them, is the "
                "integer 3\n"));
}

TEST(Check, BI1_UseOfAWrongType) {
  EXPECT_EQ(check("observers = \"observer\"",
                  "observers = \"server\"\n[roles.server]\ntype = "
                  "\"parameter_server.server\"\nconfig.model = \"small\""),
            one("app.toml:9:13: error: uses.observers wants a cartpole.observer, role 'server' (line 10) is a "
                "parameter_server.server\n"));
}

TEST(Check, BI1_UseOfAWrongNumberOfReplicas) {
  constexpr std::string_view kTrainers = R"(caftan = 1
[roles.server]
type = "parameter_server.server"
replicas = 2
config.model = "small"
[roles.trainer]
type = "parameter_server.trainer"
replicas = 5
[roles.trainer.uses]
server = "server"
peers = "trainer"
)";
  EXPECT_EQ(load(kTrainers).diagnostics.render(false),
            "app.toml:10:10: error: uses.server wants exactly 1 parameter_server.server, role 'server' (line 2) has 2 "
            "replicas\n"
            "app.toml:11:9: error: uses.peers wants at most 3 parameter_server.trainer, role 'trainer' (line 6) has 4 "
            "replicas beside the asking one\n"
            "error: 2 errors; app.toml is not valid\n");
}

TEST(Check, BI1_NoRoleDrives) {
  EXPECT_EQ(load("caftan = 1\n[roles.observer]\ntype = \"cartpole.observer\"\n").diagnostics.render(false),
            "app.toml: error: no role drives the run; role types that do: cartpole.agent, parameter_server.trainer\n"
            "app.toml:2:1: warning: no role uses 'observer' and it does not drive the run\n"
            "error: 1 error; app.toml is not valid\n");
}

TEST(Check, BI1_ARoleThatIsNotUsedIsAWarning) {
  const LoadedApplication loaded = load(std::string(kGood) + "[roles.idle]\ntype = \"cartpole.observer\"\n");
  EXPECT_TRUE(loaded.diagnostics.ok());
  EXPECT_EQ(loaded.diagnostics.render(false),
            "app.toml:12:1: warning: no role uses 'idle' and it does not drive the run\n");
}

TEST(Check, BI1_NoRoles) {
  EXPECT_EQ(load("caftan = 1\n").diagnostics.render(false),
            one("app.toml: error: no roles; each needs a table [roles.NAME] with a type\n"));
  EXPECT_EQ(load("").diagnostics.render(false),
            "app.toml: error: no roles; each needs a table [roles.NAME] with a type\n"
            "app.toml:1:1: error: missing key 'caftan', the version of the schema; add: caftan = 1\n"
            "error: 2 errors; app.toml is not valid\n");
}

TEST(Check, BI1_AtMostTwentyErrorsAreShown) {
  std::string extra = "[output]\n";
  std::string expected;
  for (int i = 0; i < 23; ++i) {
    extra += "key_of_no_use_" + std::to_string(i) + " = 1\n";
    if (i >= 20) continue;
    expected += "app.toml:" + std::to_string(13 + i) + ":1: error: unknown key 'key_of_no_use_" + std::to_string(i) +
                "' in [output]\n";
  }
  EXPECT_EQ(load(std::string(kGood) + extra).diagnostics.render(false),
            expected + "error: 23 errors, 3 not shown; app.toml is not valid\n");
}

TEST(Check, BI1_OverridesReplaceValuesAndAreJudgedLikeThem) {
  const LoadedApplication loaded = load(kGood, {"roles.observer.replicas=4", "run.name=other", "run.wall=5min",
                                                "roles.agent.config.gamma=1", "run.seed=1", "run.seed=7"});
  ASSERT_EQ(loaded.diagnostics.render(false), "");
  EXPECT_EQ(loaded.application.find_role("observer")->keys.replicas, 4);
  EXPECT_EQ(loaded.application.run.name, "other");
  EXPECT_EQ(loaded.application.run.wall, std::chrono::minutes(5));
  EXPECT_EQ(loaded.application.run.seed, 7);
  EXPECT_EQ(load(kGood, {"run.seed=-1", "seed", "run.seed.x=1", "=3", "run..x=1", "run.name=a b",
                         "roles.agent.uses.observers=agent"})
                .diagnostics.render(false),
            "command line: error: run.seed=-1: seed must be 0..2^63-1, is -1\n"
            "command line: error: seed: an override is written key=value\n"
            "command line: error: run.seed.x=1: 'seed' is the integer -1, not a table\n"
            "command line: error: =3: an override is written key=value\n"
            "command line: error: run..x=1: a part of the key is empty\n"
            "command line: error: run.name=a b: what follows '=' is no TOML value; put quotes around a string\n"
            "command line: error: roles.agent.uses.observers=agent: uses.observers wants a cartpole.observer, role "
            "'agent' (line 4) is a cartpole.agent\n"
            "error: 7 errors; the command line is not valid\n");
}

TEST(Check, BI1_ARolesNameDoesNotBeginWithADigit) {
  EXPECT_EQ(check("[roles.observer]\n", "[roles.observer]\ntype = \"cartpole.observer\"\n[roles.1st]\n"),
            one("app.toml:12:8: error: a role's name must be a-z 0-9 - _, start with a letter and have 1..64 "
                "characters, is \"1st\"\n"));
}

TEST(Check, BI1_BracketsInsideOfStringsAreNoLevels) {
  const std::string brackets(600, '[');
  EXPECT_EQ(check("\"cartpole\"", "\"a\\\"" + brackets + "\""),
            one("app.toml:3:8: error: name must be a-z 0-9 -, 1..64 characters, is \"a\\\"" + brackets + "\"\n"));
}

TEST(Check, BI1_AFolderForRunsHasNoControlCharacters) {
  for (const std::string dir : {"b\\u0000c", "b\\nc", "b\\u001B[2J", "b\\u007Fc"}) {
    EXPECT_EQ(check("[roles.agent]", "[output]\ndir = \"" + dir + "\"\n[roles.agent]"),
              one("app.toml:5:7: error: dir must be a path without control characters, is \"" + dir + "\"\n"));
  }
}

TEST(Check, TextsFromTheFileCannotMoveTheCursor) {
  EXPECT_EQ(check("\"cartpole\"", "\"\\u001b[2J\""),
            one("app.toml:3:8: error: name must be a-z 0-9 -, 1..64 characters, is \"\\u001B[2J\"\n"));
  EXPECT_EQ(check("name =", "\"na\\u001bme\" ="),
            one("app.toml:3:1: error: unknown key 'na?me' in [run]; did you mean 'name'?\n"));
}

TEST(Check, ValuesAndOrderArriveInTheApplication) {
  const LoadedApplication loaded = load(kGood);
  const Application& application = loaded.application;
  ASSERT_EQ(application.roles.size(), 2U);
  EXPECT_EQ(application.roles[0].name, "agent");
  EXPECT_EQ(application.roles[0].worker_name(0), "agent");
  EXPECT_EQ(application.roles[0].uses.front().roles, std::vector<std::string>{"observer"});
  EXPECT_EQ(std::any_cast<const cartpole::AgentConfig&>(application.roles[0].config).gamma, 0.99);
  EXPECT_TRUE(application.roles[0].drives);
  EXPECT_EQ(application.limits.message.bytes, 64 << 20);
  EXPECT_EQ(load("caftan = 1\n").application.run.name, "app");
}

}  // namespace
}  // namespace caftan::app::testing::check_test

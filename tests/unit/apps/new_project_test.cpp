// What `caftan new` writes, renames and refuses.
#include "new_project/new_project.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"

namespace caftan::new_project::new_project_test {
namespace {

using test::Folder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Result<Wish> parsed(const std::vector<std::string>& words) { return parse(words); }

/// A guide with one program of each form, and a folder for projects.
class NewProject : public ::testing::Test {
 protected:
  NewProject() {
    for (const char* const name : {"guide/agent", "guide/calls", "to"})
      std::filesystem::create_directories(folder_ / name);
    folder_.write(
        "guide/agent/CMakeLists.txt",
        "project(agent CXX)\nadd_executable(agent main.cpp)\n# an agent_x\nadd_test(NAME agent COMMAND agent)\n");
    folder_.write("guide/agent/main.cpp",
                  "Program program(\"agent\");\nprogram.role<Agent>(\"agent\");  // agent.toml\n");
    folder_.write("guide/agent/agent.toml", "type = \"agent\"  # run agent.toml\n");
    folder_.write("guide/calls/CMakeLists.txt", "project(calls CXX)\n");
    folder_.write("guide/calls/main.cpp", "int main() {}\n");
  }
  Result<std::filesystem::path> made(const std::string& name, const std::string& from) const {
    return write({.name = name, .from = from, .into = folder_ / "to"}, place());
  }
  Place place() const { return {.guide = folder_ / "guide", .prefix = "/opt/caf tan"}; }

  Folder folder_;
};

TEST_F(NewProject, HasTheNameWhereTheProgramHadItsOwn) {
  EXPECT_EQ(made("my-game", "agent").value(), folder_ / "to/my-game");
  EXPECT_EQ(
      folder_.read("to/my-game/CMakeLists.txt"),
      "project(my-game CXX)\nadd_executable(my-game main.cpp)\n# an agent_x\nadd_test(NAME my-game COMMAND my-game)\n");
  EXPECT_EQ(folder_.read("to/my-game/main.cpp"),
            "Program program(\"my-game\");\nprogram.role<Agent>(\"agent\");  // my-game.toml\n");
  EXPECT_EQ(folder_.read("to/my-game/my-game.toml"), "type = \"agent\"  # run my-game.toml\n");
  EXPECT_EQ(folder_.read("to/my-game/.gitignore"), "/build/\n/runs/\n");
  EXPECT_THAT(folder_.read("to/my-game/README.md"), HasSubstr("    ./build/my-game run my-game.toml\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/my-game/agent.toml"));
}

TEST_F(NewProject, GetsATestWhereTheProgramHasNone) {
  ASSERT_TRUE(made("x", "calls"));
  EXPECT_EQ(folder_.read("to/x/CMakeLists.txt"), "project(x CXX)\n\nenable_testing()\nadd_test(NAME x COMMAND x)\n");
  EXPECT_THAT(folder_.read("to/x/README.md"), HasSubstr("    ./build/x\n"));
}

TEST_F(NewProject, OverwritesNothing) {
  folder_.write("to/x", "mine");
  EXPECT_THAT(made("x", "calls").error().text(), HasSubstr("to/x exists, and nothing is overwritten"));
  EXPECT_EQ(folder_.read("to/x"), "mine");
  ASSERT_TRUE(made("y", "calls"));
  folder_.write("to/y/main.cpp", "mine");
  EXPECT_FALSE(made("y", "calls"));
  EXPECT_EQ(folder_.read("to/y/main.cpp"), "mine");
}

TEST_F(NewProject, NamesTheProgramsThatThereAre) {
  EXPECT_EQ(made("x", "training").error().text(),
            "--from: the guide has no program 'training'; new makes projects of: calls, agent");
  EXPECT_FALSE(made("x", "../guide/calls"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/x"));
  EXPECT_THAT(write({.name = "x", .from = "calls", .into = folder_ / "none"}, place()).error().text(),
              HasSubstr("none is no folder"));
}

TEST_F(NewProject, SaysWhereAProgramIsThatItDoesNotStartFrom) {
  std::filesystem::create_directories(folder_ / "guide/batch");
  folder_.write("guide/batch/main.cpp", "int main() {}\n");
  EXPECT_EQ(made("x", "batch").error().text(),
            "--from: new makes no project of 'batch', only of: calls, agent; the program itself is in " +
                (folder_ / "guide/batch") + ": copy this folder, its CMakeLists.txt builds it with the package");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/x"));
}

TEST_F(NewProject, IsBuiltWithThePackageOfTheCommandOrOfTheCheckout) {
  std::filesystem::create_directories(folder_ / "package/share/caftan/guide");
  const Place installed = find_caftan(folder_ / "package/bin/caftan", "/src", "/src/build");
  EXPECT_EQ(installed.prefix, folder_ / "package");
  EXPECT_EQ(installed.guide, folder_ / "package/share/caftan/guide");
  EXPECT_EQ(installed.install, "");
  const Place checkout = find_caftan("/src/build/bin/caftan", "/src", "/src/build");
  EXPECT_EQ(checkout.guide, "/src/tests/guide");
  EXPECT_EQ(checkout.install, "cmake --build /src/build && cmake --install /src/build --prefix /src/build/package");
  EXPECT_THAT(steps({.name = "x", .from = "calls"}, place()),
              ElementsAre("cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH='/opt/caf tan'",
                          "cmake --build build", "./build/x", "ctest --test-dir build"));
}

TEST(NewCommand, ReadsItsOptions) {
  const Wish plain = parsed({"my_game-2"}).value();
  EXPECT_EQ(plain.from, "counting");
  EXPECT_EQ(plain.into, ".");
  const Wish wish = parsed({"--from=agent", "a", "--into", "b c"}).value();
  EXPECT_EQ(wish.name, "a");
  EXPECT_EQ(wish.from, "agent");
  EXPECT_EQ(wish.into, "b c");
}

TEST(NewCommand, RefusesWhatIsNoNameOrOption) {
  for (const char* const name : {"", "A", "a b", "../a", "1a", "_a", "a.b"}) {
    EXPECT_THAT(parsed({name}).error().text(), HasSubstr("must be of a-z 0-9 - _"));
  }
  EXPECT_FALSE(parsed({std::string(65, 'a')}));
  EXPECT_THAT(parsed({"test"}).error().text(), HasSubstr("CMake keeps"));
  EXPECT_THAT(parsed({}).error().text(), HasSubstr("the NAME is missing; usage: caftan new NAME"));
  EXPECT_THAT(parsed({"a", "b"}).error().text(), HasSubstr("one NAME only"));
  EXPECT_THAT(parsed({"a", "--form", "b"}).error().text(), HasSubstr("no option '--form'"));
  EXPECT_THAT(parsed({"a", "--from"}).error().text(), HasSubstr("--from needs a value"));
  EXPECT_THAT(parsed({"a", "--into="}).error().text(), HasSubstr("--into needs a value"));
}

TEST(NewCommand, TheProgramsOfTheGuideMakeProjects) {
  const Folder folder;
  const Place place{.guide = CAFTAN_GUIDE, .prefix = "/opt"};
  for (const std::string from : {"counting", "training", "agent", "reinforce", "beam", "simulation"}) {
    EXPECT_THAT(kUsage, HasSubstr(from));
    const std::string name = "my-" + from;
    const auto written = write({.name = name, .from = from, .into = folder.path()}, place);
    ASSERT_TRUE(written) << written.error().text();
    EXPECT_THAT(folder.read(name + "/main.cpp"), HasSubstr("caftan::Program program(\"" + name + "\");"));
    EXPECT_THAT(folder.read(name + "/CMakeLists.txt"), Not(HasSubstr("(" + from)));
    EXPECT_TRUE(std::filesystem::exists(folder / (name + "/" + name + ".toml")));
  }
  ASSERT_TRUE(write({.name = "mine", .from = "calls", .into = folder.path()}, place));
}

}  // namespace
}  // namespace caftan::new_project::new_project_test

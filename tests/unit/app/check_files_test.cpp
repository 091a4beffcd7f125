// Files that cannot be read at all (BI-1).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "as_nobody.hpp"
#include "caftan/app/internal/resolved.hpp"
#include "caftan/base/settings_io.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::check_files_test {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "caftan_files_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = folder_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  static std::string check(const std::string& file) {
    return load_application(file, {}, make_types(), {.mode = LoadMode::check, .cores = 64}).diagnostics.render(true);
  }

  std::filesystem::path folder_;
};

TEST_F(Files, BI1_MissingFile) {
  const std::string file = (folder_ / "no.toml").string();
  EXPECT_EQ(check(file),
            file + ": error: cannot be read: No such file or directory\nerror: 1 error; " + file + " is not valid\n");
}

TEST_F(Files, BI1_Directory) {
  EXPECT_EQ(check(folder_.string()), folder_.string() + ": error: is a directory, not a file\nerror: 1 error; " +
                                         folder_.string() + " is not valid\n");
}

TEST_F(Files, BI1_APipeIsRefusedAndNotWaitedFor) {
  const std::string pipe = (folder_ / "pipe.toml").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(check(pipe), pipe + ": error: is no regular file\nerror: 1 error; " + pipe + " is not valid\n");
}

TEST_F(Files, BI1_Unreadable) {
  const std::string file = write("secret.toml", "caftan = 1\n");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const test::AsNobody nobody;
  if (!nobody.works()) GTEST_SKIP() << "root may read every file, and may not become another user here";
  EXPECT_EQ(check(file),
            file + ": error: cannot be read: Permission denied\nerror: 1 error; " + file + " is not valid\n");
}

TEST_F(Files, BI1_UnreadableForEveryUser) {
  std::filesystem::create_symlink("loop.toml", folder_ / "loop.toml");
  const std::string loop = (folder_ / "loop.toml").string();
  EXPECT_EQ(check(loop), loop + ": error: cannot be read: Too many levels of symbolic links\nerror: 1 error; " + loop +
                             " is not valid\n");
  const std::string below = write("file", "") + "/app.toml";
  EXPECT_EQ(check(below),
            below + ": error: cannot be read: Not a directory\nerror: 1 error; " + below + " is not valid\n");
}

TEST_F(Files, BI1_LargerThanOneMiB) {
  const std::string file = write("large.toml", "caftan = 1\n" + std::string(kMaxFileBytes, '#'));
  EXPECT_EQ(check(file), file + ": error: is larger than 1 MiB\nerror: 1 error; " + file + " is not valid\n");
}

TEST_F(Files, AFileOfExactlyOneMiBIsRead) {
  std::string text = "caftan = 2\n";
  text.resize(kMaxFileBytes, '#');
  EXPECT_EQ(load_application(write("full.toml", text), {}, make_types(), {}).diagnostics.entries().front().text,
            "caftan must be 1, is 2: this Caftan reads schema 1; schema 2 is read by a later one");
}

TEST_F(Files, BI1_NothingIsCreated) {
  const std::string file = write("app.toml", "caftan = 1\n[output]\ndir = \"new\"\n");
  check(file);
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++entries;
  EXPECT_EQ(entries, 1);
}

TEST_F(Files, APathOfARoleIsWhatItsLinksMeanWhenTheFileIsRead) {
  std::filesystem::create_directories(folder_ / "runs/a-1");
  std::filesystem::create_directory_symlink("a-1", folder_ / "runs/latest");
  const auto data = [&](const std::string& path) {
    const RoleTypes types = make_types();
    const std::string file = write("app.toml",
                                   "caftan = 1\n[roles.trainer]\ntype = \"parameter_server.trainer\"\n"
                                   "uses.server = \"server\"\n[roles.server]\ntype = \"parameter_server.server\"\n"
                                   "config.model = \"m\"\n");
    const std::vector<std::string> overrides{"roles.server.config.data=" + path};
    const LoadedApplication loaded = load_application(file, overrides, types, {.mode = LoadMode::check, .cores = 64});
    EXPECT_TRUE(loaded.diagnostics.ok());
    const std::string resolved = resolved_text(loaded.application, types);
    const std::size_t at = resolved.find("data = ") + 7;
    return resolved.substr(at, resolved.find('\n', at) - at);
  };
  const std::string real = std::filesystem::canonical(folder_).string();
  EXPECT_EQ(data("runs/latest"), quote_toml(real + "/runs/a-1"));
  EXPECT_EQ(data(folder_.string() + "/runs/latest/"), quote_toml(real + "/runs/a-1"));
  EXPECT_EQ(data("runs/none"), quote_toml((folder_ / "runs/none").string()));
}

TEST_F(Files, TheRunsNameComesFromTheFilesName) {
  const auto name = [&](const std::string& file) {
    return load_application(write(file, "caftan = 1\n"), {}, make_types(), {}).application.run.name;
  };
  EXPECT_EQ(name("My_App.test.toml"), "my-app-test");
  EXPECT_EQ(name("cartpole_4_observers.toml"), "cartpole-4-observers");
  EXPECT_EQ(name("\u00e4.toml"), "run") << "a folder that begins with a dash would be an option to rm and cd";
  EXPECT_EQ(name("_\u00e4_b_.toml"), "b-");
}

}  // namespace
}  // namespace caftan::app::testing::check_files_test

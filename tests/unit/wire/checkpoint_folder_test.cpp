// The checkpoints of a folder are found by their names, in the order of their steps, whatever else lies there.
#include "caftan/wire/checkpoint_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"

namespace caftan::wire::checkpoint_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool is_file(const fs::path& path) { return fs::is_regular_file(path); }

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : find_checkpoints(folder, is_file)) names.push_back(path.filename().string());
  return names;
}

TEST(CheckpointFolder, NamesGrowWithTheStep) {
  EXPECT_EQ(checkpoint_name(0), "step-000000");
  EXPECT_EQ(checkpoint_name(600), "step-000600");
  EXPECT_EQ(checkpoint_name(1234567), "step-1234567");
}

TEST(CheckpointFolder, TheHighestStepIsLast) {
  const test::Folder folder;
  for (const std::int64_t step : {1000000, 30, 999999, 7}) folder.write(checkpoint_name(step), "");
  folder.write("step-9", "");
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("step-000007", "step-9", "step-000030", "step-999999", "step-1000000"));
}

TEST(CheckpointFolder, OtherNamesAndWhatIsNoWholeCheckpointAreLeftOut) {
  const test::Folder folder;
  for (const char* const name : {"step-", "step-12x", "step--1", "steps-000001", "step-1234567890123456789", "more"}) {
    folder.write(name, "");
  }
  fs::create_directory(folder.path() / "step-000002");
  fs::create_symlink(folder.path() / "nowhere", folder.path() / "step-000003");
  folder.write("step-000001", "");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-000001"));
}

TEST(CheckpointFolder, AFolderThatIsNotThereHasNone) {
  const test::Folder folder;
  EXPECT_THAT(names_in(folder.path() / "nowhere"), IsEmpty());
}

}  // namespace
}  // namespace caftan::wire::checkpoint_folder_test

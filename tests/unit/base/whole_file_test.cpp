#include "caftan/base/whole_file.hpp"

#include <gtest/gtest.h>

#include "folder.hpp"

namespace caftan::base::whole_file_test {
namespace {

TEST(WholeFile, HasAllBytesAlsoOfAnEmptyFile) {
  const test::Folder folder;
  const std::string bytes = std::string(40'000, 'a') + std::string("\0\r\n", 3);
  EXPECT_EQ(read_whole_file(folder.write("a", bytes)).value(), bytes);
  EXPECT_EQ(read_whole_file(folder.write("b", "")).value(), "");
}

TEST(WholeFile, NamesTheFileThatCannotBeRead) {
  const test::Folder folder;
  const Error missing = read_whole_file(folder / "none").error();
  EXPECT_EQ(missing.code(), Errc::io_error);
  EXPECT_EQ(missing.text(), folder / "none" + ": No such file or directory");
  EXPECT_EQ(read_whole_file(folder.path()).error().code(), Errc::io_error) << "a folder has no bytes";
}

}  // namespace
}  // namespace caftan::base::whole_file_test

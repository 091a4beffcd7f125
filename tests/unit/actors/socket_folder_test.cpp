// RN-10: folders of sockets end with their launcher, or with the next start.
#include "launch/socket_folder.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "folder.hpp"

namespace caftan::actors::socket_folder_test {
namespace {

/// Leaves a socket behind, as a process that was killed does.
void bind_socket(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
}

TEST(SocketFolderTest, K8_RN10_GoesWithItsSockets) {
  const test::Folder base;
  std::filesystem::path path;
  {
    const SocketFolder folder = SocketFolder::make_in(base.path()).value();
    path = folder.path();
    bind_socket(path / "0");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SocketFolderTest, K8_RN10_WhatCannotBeRemovedYetIsTriedAgain) {
  const test::Folder base;
  SocketFolder folder = SocketFolder::make_in(base.path()).value();
  const std::filesystem::path path = folder.path();
  // Stands for a socket that a worker makes while the others are removed.
  std::filesystem::create_directory(path / "in the way");
  EXPECT_FALSE(folder.remove());
  std::filesystem::remove(path / "in the way");
  EXPECT_TRUE(folder.remove());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SocketFolderTest, K8_RN10_AStartRemovesThoseOfLaunchersThatHaveEnded) {
  const test::Folder base;
  const SocketFolder living = SocketFolder::make_in(base.path()).value();
  bind_socket(living.path() / "0");
  const std::filesystem::path dead = base.path() / "caftan-sockets-killed";
  std::filesystem::create_directory(dead);
  bind_socket(dead / "0");
  const std::filesystem::path foreign = base.path() / "caftan-sockets-notes";
  std::filesystem::create_directory(foreign);
  std::ofstream(foreign / "file") << "not a socket";
  const SocketFolder mine = SocketFolder::make_in(base.path()).value();
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(living.path() / "0"));
  EXPECT_TRUE(std::filesystem::exists(mine.path()));
  EXPECT_TRUE(std::filesystem::exists(foreign / "file"));
}

}  // namespace
}  // namespace caftan::actors::socket_folder_test

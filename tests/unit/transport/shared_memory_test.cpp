// Memory that a peer sends is taken only if it is what it has to be: docs/protocols/shm.md, DP-2, DP-6 and DP-8.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "caftan/transport/internal/shared_memory_budget.hpp"
#include "channels/shm/shared_memory.hpp"

namespace caftan::transport::shared_memory_test {
namespace {

constexpr std::size_t kSize = 16384;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Returns a memfd of `size` bytes with these seals.
int make_file(std::size_t size, int seals) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

Error refusal_of(int fd) {
  const auto taken = SharedMemory::take(fd, kSize, kSize);
  EXPECT_FALSE(taken);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "the descriptor that was refused is still open";
  return taken ? Error() : taken.error();
}

TEST(SharedMemory, BothSidesSeeTheSameBytes) {
  const auto made = SharedMemory::make(kSize);
  ASSERT_TRUE(made) << made.error().message();
  const auto taken = SharedMemory::take(::dup(made->fd()), kSize, kSize);
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_NE(made->data(), taken->data());
  EXPECT_EQ(taken->size(), kSize);
  std::memcpy(made->data() + kSize - 5, "there", 5);
  EXPECT_EQ(std::memcmp(taken->data() + kSize - 5, "there", 5), 0);
  EXPECT_TRUE(made->is_same(taken->fd()));
}

TEST(SharedMemory, DP2_NeitherSideCanChangeItsSizeOrItsSeals) {
  const auto made = SharedMemory::make(kSize);
  ASSERT_TRUE(made);
  EXPECT_NE(::ftruncate(made->fd(), kSize / 2), 0);
  EXPECT_NE(::ftruncate(made->fd(), kSize * 2), 0);
  EXPECT_NE(::fcntl(made->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(SharedMemory, DP8_AllOfItIsThereFromTheBeginning) {
  const auto made = SharedMemory::make(kSize);
  ASSERT_TRUE(made);
  struct stat status {};
  ASSERT_EQ(::fstat(made->fd(), &status), 0);
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, kSize);
}

TEST(SharedMemory, DP8_MemoryThatAPeerLeftEmptyIsAllocatedWhenItIsTaken) {
  const auto taken = SharedMemory::take(make_file(kSize, kAllSeals), kSize, kSize);
  ASSERT_TRUE(taken) << taken.error().message();
  struct stat status {};
  ASSERT_EQ(::fstat(taken->fd(), &status), 0);
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, kSize);
}

TEST(SharedMemory, DP2_AFileThatIsNotSealedIsRefused) {
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL}) {
    EXPECT_EQ(refusal_of(make_file(kSize, seals)).code(), Errc::malformed_payload) << seals;
  }
}

TEST(SharedMemory, DP2_AFileOfAnotherSizeIsRefused) {
  EXPECT_EQ(refusal_of(make_file(kSize - 1, kAllSeals)).code(), Errc::malformed_payload);
  EXPECT_EQ(refusal_of(make_file(kSize + 1, kAllSeals)).code(), Errc::malformed_payload);
  EXPECT_EQ(refusal_of(make_file(0, kAllSeals)).code(), Errc::malformed_payload);
}

TEST(SharedMemory, DP2_AFileThatCannotBeWrittenIsRefused) {
  EXPECT_EQ(refusal_of(make_file(kSize, kAllSeals | F_SEAL_WRITE)).code(), Errc::malformed_payload);
}

TEST(SharedMemory, DP2_AnotherKindOfDescriptorIsRefused) {
  EXPECT_EQ(refusal_of(::eventfd(0, 0)).code(), Errc::malformed_payload);
  EXPECT_EQ(refusal_of(::open("/dev/zero", O_RDWR | O_CLOEXEC)).code(), Errc::malformed_payload);
  char name[] = "/tmp/caftan-shared-XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  ::unlink(name);
  EXPECT_EQ(::ftruncate(file, kSize), 0);
  const Error error = refusal_of(file);
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_NE(error.text().find("shared memory of the peer"), std::string::npos) << error.text();
}

TEST(SharedMemory, DP2_AFileOfHugePagesIsRefused) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
  if (fd < 0) GTEST_SKIP() << "the kernel has no files of huge pages: " << std::strerror(errno);
  struct stat status {};
  ASSERT_EQ(::fstat(fd, &status), 0);
  const auto size = static_cast<std::size_t>(status.st_blksize);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
  ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, kAllSeals), 0);
  const auto taken = SharedMemory::take(fd, size, size);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Errc::malformed_payload);
  EXPECT_NE(taken.error().text().find("huge pages"), std::string::npos) << taken.error().text();
}

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().find("caftan-ring") != std::string::npos) names.insert(entry.path().string());
  }
  return names;
}

TEST(SharedMemory, DP6_AfterAKillNothingIsLeft) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto made = SharedMemory::make(kSize);
    ::raise(made ? SIGKILL : SIGTERM);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(WTERMSIG(status), SIGKILL) << "the child made no memory";
  for (const char* folder : {"/dev/shm", "/tmp"}) EXPECT_EQ(names_in(folder), std::set<std::string>()) << folder;
}

TEST(SharedMemory, WithoutADescriptorThereIsAnErrorThatSaysSo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto made = SharedMemory::make(kSize);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::limit_exceeded);
  EXPECT_NE(made.error().text().find("memfd_create"), std::string::npos) << made.error().text();
}

TEST(SharedMemoryBudget, DP8_SharesAreTakenUpToTheLimitAndGivenBack) {
  SharedMemoryBudget budget;
  auto first = budget.take(60, 100);
  ASSERT_TRUE(first);
  EXPECT_FALSE(budget.take(41, 100));
  EXPECT_FALSE(budget.take(101, 100));
  {
    const auto second = budget.take(40, 100);
    ASSERT_TRUE(second);
    EXPECT_EQ(budget.used(), 100U);
  }
  EXPECT_EQ(budget.used(), 60U);
  const SharedMemoryBudget::Share moved = *std::move(first);
  first.reset();
  EXPECT_EQ(budget.used(), 60U) << "the share that was moved from gave something back";
}

}  // namespace
}  // namespace caftan::transport::shared_memory_test

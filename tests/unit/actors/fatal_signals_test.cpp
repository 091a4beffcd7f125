// What a fatal signal leaves behind.
#include "launch/fatal_signals.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "folder.hpp"

namespace caftan::actors::fatal_signals_test {
namespace {

/// Aborts while the reserve's descriptor is the only one that can be freed: it stands for the last room on a disk.
[[noreturn]] void abort_with_reserve_only(const std::string& summary) {
  const rlimit few{64, 64};
  ::setrlimit(RLIMIT_NOFILE, &few);
  int last = -1;
  for (int next = 0; next >= 0; next = ::open("/dev/null", O_RDONLY)) last = next;
  const FatalSignals fatal([](int) { return FatalSignals::Words{.line = "killed\n", .summary = "{", .rest = "}"}; },
                           summary, false, last);
  std::abort();
}

TEST(FatalSignals, RN11_TheSummaryHasTheRoomThatWasReservedForIt) {
  const test::Folder folder;
  const std::string summary = folder / "summary.json";
  EXPECT_EXIT(abort_with_reserve_only(summary), ::testing::KilledBySignal(SIGABRT), "killed");
  const std::string written = folder.read("summary.json");
  EXPECT_TRUE(written.starts_with("{") && written.ends_with("}")) << written;
}

}  // namespace
}  // namespace caftan::actors::fatal_signals_test

// The executor of a run.
#include "worker/runners.hpp"

#include <gtest/gtest.h>

#include <future>
#include <list>

namespace caftan::actors::runners_test {
namespace {

TEST(Runners, T8_RunOfEachRoleMayWaitBesideAsManyCallsAsForOneWorker) {
  constexpr std::size_t kWorkers = 20;
  const auto executor = make_runners(kWorkers);
  std::promise<std::size_t> granted;
  executor->post([&] {
    std::list<base::WaitPermit> permits;
    do permits.emplace_back();
    while (permits.back());
    granted.set_value(permits.size() - 1);
  });
  EXPECT_EQ(granted.get_future().get(), kWorkers + 127);  // one thread stays free
}

}  // namespace
}  // namespace caftan::actors::runners_test

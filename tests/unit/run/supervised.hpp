/// A run under supervision, without processes: what the tests of Supervisor begin with.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "caftan/run/internal/supervisor.hpp"

namespace caftan::run {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Action = Supervisor::Action;
using Phase = Supervisor::Phase;

inline constexpr std::size_t kAgent = 0;
inline constexpr std::size_t kFirst = 1;
inline constexpr std::size_t kSecond = 2;
inline const Death kKilled{true, 9};
inline const Death kExited{false, 0};

/// An agent that drives and two observers, each a process.
class Supervised : public ::testing::Test {
 protected:
  Supervisor make(std::optional<base::Duration> wall = {}, base::Duration heartbeat = {}) const {
    return Supervisor({.workers = {{.name = "agent", .process = 0, .drives = true},
                                   {.name = "observer-0", .role = "observer", .process = 1},
                                   {.name = "observer-1", .role = "observer", .process = 2}},
                       .start_timeout = 10s,
                       .stop_timeout = 2s,
                       .heartbeat = heartbeat,
                       .wall = wall},
                      now_);
  }
  Supervisor make_running(std::optional<base::Duration> wall = {}, base::Duration heartbeat = {}) {
    Supervisor supervisor = make(wall, heartbeat);
    for (const std::size_t worker : {kAgent, kFirst, kSecond}) {
      supervisor.ready(worker);
      supervisor.made(worker);
    }
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    EXPECT_EQ(supervisor.phase(), Phase::running);
    return supervisor;
  }
  /// All workers say bye and their processes end.
  void all_leave(Supervisor& supervisor) {
    for (int process = 0; process < 3; ++process) {
      supervisor.left(static_cast<std::size_t>(process));
      supervisor.died(process, kExited, "", now_);
    }
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    EXPECT_TRUE(supervisor.is_over());
  }
  base::TimePoint now_ = base::ManualClock().now();
};

}  // namespace caftan::run

/// The keys batch.* of a role that answers several calls with one run.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace caftan::batch_settings {

struct BatchConfig {
  bool enabled = true;
  std::optional<std::int64_t> max_size{};  ///< unset: one request of each observer
  std::chrono::nanoseconds max_wait = std::chrono::milliseconds(10);

  static void settings(auto& s, BatchConfig& c) {
    s("enabled", c.enabled, "one run answers several observers; false = each request at once, alone");
    s("max_size", c.max_size, "a run begins when so many requests wait")
        .range(1, 65536)
        .unit("requests")
        .default_text("the number of observers");
    s("max_wait", c.max_wait, "or when the first request has waited so long, for an observer may be slow or gone")
        .range(std::chrono::nanoseconds(0), std::chrono::hours(1));
  }
};

}  // namespace caftan::batch_settings

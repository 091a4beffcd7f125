/// `PartitionWatch`: what looks at each event of a partition before it is handled: the log of events, and the point at
/// which a debugger stops.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "caftan/actors/simulation.hpp"
#include "caftan/base/error.hpp"
#include "caftan/sim/internal/kernel.hpp"

namespace caftan::actors {

/// Threads: one at a time.
class PartitionWatch final : public sim::EventWatch {
 public:
  /// @param log  takes a line when a debugger stops here, or would
  PartitionWatch(const sim::OpenRequest& request, std::function<void(const std::string&)> log);

  /// Returns whether there is anything to look for: else no kernel needs a watch.
  static bool is_wanted(const sim::OpenRequest& request);
  /// Begins the file of events. Errors: io_error.
  Result<void> open(const sim::OpenRequest& request);
  /// Sets the names of event types. @param layout  outlives the watch
  void look_at(const sim::Layout& layout) noexcept { layout_ = &layout; }
  void before(const sim::Event& event, wire::ByteView payload) override;
  /// Writes what is kept in memory. Errors: io_error (also of earlier lines).
  Result<void> flush();

 private:
  void write(const sim::Event& event, wire::ByteView payload);
  void stop(const sim::Event& event);

  const sim::Time from_;
  const sim::Time until_;
  const std::function<void(const std::string&)> log_;
  const std::int64_t break_lp_;
  sim::Time break_time_;
  const sim::Layout* layout_ = nullptr;
  std::filesystem::path file_;
  std::ofstream stream_;
  bool writes_ = false;
};

/// Returns the name of a partition's log of events.
std::string event_log_name(std::uint32_t index);

}  // namespace caftan::actors

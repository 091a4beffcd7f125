#include "sim/partition_watch.hpp"

#include <signal.h>

#include <string_view>

#include "caftan/base/fnv1a.hpp"
#include "caftan/sim/internal/layout.hpp"

namespace caftan::actors {
namespace {

/// Returns whether a debugger traces this process.
bool is_traced() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
  }
  return false;
}

}  // namespace

std::string event_log_name(std::uint32_t index) { return "events-" + std::to_string(index) + ".jsonl"; }

PartitionWatch::PartitionWatch(const sim::OpenRequest& request, std::function<void(const std::string&)> log)
    : from_(request.log_from),
      until_(request.log_until),
      log_(std::move(log)),
      break_lp_(request.break_lp),
      break_time_(request.break_time) {}

bool PartitionWatch::is_wanted(const sim::OpenRequest& request) {
  return (request.logs_events && !request.folder.empty()) || request.break_time != sim::kNever;
}

Result<void> PartitionWatch::open(const sim::OpenRequest& request) {
  writes_ = request.logs_events && !request.folder.empty();
  if (!writes_) return {};
  file_ = std::filesystem::path(request.folder) / event_log_name(request.index);
  stream_.open(file_, std::ios::binary | std::ios::trunc);
  return flush();
}

Result<void> PartitionWatch::flush() {
  if (!writes_ || stream_.flush()) return {};
  return Error(Errc::io_error, file_.string() + ": the log of events cannot be written");
}

void PartitionWatch::before(const sim::Event& event, wire::ByteView payload) {
  if (event.time >= break_time_.ticks && (break_lp_ < 0 || event.to == static_cast<std::uint64_t>(break_lp_)))
    stop(event);
  if (writes_ && event.time >= from_.ticks && event.time < until_.ticks) write(event, payload);
}

void PartitionWatch::write(const sim::Event& event, wire::ByteView payload) {
  const std::string_view bytes(reinterpret_cast<const char*>(payload.data()), payload.size());
  stream_ << "{\"time\":" << event.time << ",\"priority\":" << static_cast<int>(event.priority) - 128
          << ",\"source\":" << event.source << ",\"sequence\":" << event.sequence << ",\"lp\":" << event.to
          << ",\"event\":\"" << layout_->event_types()[event.type].name << "\",\"payload\":" << base::fnv1a(bytes)
          << "}\n";
}

void PartitionWatch::stop(const sim::Event& event) {
  break_time_ = sim::kNever;
  const std::string where = "break_at: " + layout_->name_of(event.to) + " is about to handle " +
                            std::string(layout_->event_types()[event.type].name) + " at " +
                            to_string(sim::Time{event.time});
  if (!is_traced()) return log_(where + "; no debugger is attached, so the run goes on");
  log_(where);
  // Threads of the executor block signals, and a blocked one reaches no debugger.
  sigset_t trap;
  sigset_t before;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  pthread_sigmask(SIG_UNBLOCK, &trap, &before);
  ::raise(SIGTRAP);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace caftan::actors

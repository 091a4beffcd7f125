#include "role/run_reporter.hpp"

#include <utility>

#include "caftan/wire/internal/shortened.hpp"

namespace caftan::actors {
namespace {

constexpr Duration kCollect = std::chrono::milliseconds(50);
constexpr std::size_t kMostValues = 256;  // with the longest text an event fits into one packet
constexpr std::size_t kLongestText = 32768;
constexpr std::size_t kLongestName = 128;

}  // namespace

void RunReporter::metric(std::string_view name, double value) {
  const std::lock_guard lock(mutex_);
  values_.emplace_back(name.substr(0, kLongestName), value);
  if (values_.size() >= kMostValues) return flush_locked();
  schedule_locked();
}

void RunReporter::progress(std::int64_t done, std::int64_t total, std::string text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  const std::lock_guard lock(mutex_);
  progress_.emplace(RunEvent{
      .kind = RunEventKind::progress, .worker = worker_, .done = done, .total = total, .text = std::move(text)});
  schedule_locked();
}

void RunReporter::send(RunEventKind kind, std::string text, const Error& error) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  const std::lock_guard lock(mutex_);
  flush_locked();
  sink_({.kind = kind, .worker = worker_, .text = std::move(text), .error = wire::shortened(error, kLongestText)});
}

void RunReporter::traffic(std::vector<SentFrames> sent) {
  const std::lock_guard lock(mutex_);
  flush_locked();
  sink_({.kind = RunEventKind::traffic, .worker = worker_, .sent = std::move(sent)});
}

void RunReporter::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void RunReporter::schedule_locked() {
  if (std::exchange(scheduled_, true)) return;
  executor_.post_at(executor_.clock().now() + kCollect, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

void RunReporter::flush_locked() {
  scheduled_ = false;
  if (!values_.empty()) {
    sink_({.kind = RunEventKind::metrics, .worker = worker_, .values = std::exchange(values_, {})});
  }
  if (progress_) sink_(*std::exchange(progress_, std::nullopt));
}

}  // namespace caftan::actors

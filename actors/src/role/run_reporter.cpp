#include "role/run_reporter.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "caftan/wire/internal/shortened.hpp"

namespace caftan::actors {
namespace {

constexpr base::Duration kCollect = std::chrono::milliseconds(50);
constexpr std::size_t kMostValues = 256;  // this many values and the longest text fit into one packet
constexpr std::size_t kLongestText = 32768;
constexpr std::size_t kLongestName = 128;

}  // namespace

void RunReporter::metric(std::string_view name, double value, std::optional<std::int64_t> step) {
  const base::LockGuard lock(mutex_);
  values_.push_back({.name = std::string(name.substr(0, kLongestName)), .value = value, .step = step});
  if (values_.size() >= kMostValues) return flush_locked();
  schedule_locked();
}

void RunReporter::progress(std::int64_t done, std::int64_t total, std::string text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  const base::LockGuard lock(mutex_);
  progress_ = run::Progress{.done = done, .total = total, .text = std::move(text)};
  schedule_locked();
}

void RunReporter::send(run::EventBody body) {
  std::visit(
      []([[maybe_unused]] auto& of) {
        if constexpr (requires { of.text; }) of.text.resize(std::min(of.text.size(), kLongestText));
        if constexpr (requires { of.error; }) of.error = wire::shortened(of.error, kLongestText);
      },
      body);
  const base::LockGuard lock(mutex_);
  flush_locked();
  sink_({.worker = worker_, .body = std::move(body)});
}

void RunReporter::flush() {
  const base::LockGuard lock(mutex_);
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
  if (!values_.empty()) sink_({.worker = worker_, .body = run::Metrics{std::exchange(values_, {})}});
  if (progress_) sink_({.worker = worker_, .body = *std::exchange(progress_, std::nullopt)});
}

}  // namespace caftan::actors

#include "launch/progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace caftan::actors {
namespace {

constexpr std::int64_t kBar = 15;
constexpr std::size_t kMostResults = 1024 * 1024;  ///< the most bytes of results that wait for a reader
/// The most bytes that wait for a reader of standard error; further ones are dropped.
constexpr std::size_t kMostWords = 64 * 1024;

std::string bar(std::int64_t done, std::int64_t total) {
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * kBar);
  return "[" + std::string(full, '#') + std::string(kBar - full, '-') + "]";
}

/// Returns the text of a role with blanks for control characters, which could end the line or draw elsewhere on the
/// terminal.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  return text;
}

/// Returns the parts of a role's text, which two spaces separate.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("  "), text.size());
    if (end > 0) parts.push_back(printable(std::string(text.substr(0, end))));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return parts;
}

/// Returns whether the text itself names the total, as "episode 3 of 600" does.
bool names_total(std::string_view text, std::int64_t total) {
  const std::string words = " of " + std::to_string(total);
  for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
  }
  return false;
}

/// Returns "step 120 of 600".
std::string count_of(const ProgressState& progress) {
  std::string count = "step " + std::to_string(progress.done);
  if (progress.total > 0) count += " of " + std::to_string(progress.total);
  return count;
}

/// Returns whether the line shows "step DONE of TOTAL" beside the role's text: only where the text does not name the
/// total itself.
bool shows_count(const ProgressState& progress) {
  if (parts_of(progress.text).empty()) return true;
  return progress.total > 0 && !names_total(progress.text, progress.total);
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 0;
}

}  // namespace

std::string minutes_and_seconds(base::Duration elapsed) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  const std::string rest = std::to_string(seconds % 60);
  return std::to_string(seconds / 60) + (rest.size() < 2 ? ":0" : ":") + rest;
}

std::string render_progress(const std::string& worker, const ProgressState& progress, base::Duration elapsed,
                            std::size_t width, bool named) {
  std::vector<std::string> parts = parts_of(progress.text);
  const bool has_text = !parts.empty();
  const bool counts = shows_count(progress);
  if (counts) parts.insert(parts.begin(), count_of(progress));
  if (named || !has_text) parts.front().insert(0, worker + "  ");
  // The bar stands behind the part that it measures: the count, else the last part but one, or the only part.
  const std::string drawn = progress.total > 0 ? " " + bar(progress.done, progress.total) : std::string();
  const std::size_t barred = counts || parts.size() < 2 ? 0 : parts.size() - 2;
  std::string line = minutes_and_seconds(elapsed);
  const auto fits = [&](const std::string& more) { return width == 0 || line.size() + more.size() <= width; };
  for (std::size_t i = 0; i < parts.size() && fits("  " + parts[i]); ++i) {
    line += "  " + parts[i];
    if (i == barred && fits(drawn)) line += drawn;
  }
  return line;
}

std::string where_of(const ProgressState& progress) {
  if (progress.total > 0 && shows_count(progress)) return count_of(progress);
  return printable(progress.text.substr(0, progress.text.find("  ")));
}

RunView::RunView(app::Progress progress) : mode_(progress), out_(STDOUT_FILENO), err_(STDERR_FILENO) {
  if (mode_ == app::Progress::automatic) {
    mode_ = ::isatty(STDERR_FILENO) == 1 ? app::Progress::live : app::Progress::plain;
  }
}

RunView::~RunView() {
  if (drawn_) say("\n");
}

void RunView::say(std::string_view text) {
  if (err_.waiting() + text.size() <= kMostWords) err_.write(text);
}

void RunView::erase() {
  if (drawn_) say("\r\x1b[K");
  drawn_ = false;
}

void RunView::result(std::string_view line) {
  erase();
  // Workers that were asked to stop may report results for a moment; these are kept only up to a limit.
  dropped_ = dropped_ || out_.waiting() > 2 * kMostResults;
  if (!dropped_) out_.write(std::string(line) + "\n");
}

std::string RunView::lost_results() const {
  if (out_.error() != 0) return std::strerror(out_.error());
  return dropped_ ? "it is not read" : "";
}

void RunView::note(std::string_view line) {
  if (mode_ == app::Progress::none) return;
  erase();
  say(std::string(line) + "\n");
}

void RunView::error(std::string_view line) {
  if (drawn_) say("\n");  // ends the line, so that the last progress stays visible
  drawn_ = false;
  say(std::string(line) + "\n");
}

void RunView::progress(const std::string& worker, const ProgressState& state, base::Duration elapsed, bool named) {
  if (mode_ == app::Progress::none) return;
  const bool live = is_live();
  const std::string line = render_progress(worker, state, elapsed, live ? terminal_width() : 0, named);
  if (live) {
    drawn_ = err_.offer("\r" + line + "\x1b[K") || drawn_;
  } else if (std::string content = worker + state.text + std::to_string(state.done); content != plain_) {
    if (err_.offer(line + "\n")) plain_ = std::move(content);
  }
}

bool RunView::is_full() const noexcept { return out_.waiting() > kMostResults; }

void RunView::add_to(std::vector<pollfd>& waited) const {
  for (const OutputStream* stream : {&out_, &err_}) {
    if (stream->waiting() > 0) waited.push_back({stream->fd(), POLLOUT, 0});
  }
}

void RunView::flush() {
  out_.flush();
  err_.flush();
}

bool RunView::wait_for_reader(const SignalSource* signals, base::TimePoint until) {
  const base::SteadyClock clock;
  for (;;) {
    flush();
    std::vector<pollfd> waited{{signals ? signals->fd() : -1, POLLIN, 0}};
    add_to(waited);
    if (waited.size() == 1) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
    const SignalsOpen open;
    const int found =
        left <= 0 ? 0 : ::poll(waited.data(), waited.size(), static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (waited.front().revents == 0 && (found > 0 || left > 0)) continue;
    dropped_ = dropped_ || out_.waiting() > 0;
    out_.drop();
    err_.drop();
    return false;
  }
}

}  // namespace caftan::actors

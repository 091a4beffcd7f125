#include "progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace caftan::actors {
namespace {

constexpr std::int64_t kBar = 15;

/// Returns the number of the error that kept it from being written, 0 if none did. A closed pipe is no reason to end a
/// run, nor any error.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return errno == EPIPE ? 0 : errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string bar(std::int64_t done, std::int64_t total) {
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * kBar);
  return "[" + std::string(full, '#') + std::string(kBar - full, '-') + "]";
}

std::string minutes(Duration elapsed) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  const std::string rest = std::to_string(seconds % 60);
  return std::to_string(seconds / 60) + (rest.size() < 2 ? ":0" : ":") + rest;
}

/// A role's text must neither break the line nor draw elsewhere on the terminal.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  return text;
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 0;
}

}  // namespace

std::string render_progress(const std::string& worker, const ProgressState& progress, Duration elapsed,
                            std::size_t width) {
  std::string line = progress.text;
  std::string rest;
  if (line.empty()) {
    line = worker + "  " + std::to_string(progress.done);
    if (progress.total > 0) line += " of " + std::to_string(progress.total);
  } else if (const auto last = line.rfind("  "); last != std::string::npos) {
    rest = line.substr(last);
    line.resize(last);
  }
  if (progress.total > 0) line += " " + bar(progress.done, progress.total);
  line = printable(line + rest) + "  " + minutes(elapsed);
  if (width > 0 && line.size() > width) line.resize(width);
  return line;
}

std::string where_of(const ProgressState& progress) {
  return printable(progress.text.substr(0, progress.text.find("  ")));
}

RunView::RunView(app::Progress progress) : mode_(progress) {
  if (mode_ == app::Progress::automatic) {
    mode_ = ::isatty(STDERR_FILENO) == 1 ? app::Progress::live : app::Progress::plain;
  }
}

RunView::~RunView() {
  if (drawn_) write_all(STDERR_FILENO, "\n");
}

void RunView::erase() {
  if (drawn_) write_all(STDERR_FILENO, "\r\x1b[K");
  drawn_ = false;
}

void RunView::result(std::string_view line) {
  erase();
  const int error = write_all(STDOUT_FILENO, std::string(line) + "\n");
  if (error != 0 && lost_results_.empty()) lost_results_ = std::strerror(error);
}

void RunView::note(std::string_view line) {
  if (mode_ == app::Progress::none) return;
  erase();
  write_all(STDERR_FILENO, std::string(line) + "\n");
}

void RunView::error(std::string_view line) {
  if (drawn_) write_all(STDERR_FILENO, "\n");  // how far it was stays visible
  drawn_ = false;
  write_all(STDERR_FILENO, std::string(line) + "\n");
}

void RunView::progress(const std::string& worker, const ProgressState& state, Duration elapsed) {
  if (mode_ == app::Progress::none) return;
  const bool live = is_live();
  const std::string line = render_progress(worker, state, elapsed, live ? terminal_width() : 0);
  if (live) {
    write_all(STDERR_FILENO, "\r" + line + "\x1b[K");
    drawn_ = true;
  } else if (const std::string content = state.text + std::to_string(state.done); content != plain_) {
    plain_ = content;
    write_all(STDERR_FILENO, line + "\n");
  }
}

}  // namespace caftan::actors

#include "launch/output_stream.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "launch/signal_source.hpp"

namespace caftan::actors {
namespace {

/// Returns whether a write of up to PIPE_BUF bytes returns at once: a pipe that poll reports as writable has room for
/// that.
bool has_room(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  return ::poll(&writable, 1, 0) == 1;
}

}  // namespace

void OutputStream::write(std::string_view text) {
  waiting_ += text;
  flush();
}

bool OutputStream::offer(std::string_view text) {
  flush();
  if (!waiting_.empty() || !has_room(fd_)) return false;
  write(text);
  return true;
}

void OutputStream::flush() {
  std::size_t done = 0;
  while (done < waiting_.size() && has_room(fd_)) {
    const SignalsOpen open;  // the write may block if another writer has taken the room since the look
    const ssize_t written =
        ::write(fd_, waiting_.data() + done, std::min<std::size_t>(waiting_.size() - done, PIPE_BUF));
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (written < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      if (error_ == 0 && errno != EPIPE) error_ = written == 0 ? EIO : errno;
      done = waiting_.size();
    }
  }
  waiting_.erase(0, done);
}

}  // namespace caftan::actors

/// The second process of a benchmark side: forked at the start of main, before any thread is started, and joined to
/// this process by two pipes. The second process never outlives this one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace caftan::bench {

/// The peer's end of the two pipes.
struct ParentLink {
  int read_fd;
  int write_fd;
  /// Writes one line to the parent. `text` holds no newline.
  void write_line(const std::string& text) const;
  /// Reads one line from the parent, without its newline; empty at the end of the pipe.
  std::string hear() const;
  /// Returns when the parent has closed its end.
  void wait_for_end() const;
};

/// Moves this thread into a network namespace, by the name that `ip netns add` gave it. Returns whether it is there;
/// else errno says why not. Sockets that were made before stay where they are.
bool enter_namespace(const std::string& name);

class PeerProcess {
 public:
  /// Forks a process that runs `body` and leaves with its result, without static destructors.
  /// A failure to fork ends this program: there is nothing to measure then.
  explicit PeerProcess(const std::function<int(const ParentLink&)>& body);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  /// Closes the pipes, gives the process a second to leave, then kills it.
  ~PeerProcess();

  pid_t pid() const noexcept { return pid_; }
  void write_line(const std::string& text) const { link_.write_line(text); }
  std::string hear() const { return link_.hear(); }
  /// Returns when the kernel has closed the process's descriptors. Precondition: the process writes nothing more.
  void wait_until_closed() const { link_.wait_for_end(); }
  /// Ends the process as a crash would. Returns when the kernel has taken it.
  void kill();

 private:
  pid_t pid_ = 0;
  ParentLink link_{-1, -1};
};

}  // namespace caftan::bench

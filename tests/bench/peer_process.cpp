#include "peer_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace caftan::bench {

void ParentLink::write_line(const std::string& text) const {
  const std::string line = text + "\n";
  // One short line fits into a pipe whole; a broken pipe means that the other process is ending anyway.
  if (write(write_fd, line.data(), line.size()) < 0) std::perror("bench: write to peer process");
}

std::string ParentLink::hear() const {
  std::string line;
  for (char c = 0;;) {
    const ssize_t got = read(read_fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') return line;
    line += c;
  }
}

void ParentLink::wait_for_end() const {
  char ignored[64];
  for (;;) {
    const ssize_t got = read(read_fd, ignored, sizeof ignored);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

bool enter_namespace(const std::string& name) {
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool entered = setns(fd, CLONE_NEWNET) == 0;
  close(fd);
  return entered;
}

PeerProcess::PeerProcess(const std::function<int(const ParentLink&)>& body) {
  int down[2];
  int up[2];
  if (pipe(down) != 0 || pipe(up) != 0) {
    std::perror("bench: pipe");
    std::exit(1);
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) {
    std::perror("bench: fork");
    std::exit(1);
  }
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // the parent has died before prctl took effect
    signal(SIGINT, SIG_IGN);            // Ctrl-C ends the parent, and the parent's end ends this process
    signal(SIGPIPE, SIG_IGN);
    close(down[1]);
    close(up[0]);
    _exit(body(ParentLink{down[0], up[1]}));
  }
  signal(SIGPIPE, SIG_IGN);
  close(down[0]);
  close(up[1]);
  link_ = ParentLink{up[0], down[1]};
}

PeerProcess::~PeerProcess() {
  close(link_.write_fd);
  close(link_.read_fd);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{1};
  while (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      kill();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
}

void PeerProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

}  // namespace caftan::bench

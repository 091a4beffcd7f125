// A wire between two network namespaces that takes its time: reads the packets of a TUN device in each and gives them
// to the other after a delay, in order. Runs until it is killed. Needs the right to enter the namespaces (root).
//
//   tun_relay MICROSECONDS DEVICE NAMESPACE NAMESPACE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "peer_process.hpp"

namespace caftan::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// Opens a TUN device that is there, in another namespace; the descriptor stays with that one.
int open_tun(const std::string& device, const std::string& name) {
  if (!enter_namespace(name)) fail(name.c_str());
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  if (fd < 0 || ::ioctl(fd, TUNSETIFF, &request) != 0) fail("tun_relay: tun");
  return fd;
}

/// The packets of one direction that are on their way.
class Direction {
 public:
  Direction(int from, int to, Clock::duration delay) : from_(from), to_(to), delay_(delay) {}

  /// Takes all packets that have been sent.
  void take() {
    for (;;) {
      std::array<char, 65536> bytes;
      const ssize_t size = ::read(from_, bytes.data(), bytes.size());
      if (size <= 0) return;
      on_the_way_.push_back({Clock::now() + delay_, {bytes.data(), bytes.data() + size}});
    }
  }
  /// Gives on what has been on its way for long enough. A packet that the kernel does not take is lost.
  void give() {
    while (!on_the_way_.empty() && on_the_way_.front().due <= Clock::now()) {
      const std::vector<char>& bytes = on_the_way_.front().bytes;
      if (::write(to_, bytes.data(), bytes.size()) < 0) std::perror("tun_relay: lost a packet");
      on_the_way_.pop_front();
    }
  }
  std::optional<Clock::time_point> next() const {
    if (on_the_way_.empty()) return std::nullopt;
    return on_the_way_.front().due;
  }

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<char> bytes;
  };
  const int from_;
  const int to_;
  const Clock::duration delay_;
  std::deque<Packet> on_the_way_;
};

int relay(Clock::duration delay, const std::string& device, const std::string& one, const std::string& other) {
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int a = open_tun(device, one);
  const int b = open_tun(device, other);
  std::array<Direction, 2> directions{Direction(a, b, delay), Direction(b, a, delay)};
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    std::optional<Clock::time_point> next;
    for (const Direction& direction : directions) {
      if (const auto due = direction.next()) next = next ? std::min(*next, *due) : *due;
    }
    std::array<pollfd, 2> waited{{{a, POLLIN, 0}, {b, POLLIN, 0}}};
    timespec time{};
    if (next) {
      const auto left = std::max(*next - Clock::now(), Clock::duration::zero());
      const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
      time = {seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    }
    if (::ppoll(waited.data(), waited.size(), next ? &time : nullptr, nullptr) < 0 && errno != EINTR) {
      fail("tun_relay: ppoll");
    }
    for (Direction& direction : directions) direction.take();
    for (Direction& direction : directions) direction.give();
  }
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const long delay = argc == 5 ? std::atol(argv[1]) : -1;
  if (delay >= 0) return caftan::bench::relay(std::chrono::microseconds(delay), argv[2], argv[3], argv[4]);
  std::fprintf(stderr, "usage: tun_relay MICROSECONDS DEVICE NAMESPACE NAMESPACE\n");
  return 2;
}

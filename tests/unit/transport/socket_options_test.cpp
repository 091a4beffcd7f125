// What listen and dial ask of the kernel for their sockets.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <future>

#include "caftan/transport/internal/endpoint.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"

namespace caftan::transport::socket_options_test {
namespace {

net::HandshakeOptions worker(std::uint32_t id) {
  net::HandshakeOptions options;
  options.self.cluster = "test";
  options.self.name = "worker" + std::to_string(id);
  options.self.id = WorkerId{id};
  options.self.incarnation = Incarnation{id + 1};
  options.self.connection = id;
  options.allow_no_secret = true;
  return options;
}

int option_of(const Channel& channel, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(channel.fd(), level, option, &value, &size), 0);
  return value;
}

/// Both ends of a connection.
struct Connection {
  explicit Connection(const std::string& address) {
    std::promise<Result<Accepted>> accepted;
    std::promise<Result<Accepted>> dialled;
    auto listener = listen(
        executor, address, [] { return worker(0); }, {},
        [&](Result<Accepted> result) { accepted.set_value(std::move(result)); });
    (*listener)->start();
    dial(executor, (*listener)->address(), worker(1), "worker0", {},
         [&](Result<Accepted> result) { dialled.set_value(std::move(result)); });
    for (auto* end : {&accepted, &dialled}) ends.push_back(end->get_future().get().value().channel);
    (*listener)->close();
  }
  ThreadedExecutor executor{{.runners = 1}};
  std::vector<std::shared_ptr<Channel>> ends;
};

TEST(SocketOptions, T11_TheKernelFitsTheBuffersOfTcp) {
  const int plain = ::socket(AF_INET, SOCK_STREAM, 0);
  const int asked = 1 << 20;
  ::setsockopt(plain, SOL_SOCKET, SO_RCVBUF, &asked, sizeof asked);
  int fixed = 0;
  socklen_t size = sizeof fixed;
  ::getsockopt(plain, SOL_SOCKET, SO_RCVBUF, &fixed, &size);
  ::close(plain);
  for (const auto& end : Connection("tcp:127.0.0.1:0").ends) {
    EXPECT_NE(option_of(*end, SOL_SOCKET, SO_RCVBUF), fixed);
  }
  const test::Folder folder;
  for (const auto& end : Connection("unix:" + (folder / "socket")).ends) {
    EXPECT_EQ(option_of(*end, SOL_SOCKET, SO_RCVBUF), fixed);
  }
}

TEST(SocketOptions, K5_LostSegmentsAreRepeatedAtASteadyPace) {
  for (const auto& end : Connection("tcp:127.0.0.1:0").ends) {
    EXPECT_EQ(option_of(*end, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS), 1);
    constexpr int kTcpRtoMax = 44;  // TCP_RTO_MAX_MS of linux/tcp.h
    int longest = 0;
    socklen_t size = sizeof longest;
    if (::getsockopt(end->fd(), IPPROTO_TCP, kTcpRtoMax, &longest, &size) == 0) {
      EXPECT_EQ(longest, 1000);
    } else {
      EXPECT_EQ(errno, ENOPROTOOPT) << "a kernel before 6.15 has no such option";
    }
  }
}

}  // namespace
}  // namespace caftan::transport::socket_options_test

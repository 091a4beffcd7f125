#include "channels/shm/shm_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "channels/socket/socket_io.hpp"

namespace caftan::transport {
namespace {

constexpr std::size_t kMostDescriptors = 4;  // room for more than may come; the kernel drops what has no room

/// Returns one descriptor that came with a message, -1 without; closes further ones and counts all.
int take_descriptors(msghdr& message, std::size_t& count) {
  int first = -1;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < here; ++i, ++count) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (count == 0) {
        first = fd;
      } else {
        ::close(fd);
      }
    }
  }
  return first;
}

/// Returns the number that stands for users that have none in this user namespace.
uid_t overflow_user() {
  uid_t user = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> user;
  return user;
}

}  // namespace

Result<SocketRead> read_socket(int fd, const iovec* vectors, int count) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors);
  message.msg_iovlen = static_cast<std::size_t>(count);
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return SocketRead{};
    return Error(Errc::peer_down, std::string("reading failed: ") + std::strerror(errno));
  }
  std::size_t descriptors = 0;
  const int descriptor = take_descriptors(message, descriptors);
  const bool cut = (message.msg_flags & MSG_CTRUNC) != 0;
  if (cut && descriptors == 0) {
    return Error(Errc::limit_exceeded, "this process has no descriptor left for the memory that the peer sent");
  }
  if (descriptors > 1 || cut) {
    if (descriptor >= 0) ::close(descriptor);
    return Error(Errc::malformed_payload, "the peer sent more than one descriptor at once");
  }
  if (got == 0) return end_of_stream();
  // The kernel ends a read behind the bytes that were sent together with a descriptor, and this was one byte.
  return SocketRead{static_cast<std::size_t>(got) - (descriptor >= 0 ? 1 : 0), descriptor};
}

Sent send_descriptor(int fd, int descriptor) {
  char byte = 0;
  iovec vector{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  for (;;) {
    if (::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return Sent::yes;
    if (errno == EINTR) continue;
    // Too many references: this user has as many descriptors under way in sockets as the kernel allows for now.
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ETOOMANYREFS ? Sent::full : Sent::refused;
  }
}

Result<void> check_same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Error(Errc::unsupported, std::string("the peer's user is not known: ") + std::strerror(errno));
  }
  const uid_t own = ::geteuid();
  if (peer.uid != own) {
    return Error(Errc::unsupported,
                 "the peer's user is " + std::to_string(peer.uid) + ", this one's " + std::to_string(own));
  }
  if (own == overflow_user()) {
    return Error(Errc::unsupported, "user " + std::to_string(own) + " stands for many users");
  }
  return {};
}

}  // namespace caftan::transport

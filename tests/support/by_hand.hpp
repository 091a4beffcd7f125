/// A member of a cluster without a worker behind it: it shakes hands, and the test reads and writes its bytes.
#pragma once

#include <poll.h>

#include <future>
#include <string>
#include <utility>

#include "caftan/transport/internal/endpoint.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/frame.hpp"

namespace caftan::test {

/// The member "b", number 1, of a cluster whose secret is "shared by this test". Destroy the connections that `connect`
/// returns before this object.
class ByHand {
 public:
  /// @param address   of the member "a"
  /// @param features  bits of the hello
  explicit ByHand(std::string address, std::uint64_t features = 0)
      : address_(std::move(address)), features_(features) {}

  /// Returns the connection of a session with this number, or why there is none.
  Result<transport::Accepted> connect(std::uint64_t connection) {
    net::HandshakeOptions handshake;
    handshake.self.versions = {2, 2};  // what workers speak
    handshake.self.cluster = "caftan";
    handshake.self.name = "b";
    handshake.self.id = WorkerId{1};
    handshake.self.incarnation = Incarnation{77};
    handshake.self.features = features_;
    handshake.self.connection = connection;
    handshake.secret = net::Secret("shared by this test");
    std::promise<Result<transport::Accepted>> accepted;
    transport::dial(executor_, address_, handshake, "a", {},
                    [&](Result<transport::Accepted> result) { accepted.set_value(std::move(result)); });
    return accepted.get_future().get();
  }

 private:
  const std::string address_;
  const std::uint64_t features_;
  transport::ThreadedExecutor executor_;
};

/// Reads frames until one of `kind` arrives, and returns that frame's sections.
inline wire::Bytes read_sections(transport::Accepted& from, wire::FrameKind kind) {
  wire::Bytes& unread = from.early;
  for (;;) {
    while (unread.size() >= wire::kFrameHeaderSize) {
      const wire::FrameHeader header = wire::decode_header(unread.data()).value();
      const std::size_t size = wire::kFrameHeaderSize + header.payload_size();
      if (unread.size() < size) break;
      const auto begin = unread.begin() + wire::kFrameHeaderSize;
      const wire::Bytes sections(begin, begin + header.sections_size);
      unread.erase(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(size));
      if (header.kind == kind) return sections;
    }
    pollfd readable{from.channel->fd(), POLLIN, 0};
    ::poll(&readable, 1, -1);
    std::byte buffer[4096];
    const iovec vector{buffer, sizeof buffer};
    wire::append(unread, {buffer, from.channel->read(&vector, 1).value()});
  }
}

}  // namespace caftan::test

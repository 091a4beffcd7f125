#include "channels/ucx/ucx_kind.hpp"

#include <sys/socket.h>

#include <utility>

#include "channels/socket/socket_endpoint.hpp"
#include "channels/tcp/tcp_kind.hpp"
#include "channels/ucx/ucx_channel.hpp"

namespace caftan::transport {
namespace {

/// The hello says that this side takes the stream over UCX: UCX is here and has found a device. Looked up once.
MakeChannel offer_ucx(PollingExecutor& executor, const HandshakeIoOptions& io_options, bool dials,
                      net::Introduction& self) {
  static const Result<void> usable = check_ucx();
  if (usable) self.features |= net::kUsesUcx;
  return [&executor, dials, note = io_options.note](int fd, const net::PeerInfo& peer) {
    if ((peer.agreed_features & net::kUsesUcx) == 0) {
      const std::string why = usable ? peer.name + " does not offer UCX" : usable.error().text();
      return make_socket_channel(executor, fd, "tcp", "not over ucx: " + why);
    }
    auto channel = make_ucx_channel(executor, fd, {.dials = dials, .key = peer.channel_key});
    if (channel) return *std::move(channel);
    // The peer waits for this side's address of UCX: the connection ends.
    if (note) note(peer.name, channel.error().text());
    ::shutdown(fd, SHUT_RDWR);
    return make_socket_channel(executor, fd, "tcp", channel.error().text());
  };
}

constexpr SocketKind kUcxSockets{.name = "ucx",
                                 .offer = offer_ucx,
                                 .parse = parse_host_port,
                                 .prepare = prepare_tcp_socket,
                                 .takes_tls = true,
                                 .reuses_address = true};

}  // namespace

constinit const ChannelKind kUcxKind{.scheme = "ucx:",
                                     .form = "ucx:host:port",
                                     .check_address = check_host_port,
                                     .check_machine = check_ucx,
                                     .machine_note = [] { return std::string(); },
                                     .is_dialable = has_host_port,
                                     .is_beyond_loopback = is_host_beyond_loopback,
                                     .listen = listen_with<kUcxSockets>,
                                     .dial = dial_with<kUcxSockets>,
                                     .has_name = has_host_name,
                                     .look_up = look_up_host};

}  // namespace caftan::transport

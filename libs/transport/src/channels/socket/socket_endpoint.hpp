/// Listening and dialling with stream sockets: the code that the Unix-domain and TCP kinds of channel share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "channels/channel_kind.hpp"
#include "channels/socket/socket_address.hpp"

namespace caftan::transport {

/// Makes the channel of a connection whose handshake is over. @param fd  the connected socket, which the channel closes
using MakeChannel = std::function<std::shared_ptr<Channel>(int fd, const net::PeerInfo& peer)>;

/// A kind of stream socket. Lives as long as the program.
struct SocketKind {
  const char* name;  ///< Channel::kind
  /// Adds to the hello what the kind offers the peer beyond a stream socket, and returns what makes its channels.
  /// @param dials  this side has connected
  MakeChannel (*offer)(PollingExecutor& executor, const HandshakeIoOptions& io_options, bool dials,
                       net::Introduction& self);
  /// Precondition: the kind's check_address accepts it. Errors: io_error (the host is not known).
  Result<SocketAddress> (*parse)(const std::string& address);
  /// Sets the options of a connection's socket.
  void (*prepare)(int fd);
  bool takes_tls;       ///< connections are encrypted where HandshakeIoOptions has keys
  bool reuses_address;  ///< a listener may take an address whose last connections the kernel still remembers
};

Result<std::shared_ptr<Listener>> listen_at_socket(const SocketKind& kind, PollingExecutor& executor,
                                                   const std::string& address, MakeHandshakeOptions options,
                                                   HandshakeIoOptions io_options, HandshakeDone done);
void dial_socket(const SocketKind& kind, PollingExecutor& executor, const std::string& address,
                 net::HandshakeOptions options, const std::string& expected_peer, HandshakeIoOptions io_options,
                 HandshakeDone done);

/// Returns what makes stream sockets, for kinds that offer the peer nothing else.
MakeChannel make_sockets(PollingExecutor& executor, const char* kind);

/// `listen_with` and `dial_with` are ChannelKind::listen and ChannelKind::dial of a kind of stream socket.
template <const SocketKind& kKind>
Result<std::shared_ptr<Listener>> listen_with(PollingExecutor& executor, const std::string& address,
                                              MakeHandshakeOptions options, HandshakeIoOptions io_options,
                                              HandshakeDone done) {
  return listen_at_socket(kKind, executor, address, std::move(options), io_options, std::move(done));
}
template <const SocketKind& kKind>
void dial_with(PollingExecutor& executor, const std::string& address, net::HandshakeOptions options,
               const std::string& expected_peer, HandshakeIoOptions io_options, HandshakeDone done) {
  dial_socket(kKind, executor, address, std::move(options), expected_peer, io_options, std::move(done));
}

}  // namespace caftan::transport

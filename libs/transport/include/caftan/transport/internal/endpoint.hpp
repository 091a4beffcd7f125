/// Connections before they are sessions: listening, dialling, and the handshake over a socket under a deadline. Start
/// with `listen` and `dial`; both end in an `Accepted` for a peer that has proved the cluster's secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "caftan/net/internal/handshake.hpp"
#include "caftan/net/internal/tls_engine.hpp"
#include "caftan/transport/channel.hpp"

namespace caftan::transport {

/// A peer after its handshake, and the channel to it.
struct Accepted {
  net::PeerInfo peer;
  std::shared_ptr<Channel> channel;
  wire::Bytes early;  ///< bytes that arrived behind the handshake; they belong to the session
};

struct HandshakeIoOptions {
  base::Duration timeout = std::chrono::seconds(5);  ///< for the whole handshake
  /// How many accepted connections may shake hands at once; a further one is closed immediately.
  std::size_t max_open = 1024;
  /// Bytes of each ring of a shm channel, at least 4096; part of a page counts as a page.
  std::size_t ring = 64 * 1024;
  /// Bytes that all rings of the executor's Workers may take; beyond that, connections get no rings.
  std::uint64_t rings = 64 << 20;
  /// The keys for TLS, under connections over TCP; nothing: they are not encrypted.
  std::optional<net::TlsKeys> tls = {};
  /// Gets what a channel's `note` says from now on, if that becomes known after the handshake; may be empty. Threads:
  /// any.
  std::function<void(const std::string& peer, const std::string& note)> note = {};
};

using HandshakeDone = std::function<void(Result<Accepted>)>;

/// Accepts connections until it is closed. Threads: any.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Returns the address for peers to dial: the address that was given to `listen`, but if its port was 0, with the
  /// port that the system chose.
  virtual const std::string& address() const noexcept = 0;
  /// Begins to accept. Call it once.
  virtual void start() = 0;
  /// Stops accepting and drops handshakes in progress; a Unix socket's file is removed.
  virtual void close() = 0;
};

/// Listens at an address of one of the kinds (src/channels); connections wait until `start`.
/// @param options  made anew for each connection; an error drops it
/// @param done  called for each handshake, also for those that failed (the log names why); on a runner
/// Errors: io_error (address in use, no such path; the text names the address), invalid_config (no such kind).
Result<std::shared_ptr<Listener>> listen(PollingExecutor& executor, const std::string& address,
                                         std::function<Result<net::HandshakeOptions>()> options,
                                         HandshakeIoOptions io_options, HandshakeDone done);

/// Connects to `address` and shakes hands.
/// @param expected_peer  the worker's name; another one there is an error
/// Errors (through `done`, called once on a runner or here): peer_down (no listener there yet), timeout, and what a
/// handshake may end with. Threads: any. Does not block.
void dial(PollingExecutor& executor, const std::string& address, net::HandshakeOptions options,
          const std::string& expected_peer, HandshakeIoOptions io_options, HandshakeDone done);

/// Checks the form of an address and asks no name service. Errors: invalid_config (no known form, a path of more than
/// 107 bytes, a port above 65535); the text names the address and the forms there are.
Result<void> check_address(const std::string& address);

/// Checks whether this machine has channels of the kind of that name, as in Channel::kind. Errors: unsupported and
/// limit_exceeded (with the reason), invalid_config (no such kind).
Result<void> check_machine(const std::string& name);

/// Returns what channels of the kind of that name lack on this machine, for people; empty if nothing.
/// Precondition: check_machine(name).
std::string machine_note(const std::string& name);

/// Returns whether an address that has the right form leads anywhere: it is not empty, and its TCP port is not 0.
bool is_dialable(const std::string& address);

/// Returns whether `address` can be reached from other hosts: a TCP address that is not loopback.
bool is_beyond_loopback(const std::string& address);

}  // namespace caftan::transport

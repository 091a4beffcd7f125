/// `ChannelKind`: one way to reach a peer at an address. To add a kind, add a folder beside this file with a
/// ChannelKind, and a line in channel_kinds.cpp. (Loopback channels have no address: they are made in pairs.)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/transport/internal/endpoint.hpp"

namespace caftan::transport {

using MakeHandshakeOptions = std::function<Result<net::HandshakeOptions>()>;

/// Each function takes an address of the kind, and does what the function of its name in endpoint.hpp promises.
struct ChannelKind {
  std::string_view scheme;  ///< how its addresses begin: "tcp:"
  std::string_view form;    ///< of its addresses, for errors: "tcp:host:port"
  Result<void> (*check_address)(const std::string& address);
  Result<void> (*check_machine)();
  std::string (*machine_note)();
  bool (*is_dialable)(const std::string& address);
  bool (*is_beyond_loopback)(const std::string& address);
  /// Precondition of `listen` and `dial`: check_address accepts the address.
  Result<std::shared_ptr<Listener>> (*listen)(PollingExecutor& executor, const std::string& address,
                                              MakeHandshakeOptions options, HandshakeIoOptions io_options,
                                              HandshakeDone done);
  void (*dial)(PollingExecutor& executor, const std::string& address, net::HandshakeOptions options,
               const std::string& expected_peer, HandshakeIoOptions io_options, HandshakeDone done);
  /// Of a kind whose addresses may hold names: whether this one does, and the addresses without names that it leads to,
  /// one at least. `look_up` blocks. Errors of `look_up`: peer_down (the name is unknown, as yet).
  bool (*has_name)(const std::string& address) = nullptr;
  Result<std::vector<std::string>> (*look_up)(const std::string& address) = nullptr;
};

/// Returns invalid_config for an address of no known form, with the forms there are.
Error no_address(const std::string& address);

}  // namespace caftan::transport

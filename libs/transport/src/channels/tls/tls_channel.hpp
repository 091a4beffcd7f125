/// A channel inside of TLS. Rules: docs/protocols/tls.md.
#pragma once

#include <memory>

#include "caftan/net/internal/tls_engine.hpp"
#include "caftan/transport/channel.hpp"

namespace caftan::transport {

/// Makes the channel of a connection whose TLS handshake is over.
/// @param carrier  the channel of the cipher text, not started
/// @param engine   open; it may hold bytes that were not read yet
std::shared_ptr<Channel> make_tls_channel(PollingExecutor& executor, std::shared_ptr<Channel> carrier,
                                          net::TlsEngine engine);

}  // namespace caftan::transport

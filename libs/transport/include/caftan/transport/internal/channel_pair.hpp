/// `make_channel_pair`: both ends of a connection of any kind within one process, for tests and simulations.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "caftan/transport/channel.hpp"

namespace caftan::transport {

/// @param kind  as in Channel::kind
/// Errors: io_error (the system refuses a socket), invalid_config (no such kind).
Result<std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>>> make_channel_pair(PollingExecutor& executor,
                                                                                        std::string_view kind);

}  // namespace caftan::transport

/// `RootPorts`: what the root actor of a worker passes on of how members come together; `Joiner` implements it.
#pragma once

#include "caftan/net/internal/membership.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::actors {

/// Threads: the root actor's.
class RootPorts {
 public:
  virtual ~RootPorts() = default;
  /// The coordinator has sent the addresses of all members.
  virtual void on_view(const transport::Session& from, const net::View& view) = 0;
  /// A member has reported that it is ready, or the coordinator that all are.
  virtual void on_met(transport::Session& from) = 0;
};

}  // namespace caftan::actors

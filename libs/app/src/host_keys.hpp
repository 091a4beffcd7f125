/// The keys of [hosts.NAME].
#pragma once

#include <string>

namespace caftan::app {

struct HostKeys {
  std::string address;
  static void settings(auto& s, HostKeys& c) {
    s("address", c.address, "host:port for the first host, that of the coordinator; host for the others").required();
  }
};

}  // namespace caftan::app

/// The keys of [hosts.NAME].
#pragma once

#include <optional>
#include <string>

namespace caftan::app {

struct HostKeys {
  std::optional<std::string> address;
  std::optional<std::string> interface;
  static void settings(auto& s, HostKeys& c) {
    s("address", c.address,
      "host:port for the first host, that of the coordinator; host for the others; required, "
      "unless run.launcher gives it")
        .default_text("that of run.launcher");
    s("interface", c.interface,
      "network interface of the host, as `ip link` shows it: workers listen at its address there, in place of "
      "`address`")
        .default_text("none");
  }
};

}  // namespace caftan::app

#include "launch/host_of_process.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "caftan/base/clock.hpp"
#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/launchers/internal/slot.hpp"
#include "launch/descriptor.hpp"

namespace caftan::actors {
namespace {

constexpr base::Duration kLookAgain = std::chrono::milliseconds(200);

/// Returns the address of this host on the network that leads to `peer`. Sends nothing.
Result<std::string> address_towards(const addrinfo& peer) {
  const Descriptor socket(::socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (socket.get() < 0 || ::connect(socket.get(), peer.ai_addr, peer.ai_addrlen) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return Error(Errc::io_error, std::strerror(errno));
  }
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) return Error(Errc::io_error, ::gai_strerror(failed));
  return std::string(text.data());
}

/// Returns the address of this host on the network that leads to the first of the addresses of `host` that has a way.
Result<std::string> address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), "1", &hints, &found); failed != 0) {
    return Error(Errc::io_error, ::gai_strerror(failed));
  }
  Result<std::string> own = Error(Errc::io_error, "it has no address");
  for (const addrinfo* peer = found; peer && !own; peer = peer->ai_next) own = address_towards(*peer);
  ::freeaddrinfo(found);
  return own;
}

}  // namespace

Result<std::string> host_of_process(app::Application& application) {
  const auto slot = launchers::find_slot(application.run.launcher, launchers::Environment::of(environ));
  if (!slot) return slot.error();
  if (slot->is_child) ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a run that gets SIGTERM ends in order (RN-6)
  // A parent that has ended before sends no signal any more.
  const int parent = ::getppid();
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(parent) + "/comm"), name);
  if (launchers::is_orphan(*slot, parent, name)) {
    return Error(Errc::io_error, "the launcher " + slot->launcher + " ended before this process began");
  }
  const app::HostSpec& first = application.hosts.front();
  const std::string& target = first.address.empty() ? slot->first : first.address;
  // The first process needs no address of its own, but waits until its name is known: it listens there.
  const bool needs_own = slot->size == launchers::slots_needed(application) && !target.empty() &&
                         (slot->rank == 0 || application.hosts[static_cast<std::size_t>(slot->rank)].address.empty());
  std::string own;
  const base::SteadyClock clock;
  const base::TimePoint until = clock.now() + application.run.start_timeout;
  while (needs_own && own.empty()) {
    auto address = address_towards(target);
    if (address) {
      own = *std::move(address);
    } else if (clock.now() >= until) {
      return Error(Errc::io_error, "the first host, '" + target + "', cannot be reached from here: " +
                                       address.error().text() + " (looked up for run.start_timeout)");
    } else {
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  return launchers::take_slot(application, *slot, own);
}

Result<void> take_interface(app::HostSpec& host) {
  if (host.interface.empty()) return {};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Error(Errc::io_error, std::string("getifaddrs: ") + std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> guard(list, &::freeifaddrs);
  std::string found;
  std::set<std::string> names;
  for (const ifaddrs* at = list; at; at = at->ifa_next) {
    names.insert(at->ifa_name);
    const int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
    if (at->ifa_name != host.interface || (family != AF_INET && family != AF_INET6)) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(at->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (found.empty() || family == AF_INET) found = text.data();
    if (family == AF_INET) break;
  }
  if (found.empty()) {
    return Error(Errc::invalid_config, "[hosts." + host.name + "] interface: " + quote_toml(host.interface) +
                                           (names.contains(host.interface) ? " has no address" : " is not here") +
                                           " (interfaces: " + base::joined({names.begin(), names.end()}) + ")");
  }
  host.address = found;
  return {};
}

}  // namespace caftan::actors

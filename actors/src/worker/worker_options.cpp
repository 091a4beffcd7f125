#include "worker/worker_options.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "caftan/base/internal/joined.hpp"
#include "caftan/transport/internal/endpoint.hpp"

namespace caftan::actors {
namespace {

constexpr std::uint64_t kFeatures = net::kSaysSegments | net::kKnowsErrorKinds | net::kKnowsGradMode |
                                    net::kKnowsDepth | net::kKnowsLeaveReport | net::kKnowsRunReturned |
                                    net::kKnowsTell;

Incarnation random_incarnation() {
  std::random_device device;
  std::uint64_t value = 0;
  while (value == 0) value = (std::uint64_t{device()} << 32) ^ device();
  return Incarnation{value};
}

/// Returns an IPv6 address in the one spelling in which a certificate's names come (TlsEngine::peer_names), and any
/// other name as it is.
std::string as_certified(const std::string& name) {
  in6_addr address{};
  char text[INET6_ADDRSTRLEN];
  if (::inet_pton(AF_INET6, name.c_str(), &address) != 1) return name;
  return ::inet_ntop(AF_INET6, &address, text, sizeof text) ? text : name;
}

}  // namespace

Result<net::Membership> make_membership(const WorkerOptions& options) {
  std::vector<net::MemberEntry> members;
  std::optional<WorkerId> self;
  for (const WorkerAddress& member : options.world) {
    const WorkerId id{static_cast<std::uint32_t>(members.size())};
    if (member.name == options.name) self = id;
    if (!member.address.empty()) {
      if (auto fits = transport::check_address(member.address); !fits) return fits.error().at(member.name);
    }
    members.push_back({member.name, id, member.address});
  }
  if (!self) return Error(Errc::invalid_config, "worker '" + options.name + "' is not in its own list of members");
  const WorkerAddress& coordinator = options.world.front();
  if (!options.network && self->value != 0 && !transport::is_dialable(coordinator.address)) {
    return Error(Errc::invalid_config, "worker '" + options.name + "' cannot dial '" + coordinator.name +
                                           "', the first in its list of members, at '" + coordinator.address + "'");
  }
  if (options.peer_timeout < 2 * options.heartbeat || options.heartbeat <= base::Duration::zero()) {
    return Error(Errc::invalid_config, "peer_timeout must be at least two heartbeats");
  }
  const net::Limits& limits = options.limits;
  constexpr std::uint64_t kMostMessage = 0xffff'ffff;  // a frame holds the sizes of its parts in 32 bits
  if (limits.message == 0 || limits.message > kMostMessage || limits.send_queue == 0 || limits.segments == 0) {
    return Error(Errc::invalid_config, "Limits: message has 1 to " + std::to_string(kMostMessage) +
                                           " bytes, send_queue and segments are not 0");
  }
  if (options.rpc_timeout < base::Duration::zero()) {
    return Error(Errc::invalid_config, "rpc_timeout is negative; 0 means that calls have no time-out");
  }
  const std::string address = members[self->value].address;
  if (options.secret.empty() && transport::is_beyond_loopback(address)) {
    return Error(Errc::invalid_config, "worker '" + options.name + "' would listen beyond this host at " + address +
                                           " without a shared secret: set one");
  }
  const TlsOptions& tls = options.tls;
  const auto files = {tls.certificate.empty(), tls.key.empty(), tls.authority.empty()};
  if (std::ranges::count(files, true) % 3 != 0) {
    return Error(Errc::invalid_config, "TlsOptions: certificate, key and authority are set together");
  }
  if (tls.mode == TlsOptions::Mode::on && options.secret.empty() && tls.certificate.empty()) {
    return Error(Errc::invalid_config, "TlsOptions: mode `on` needs WorkerOptions::secret or a certificate");
  }
  return net::Membership::make(std::move(members), net::Join{options.name, *self, random_incarnation(), address});
}

net::Meeting::Options meeting_options(const WorkerOptions& options) {
  net::Meeting::Options meeting{.start_timeout = options.start_timeout, .in_one_process = options.network != nullptr};
  for (const WorkerAddress& member : options.world) {
    // With port 0 the system chooses the port. The address is then learnt from the coordinator, as when it is empty.
    meeting.addresses.push_back(transport::is_dialable(member.address) ? member.address : "");
  }
  return meeting;
}

transport::SessionOptions session_options(const WorkerOptions& options) {
  return {options.limits, LivenessOptions{options.heartbeat, options.peer_timeout}};
}

transport::HandshakeIoOptions io_options(const WorkerOptions& options) {
  constexpr std::uint64_t kPartOfRings = 4;
  transport::HandshakeIoOptions io{.ring = options.limits.shm_ring,
                                   .rings = options.limits.shared_memory / kPartOfRings};
  const TlsOptions& tls = options.tls;
  if (tls.mode == TlsOptions::Mode::on) {
    io.tls = net::TlsKeys{options.cluster, net::Secret(options.secret), {tls.certificate, tls.key, tls.authority}};
  }
  return io;
}

bool uses_tls(const WorkerOptions& options) {
  if (options.tls.mode != TlsOptions::Mode::automatic) return options.tls.mode == TlsOptions::Mode::on;
  const std::string& coordinator = options.world.front().address;
  return !options.tls.certificate.empty() || (!coordinator.empty() && transport::is_beyond_loopback(coordinator));
}

Result<void> check_certificate(const WorkerOptions& options, const net::PeerInfo& peer) {
  if (!peer.certified) return {};
  std::vector<std::string> wanted{peer.name};
  const auto also = options.tls.also_named.find(peer.name);
  if (also != options.tls.also_named.end())
    std::ranges::transform(also->second, std::back_inserter(wanted), as_certified);
  if (std::ranges::find_first_of(*peer.certified, wanted) != peer.certified->end()) return {};
  return Error(Errc::not_authenticated, "the certificate of '" + peer.name + "' is for " +
                                            (peer.certified->empty() ? "no name" : base::joined(*peer.certified)) +
                                            ": it needs one of " + base::joined(wanted));
}

transport::PeerIdentity make_identity(const WorkerOptions& options, const WorkerLife& self) {
  return {self, options.name, options.limits, kFeatures};
}

net::HandshakeOptions make_handshake_options(const WorkerOptions& options, const WorkerLife& self,
                                             std::uint64_t connection, std::string address) {
  net::HandshakeOptions handshake;
  // Version 1 has passes without held objects and releases that list open contexts: not spoken any more.
  handshake.self.versions = {2, 2};
  handshake.self.cluster = options.cluster;
  handshake.self.name = options.name;
  handshake.self.id = self.id;
  handshake.self.incarnation = self.incarnation;
  handshake.self.limits = options.limits;
  handshake.self.features = kFeatures;
  handshake.self.connection = connection;
  handshake.self.settings = options.settings;
  handshake.self.address = std::move(address);
  handshake.secret = net::Secret(options.secret);
  handshake.allow_no_secret = options.secret.empty();
  return handshake;
}

}  // namespace caftan::actors

#include "channels/shm/shm_kind.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "channels/shm/lending.hpp"
#include "channels/shm/reading_leave.hpp"
#include "channels/shm/ring.hpp"
#include "channels/shm/shared_memory.hpp"
#include "channels/shm/shm_channel.hpp"
#include "channels/shm/shm_socket.hpp"
#include "channels/socket/socket_endpoint.hpp"
#include "channels/unix/unix_kind.hpp"

namespace caftan::transport {
namespace {

constexpr std::string_view kShmScheme = "shm:";

Result<void> check_shm(const std::string& address) { return check_socket_path(kShmScheme, address); }
Result<SocketAddress> parse_shm(const std::string& address) { return socket_at_path(kShmScheme, address); }
bool is_always_dialable(const std::string&) { return true; }
bool is_never_beyond(const std::string&) { return false; }

/// What this side has set aside for the rings of a connection while it shakes hands.
struct Offer {
  std::size_t ring = 0;  // bytes of each ring
  SharedMemoryBudget::Share share;
};

/// Returns why there are no rings, empty if there are.
std::string why_no_rings(const std::shared_ptr<Offer>& offer, const net::PeerInfo& peer, int fd) {
  if (!offer) return "limits.shared_memory has no room for more rings";
  if ((peer.agreed_features & net::kSharesMemory) == 0 || peer.ring < kSmallestRing) {
    return peer.name + " does not offer shared memory";
  }
  if (const auto same = check_same_user(fd); !same) return same.error().text();
  return {};
}

/// Returns why a session does not lend whose sides have not both said that they read memory.
std::string why_not_lent() {
  const auto own = check_reading();
  return own ? "it does not read other processes' memory" : own.error().text();
}

std::string shm_machine_note() {
  if (const auto reading = check_reading(); !reading) return note_on_rings(reading.error().text());
  if (yama_scope() != 1 || may_trace()) return {};
  return "large tensors are read by one other worker and go through the rings to others: kernel.yama.ptrace_scope is 1";
}

/// The hello says that this side takes rings if there is room for the two of a session, which is set aside.
MakeChannel offer_rings(PollingExecutor& executor, const HandshakeIoOptions& io_options, bool dials,
                        net::Introduction& self) {
  const std::size_t wanted = (io_options.ring + kRingHeader - 1) / kRingHeader * kRingHeader;
  const std::size_t ring = std::clamp(wanted, kSmallestRing, kLargestRing);
  std::shared_ptr<Offer> offer;
  if (auto share = executor.shared_memory().take(two_rings(ring), io_options.rings)) {
    offer = std::make_shared<Offer>(Offer{ring, *std::move(share)});
    self.features |= net::kSharesMemory;
    self.ring = static_cast<std::uint32_t>(ring);
    if (check_reading()) self.features |= net::kTakesLent;
  }
  return [&executor, dials, offer, note = io_options.note](int fd, const net::PeerInfo& peer) {
    std::string why_not = why_no_rings(offer, peer, fd);
    if (!why_not.empty()) return make_socket_channel(executor, fd, "unix", note_on_socket(why_not));
    // The side that makes the memory makes no larger rings than the peer takes.
    const std::size_t own = offer->ring;
    ShmChannelOptions options{.makes_memory = dials,
                              .ring = dials ? std::min<std::size_t>(own, peer.ring) / kRingHeader * kRingHeader : own,
                              .lends = (peer.agreed_features & net::kTakesLent) != 0};
    if (!options.lends) options.why_not_lent = why_not_lent();
    if (note) options.note = [note, name = peer.name](const std::string& text) { note(name, text); };
    return make_shm_channel(executor, fd, options, std::move(offer->share));
  };
}

constexpr SocketKind kShmSockets{.name = "shm",
                                 .offer = offer_rings,
                                 .parse = parse_shm,
                                 .prepare = prepare_unix_socket,
                                 .takes_tls = false,
                                 .reuses_address = false};

}  // namespace

constinit const ChannelKind kShmKind{.scheme = kShmScheme,
                                     .form = "shm:/path",
                                     .check_address = check_shm,
                                     .check_machine = check_shared_memory,
                                     .machine_note = shm_machine_note,
                                     .is_dialable = is_always_dialable,
                                     .is_beyond_loopback = is_never_beyond,
                                     .listen = listen_with<kShmSockets>,
                                     .dial = dial_with<kShmSockets>};

}  // namespace caftan::transport

#include <algorithm>
#include <array>
#include <utility>

#include "channels/channel_kind.hpp"
#include "channels/name_dial.hpp"
#include "channels/shm/shm_kind.hpp"
#include "channels/tcp/tcp_kind.hpp"
#include "channels/ucx/ucx_kind.hpp"
#include "channels/unix/unix_kind.hpp"

namespace caftan::transport {
namespace {

constexpr std::array kKinds{&kShmKind, &kUnixKind, &kTcpKind, &kUcxKind};

/// Returns the kind of an address, null if no kind has its scheme.
const ChannelKind* find_kind(const std::string& address) {
  const auto found =
      std::ranges::find_if(kKinds, [&](const ChannelKind* kind) { return address.starts_with(kind->scheme); });
  return found == kKinds.end() ? nullptr : *found;
}

}  // namespace

Result<void> Channel::read_lent(std::uint64_t, std::span<std::byte>) {
  return Error(Errc::malformed_payload, "tensors that lie in the peer's memory, which this session does not read");
}

Error no_address(const std::string& address) {
  std::string forms;
  for (const ChannelKind* const kind : kKinds) forms += (forms.empty() ? "" : " or ") + std::string(kind->form);
  return Error(Errc::invalid_config, "'" + address + "' is no address: use " + forms);
}

Result<void> check_address(const std::string& address) {
  const ChannelKind* const kind = find_kind(address);
  return kind ? kind->check_address(address) : Result<void>(no_address(address));
}

Result<void> check_machine(const std::string& name) {
  const ChannelKind* const kind = find_kind(name + ":");
  return kind ? kind->check_machine() : Result<void>(no_address(name));
}

std::string machine_note(const std::string& name) { return find_kind(name + ":")->machine_note(); }

bool is_dialable(const std::string& address) {
  const ChannelKind* const kind = find_kind(address);
  return kind && kind->is_dialable(address);
}

bool is_beyond_loopback(const std::string& address) {
  const ChannelKind* const kind = find_kind(address);
  return kind && kind->is_beyond_loopback(address);
}

Result<std::shared_ptr<Listener>> listen(PollingExecutor& executor, const std::string& address,
                                         MakeHandshakeOptions options, HandshakeIoOptions io_options,
                                         HandshakeDone done) {
  if (auto fits = check_address(address); !fits) return fits.error();
  return find_kind(address)->listen(executor, address, std::move(options), io_options, std::move(done));
}

void dial(PollingExecutor& executor, const std::string& address, net::HandshakeOptions options,
          const std::string& expected_peer, HandshakeIoOptions io_options, HandshakeDone done) {
  if (auto fits = check_address(address); !fits) return done(fits.error());
  const ChannelKind& kind = *find_kind(address);
  if (!kind.has_name || !kind.has_name(address)) {
    return kind.dial(executor, address, std::move(options), expected_peer, io_options, std::move(done));
  }
  dial_by_name(executor, kind, address, std::move(options), expected_peer, io_options, std::move(done));
}

}  // namespace caftan::transport

#include "channels/shm/lending.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace caftan::transport {
namespace {

std::string why_not_read(int error) {
  std::string text = std::string("process_vm_readv: ") + std::strerror(error);
  if (const int scope = yama_scope(); error == EPERM && scope != 0) {
    text += " (kernel.yama.ptrace_scope is " + std::to_string(scope) + ")";
  }
  return text;
}

}  // namespace

Result<pid_t> process_of_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0) return peer.pid;
  return Error(Errc::unsupported, "the peer's process is in another pid namespace");
}

Result<void> check_reading() {
  std::uint64_t from = 1;
  std::uint64_t to = 0;
  const iovec local{&to, sizeof to};
  const iovec remote{&from, sizeof from};
  if (::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) != sizeof to) {
    return Error(Errc::unsupported, why_not_read(errno));
  }
  // A process always reads itself, whatever Yama says.
  const int scope = yama_scope();
  if (!is_reading_refused(scope, may_trace())) return {};
  return Error(Errc::unsupported, "kernel.yama.ptrace_scope is " + std::to_string(scope));
}

Lending::Lending(std::byte* own, std::byte* peer, pid_t process, ReadingLeave* leave) noexcept
    : own_(*reinterpret_cast<LendingWords*>(own + kLendingAt)),
      peer_(*reinterpret_cast<LendingWords*>(peer + kLendingAt)),
      process_(process),
      leave_(process != ::getpid() ? leave : nullptr) {}

Lending::~Lending() {
  if (gave_leave_) leave_->take_back();
}

Result<void> Lending::show() {
  if (::getrandom(identity_.data(), sizeof identity_, 0) != sizeof identity_) {
    return Error(Errc::io_error, std::string("getrandom: ") + std::strerror(errno));
  }
  if (leave_) {
    if (auto given = leave_->give(process_); !given) return given;
    gave_leave_ = true;
  }
  for (std::size_t i = 0; i < identity_.size(); ++i) own_.identity[i].store(identity_[i], std::memory_order_relaxed);
  own_.identity_at.store(reinterpret_cast<std::uintptr_t>(identity_.data()), std::memory_order_release);
  return {};
}

Result<void> Lending::probe() {
  auto found = find_identity();
  own_.reads.store(found ? kReads : kCannotRead, std::memory_order_release);
  return found;
}

Result<void> Lending::find_identity() {
  peer_identity_at_ = peer_.identity_at.load(std::memory_order_acquire);
  if (peer_identity_at_ == 0) return Error(Errc::unsupported, "the peer does not let its memory be read");
  for (std::size_t i = 0; i < peer_identity_.size(); ++i) {
    peer_identity_[i] = peer_.identity[i].load(std::memory_order_relaxed);
  }
  Identity found{};
  const iovec local{found.data(), sizeof found};
  const iovec remote{reinterpret_cast<void*>(peer_identity_at_), sizeof found};
  if (::process_vm_readv(process_, &local, 1, &remote, 1, 0) != sizeof found) {
    return Error(Errc::unsupported, why_not_read(errno));
  }
  if (found != peer_identity_) {
    return Error(Errc::unsupported, "the process that made the connection is not the one that uses it");
  }
  return {};
}

/// Each call reads the identity, too: the kernel reads all of one call from one process, so what comes before the
/// identity is of the process that was probed, even if the number of that process was given to another one since.
Result<void> Lending::read(std::uint64_t from, std::span<std::byte> to) const {
  Identity found{};
  const iovec local[2] = {{to.data(), to.size()}, {found.data(), sizeof found}};
  const iovec remote[2] = {{reinterpret_cast<void*>(from), to.size()},
                           {reinterpret_cast<void*>(peer_identity_at_), sizeof found}};
  const ssize_t got = ::process_vm_readv(process_, local, 2, remote, 2, 0);
  if (got < 0 && errno == ESRCH) return Error(Errc::peer_down, "its process has ended while its memory was read");
  if (got < 0 && errno == ENOMEM) return Error(Errc::limit_exceeded, why_not_read(errno));
  if (got < 0 && errno == EPERM) return Error(Errc::unsupported, why_not_read(errno));
  if (got < static_cast<ssize_t>(to.size())) {
    return Error(Errc::malformed_payload, "tensors that the peer has lent lie where it has no memory");
  }
  if (found != peer_identity_) return Error(Errc::peer_down, "its process has ended while its memory was read");
  // Behind the read: the peer says so before it lets go of what it has lent, so what was read before is what it sent.
  if (peer_.ended.load(std::memory_order_seq_cst) == 1) {
    return Error(Errc::peer_down, "it has ended the session while its memory was read");
  }
  return {};
}

}  // namespace caftan::transport

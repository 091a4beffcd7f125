/// A channel: one connection to a peer, as a non-blocking stream of bytes. Each kind is a folder of src/channels and
/// passes the suite tests/unit/transport/channel_conformance_test.cpp. Start with `make_loopback_pair` or
/// `make_socket_channel`.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "caftan/base/result.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {

/// One end of a connection. Threads: one at a time unless a method says otherwise.
class Channel {
 public:
  /// The function to which a channel reports that it can be read or written without blocking; `readable` is set at the
  /// end of the stream, too.
  using Ready = std::function<void(bool readable, bool writable)>;

  virtual ~Channel() = default;

  /// Starts to report readiness, once per `arm`. Threads: before any other call.
  virtual void start(Ready ready) = 0;
  /// Asks for the next report of what is possible: `read` and `write` say for what. Bytes or room that are there
  /// already are reported, too.
  /// Threads: one at a time, also while another one reads.
  virtual void arm(bool read, bool write) = 0;

  /// Reads into the vectors; 0 = nothing there now.
  /// Errors: peer_down at the end of the stream or when the connection broke.
  virtual Result<std::size_t> read(const iovec* vectors, int count) = 0;
  /// Writes from the vectors; may take less than all; 0 = full now. Errors: peer_down.
  virtual Result<std::size_t> write(const iovec* vectors, int count) = 0;

  /// Returns whether bytes have arrived that were not read yet. Threads: any, also while another one reads.
  virtual bool has_unread() const = 0;

  /// Ends writing; bytes that were written before still arrive.
  virtual void close_write() = 0;
  /// Breaks the connection: both ends read the end of the stream, and a thread that waits for bytes in poll wakes up.
  virtual void break_off() = 0;
  /// Ends the channel; nothing is reported any more. Safe to repeat.
  virtual void close() = 0;

  /// Returns the descriptor that becomes readable when bytes arrive, -1 if there is none. A thread may sleep in poll on
  /// it between `try_sleep` and `wake`, as long as `arm` does not ask for bytes.
  virtual int fd() const noexcept = 0;
  /// Prepares a sleep on the descriptor. Returns false if there is something to read already.
  virtual bool try_sleep() { return true; }
  /// Ends that sleep. @param readable  the descriptor can be read
  virtual void wake(bool readable) { (void)readable; }

  /// Looks for bytes, or the end of the stream, without a system call. Threads: any, also while another one reads.
  virtual Look look() const { return Look::unable; }
  /// Shows the peer that a thread looks for its bytes, until that thread sleeps or `arm` asks for bytes. Precondition:
  /// look() is not `unable`. Threads: the one that may call `try_sleep`, or `arm`.
  virtual void stay_awake() {}

  /// Returns whether the peer reads tensors out of this process's memory, so that their bytes need not be written.
  /// Threads: any.
  virtual bool lends() const { return false; }
  /// Reads `to.size()` bytes at an address of the peer's memory, which it has lent. Threads: as `read`.
  /// Errors: peer_down (the peer has ended meanwhile), malformed_payload (there is no such memory, or no channel of
  /// this kind reads any), limit_exceeded.
  virtual Result<void> read_lent(std::uint64_t from, std::span<std::byte> to);

  /// Shows the peer that this process lives without a byte of the stream; returns false if the channel cannot. Threads:
  /// the one that keeps time.
  virtual bool beat() { return false; }
  /// Returns how often the peer has shown so that it lives. Threads: any.
  virtual std::uint64_t beats() const { return 0; }

  /// "shm", "unix", "tcp", "tcp+tls", "ucx", "ucx+tls" or "loopback".
  virtual const char* kind() const noexcept = 0;
  /// Returns why the channel is not of the kind that its address names, or why tensors are not read out of memory where
  /// the kind does that; for people; empty if nothing is lacking. Threads: any.
  virtual std::string note() const { return {}; }
  /// Returns whether the other end can fall silent while this process lives. Where it cannot, no signs of life are
  /// needed (SE-32). A channel that wraps another channel returns what the inner channel returns.
  virtual bool may_fall_silent() const noexcept { return true; }
  /// Returns where the other end is, for people: "process 4711", "10.0.0.2:40312"; empty if that is not known.
  virtual std::string peer_place() const { return {}; }
};

/// Makes a channel over a connected stream socket, Unix-domain or TCP. The channel owns and closes `fd`, which must be
/// non-blocking.
/// @param note  Channel::note
std::shared_ptr<Channel> make_socket_channel(PollingExecutor& executor, int fd, const char* kind,
                                             std::string note = {});

/// Makes the two ends of a connection within one process. They carry the bytes that a socket would, and the same code
/// writes and reads them.
/// @param capacity  bytes that may lie in one direction
std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>> make_loopback_pair(PollingExecutor& executor,
                                                                                 std::size_t capacity = 1 << 20);

}  // namespace caftan::transport

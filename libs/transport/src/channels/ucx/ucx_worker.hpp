/// `UcxWorker`: a worker of UCX with the endpoint to its one peer, as a stream of bytes. What it sends lies in memory
/// of its own that is registered with UCX.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/ucx/ucx_library.hpp"

namespace caftan::transport {

/// Threads: one at a time.
class UcxWorker {
 public:
  /// Reads UCX's own settings (UCX_TLS, UCX_NET_DEVICES). Errors: unsupported (no library, no usable device).
  static Result<std::unique_ptr<UcxWorker>> open();
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  /// Returns what the peer connects to. Errors: unsupported.
  Result<wire::Bytes> address() const;
  /// Connects to the address of the peer's worker, which connects to this one. Call it once, with bytes that a member
  /// of the cluster has sent: UCX does not check them. Errors: peer_down (no transport of this side reaches the peer).
  Result<void> connect(wire::ByteView address);

  /// Returns the descriptor that becomes readable when `progress` has something to do.
  int fd() const noexcept { return fd_; }
  /// Does what is to be done now. Returns whether the descriptor reports what comes next: UCX's shared memory does not
  /// report that there is room again, so that `progress` has to be called again a little later.
  bool progress();

  /// Takes bytes from the vectors, at most `most`; 0 = full now. Errors: peer_down. Precondition: connected.
  Result<std::size_t> write(const iovec* vectors, int count, std::size_t most);
  /// Returns whether `write` takes a byte. Precondition: connected.
  bool has_room() const;
  /// Returns whether UCX has taken over all that was written: the memory of this object holds none of it.
  bool is_sent();

  /// Reads what has arrived; 0 = nothing now. Errors: peer_down.
  Result<std::size_t> read(const iovec* vectors, int count);
  /// Returns whether bytes have arrived that were not read yet. Precondition: connected.
  bool has_data();

  /// Returns why the connection is broken, null if it is not.
  const Error* failure() const noexcept { return failure_ ? &*failure_ : nullptr; }

 private:
  static constexpr std::size_t kSlots = 16;
  static constexpr std::size_t kSlot = 64 * 1024;  // bytes
  static constexpr int kRounds = 256;              // of progress at once, so that a peer holds no thread
  static constexpr int kTries = 3;                 // without progress, until `progress` gives up

  explicit UcxWorker(const UcxLibrary& ucx) : ucx_(ucx) {}
  Result<void> make();
  Result<void> map_slots();
  bool is_free(std::size_t slot) const;
  void fail(ucs_status_t status);
  static void on_failure(void* self, ucp_ep_h ep, ucs_status_t status);

  const UcxLibrary& ucx_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h ep_ = nullptr;
  bool handles_errors_ = true;
  int fd_ = -1;
  ucp_mem_h memory_ = nullptr;
  std::unique_ptr<std::byte[]> slots_;
  std::array<void*, kSlots> requests_{};  // of each slot that UCX still reads
  std::size_t next_ = 0;                  // slot
  std::byte* chunk_ = nullptr;            // UCX's: what has arrived
  std::size_t chunk_size_ = 0;
  std::size_t chunk_read_ = 0;
  std::optional<Error> failure_;
};

}  // namespace caftan::transport

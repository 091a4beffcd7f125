/// `Lending`: the tensors of one side that the other side reads out of its memory. Says what each side must know of the
/// other in the headers of their rings, proves that reading works before anything is lent, and reads. Rules:
/// docs/protocols/bulk.md.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "caftan/base/result.hpp"
#include "channels/shm/reading_leave.hpp"

namespace caftan::transport {

/// What one side says of itself, in the header of the ring that it writes.
struct LendingWords {
  std::atomic<std::uint64_t> identity_at;              ///< where its identity lies in its memory; 0: it lends nothing
  std::array<std::atomic<std::uint64_t>, 2> identity;  ///< random
  std::atomic<std::uint64_t> reads;                    ///< 1: it reads the other side's memory, 2: it cannot
  std::atomic<std::uint64_t> ended;                    ///< 1: what it has lent is there no more
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Where these words lie in the header of a ring.
inline constexpr std::size_t kLendingAt = 1024;

/// Returns the process that made the other end of a connected Unix-domain socket. Errors: unsupported (it is in no pid
/// namespace of this process).
Result<pid_t> process_of_peer(int socket);

/// Returns whether the kernel lets this process read memory of others at all. Errors: unsupported.
Result<void> check_reading();

/// One side of one session. Threads: `show` and `probe` before all others; the others any.
class Lending {
 public:
  /// @param own,peer  the headers of the rings that the sides write; they must outlive this object
  /// @param leave  null: another process needs none
  Lending(std::byte* own, std::byte* peer, pid_t process, ReadingLeave* leave) noexcept;
  ~Lending();
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

  /// Lets the peer read this process's memory, and says where it finds the identity. Errors: those of
  /// ReadingLeave::give, io_error (no random numbers).
  Result<void> show();
  /// Reads the identity that the peer has shown, and shows the peer whether that succeeded. Errors: unsupported, with
  /// the reason.
  Result<void> probe();

  /// Returns whether the peer has said that it reads this process's memory.
  bool peer_reads() const noexcept { return peer_.reads.load(std::memory_order_acquire) == kReads; }
  /// Returns whether the peer has said that it cannot.
  bool peer_refuses() const noexcept { return peer_.reads.load(std::memory_order_acquire) == kCannotRead; }
  /// Reads memory that the peer has lent. Errors: peer_down (its process has ended, or what it has lent is there no
  /// more), malformed_payload (there is no such memory), limit_exceeded (no memory in the kernel), unsupported (the
  /// kernel does not let it be read any more).
  Result<void> read(std::uint64_t from, std::span<std::byte> to) const;
  /// Says that what was lent is there no more: called before it is let go of.
  void end() noexcept { own_.ended.store(1, std::memory_order_seq_cst); }

 private:
  using Identity = std::array<std::uint64_t, 2>;
  static constexpr std::uint64_t kReads = 1;
  static constexpr std::uint64_t kCannotRead = 2;

  Result<void> find_identity();

  LendingWords& own_;
  LendingWords& peer_;
  const pid_t process_;
  ReadingLeave* const leave_;
  Identity identity_{};       // the one that this side shows
  Identity peer_identity_{};  // as the peer's memory must have it, at:
  std::uint64_t peer_identity_at_ = 0;
  bool gave_leave_ = false;
};

}  // namespace caftan::transport

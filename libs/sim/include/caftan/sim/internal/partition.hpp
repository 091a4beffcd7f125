/// `Partition`: a kernel with a rule and its frames. Grants and frames go in; events are handled as far as the rule
/// allows, and frames for the others come out. What holds it needs no rule of the protocol: it delivers frames in the
/// order of each sender and calls `advance` after each.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/sim/internal/frame.hpp"
#include "caftan/sim/internal/kernel.hpp"
#include "caftan/sim/internal/promise_rule.hpp"
#include "caftan/sim/internal/window_rule.hpp"

namespace caftan::sim {

/// How partitions wait for each other. The results are the same.
enum class Sync { window, null_message };

/// Sends the frames of a partition.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// Sends a frame to another partition. Frames to one partition arrive in the order of the calls.
  virtual void send(std::uint32_t partition, wire::Bytes frame) = 0;
};

/// What a partition reports at a border.
struct BorderReport {
  Time border{};
  EventCounters counters{};
  std::uint64_t pending = 0;
  Time next = kNever;
  Time finish = kNever;
  Time least_delay = kNever;
  std::uint64_t windows = 0;       ///< windows or runs between waits so far
  std::uint64_t frames = 0;        ///< sent so far
  std::uint64_t empty_frames = 0;  ///< those without an event
  std::uint64_t bytes = 0;         ///< of frames so far

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& border& counters& pending& next& finish& least_delay& windows& frames& empty_frames& bytes;
  }
};

/// Threads: one at a time.
class Partition final : private EventSink {
 public:
  /// @param simulation  a number that all partitions of the run have in common
  /// @param sink  outlives the partition
  Partition(std::uint64_t simulation, std::unique_ptr<Kernel> kernel, Sync sync, FrameSink& sink);

  /// Starts all processes and sends what they have scheduled. Instead of it, after `Kernel::load`: `resume`.
  /// Errors: as Kernel::start.
  Result<void> start();
  /// Goes on from a checkpoint. Errors: as Kernel::loaded.
  Result<void> resume();
  /// The clock lets partitions advance up to `border`. Errors: bad_arguments (below the present border, or before it
  /// was reached).
  Result<void> grant(Time border);
  /// Takes a frame.
  /// @param from  the partition that sent it, where the channel says so: the frame must say the same
  /// Errors: malformed_payload (no frame; of another simulation, sender, kind or round (SM-5); a promise
  /// that fell (SM-7); an event that cannot be (SM-2)). After an error the run is over.
  Result<void> on_frame(wire::ByteView bytes, std::optional<std::uint32_t> from = {});
  /// Handles events as far as the rule allows and sends frames. To be called after `grant` and after each frame.
  /// Errors: as Kernel::run_until.
  Result<void> advance();
  /// Returns whether the granted border is reached: no frame is under way, and queues and processes are the whole
  /// state.
  bool is_at_border() const noexcept;
  /// Returns what to report of the present border. Precondition: is_at_border().
  BorderReport report();
  /// Returns the partitions that this one waits for; empty at a border.
  std::vector<std::uint32_t> waits_for() const;

  /// Returns how far another partition was when it sent its last frame: no event of it lies before that time.
  Time heard_of(std::uint32_t partition) const noexcept { return lanes_[partition].heard; }

  Kernel& kernel() noexcept { return *kernel_; }
  const Kernel& kernel() const noexcept { return *kernel_; }

 private:
  void on_event(std::uint32_t partition, const Event& event, wire::ByteView payload) override;
  FrameHead head(std::uint32_t to) const;
  void send(std::uint32_t to, const FrameHead& head);
  void end_round();
  void send_promises(Time promise, bool has_reached);
  Result<void> arrive();
  Time border() const noexcept;
  Result<void> take(const Frame& frame);
  Result<void> advance_windows();
  Result<void> advance_promises();
  Result<void> refused(std::uint32_t sender, const std::string& what);

  /// What is sent to, and comes from, one other partition.
  struct Lane {
    FrameWriter writer{};
    Time sent = kNever;            // least time in this round
    std::uint64_t round_sent = 0;  // ordinal of the next frame of promises
    std::uint64_t round = 0;       // of the next frame that comes
    std::uint32_t part_sent = 0;
    std::uint32_t part = 0;
    Time heard{};  // what its last frame said of its next event, or promised
  };
  std::uint64_t simulation_;
  std::unique_ptr<Kernel> kernel_;
  Sync sync_;
  FrameSink& sink_;
  WindowRule windows_;
  PromiseRule promises_;
  std::vector<Lane> lanes_;                    // by partition
  std::vector<std::deque<wire::Bytes>> kept_;  // frames of the next round, by sender
  Time granted_{};
  bool has_started_ = false;
  bool has_arrived_ = false;  // at any border
  bool is_running_ = false;   // towards granted_
  BorderReport counts_{};
  std::optional<Error> failure_;
};

}  // namespace caftan::sim

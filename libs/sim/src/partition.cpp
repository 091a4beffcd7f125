#include "caftan/sim/internal/partition.hpp"

#include <algorithm>
#include <utility>

namespace caftan::sim {

Partition::Partition(std::uint64_t simulation, std::unique_ptr<Kernel> kernel, Sync sync, FrameSink& sink)
    : simulation_(simulation),
      kernel_(std::move(kernel)),
      sync_(sync),
      sink_(sink),
      windows_(kernel_->partition(), kernel_->layout().partitions(), kernel_->layout().lookahead()),
      promises_(kernel_->partition(), kernel_->layout().partitions(), kernel_->layout().lookahead()),
      lanes_(kernel_->layout().partitions()),
      kept_(kernel_->layout().partitions()) {
  kernel_->send_to(*this);
}

Result<void> Partition::start() {
  if (Result<void> done = kernel_->start(); !done) return failure_ = done.error(), done;
  has_started_ = true;
  if (sync_ == Sync::window) end_round();
  return {};
}

Result<void> Partition::resume() {
  if (Result<void> done = kernel_->loaded(); !done) return failure_ = done.error(), done;
  has_started_ = true;
  has_arrived_ = true;
  granted_ = kernel_->bound();
  promises_.resume(granted_);
  if (sync_ == Sync::window) end_round();
  return {};
}

Result<void> Partition::grant(Time border) {
  if (failure_) return *failure_;
  if (!has_started_)
    return Error(Errc::bad_arguments, "the partition was granted time before its processes have started");
  if (border < granted_ || is_running_)
    return Error(Errc::bad_arguments, "the partition was granted " + to_string(border) +
                                          (is_running_ ? " before it has reached " : ", below ") + to_string(granted_));
  granted_ = border;
  is_running_ = true;
  windows_.grant(border);
  promises_.grant(border);
  return {};
}

Result<void> Partition::refused(std::uint32_t sender, const std::string& what) {
  failure_ = Error(Errc::malformed_payload, "a frame from partition " + std::to_string(sender) + " " + what);
  return *failure_;
}

Result<void> Partition::on_frame(wire::ByteView bytes, std::optional<std::uint32_t> from) {
  if (failure_) return *failure_;
  const Result<Frame> frame = decode_frame(bytes);
  if (!frame) return failure_ = frame.error(), *failure_;
  const FrameHead& head = frame->head;
  if (head.simulation != simulation_) return refused(head.sender, "is of another simulation");
  if (head.sender >= lanes_.size() || head.sender == kernel_->partition() || from.value_or(head.sender) != head.sender)
    return refused(head.sender, "is not of another partition");
  if ((head.kind == FrameKind::window) != (sync_ == Sync::window))
    return refused(head.sender, "is of another rule: `sync` differs");
  Lane& lane = lanes_[head.sender];
  if (head.round != lane.round || head.part != lane.part)
    return refused(head.sender, "is part " + std::to_string(head.part) + " of round " + std::to_string(head.round) +
                                    ", and part " + std::to_string(lane.part) + " of round " +
                                    std::to_string(lane.round) + " comes next");
  if (sync_ == Sync::window && head.round > windows_.round() + 1)
    return refused(head.sender, "is of round " + std::to_string(head.round) + ", more than one ahead of round " +
                                    std::to_string(windows_.round()));
  ++lane.part;
  if (head.is_last) {
    if (head.next != kNever) lane.heard = std::max(lane.heard, head.next);
    ++lane.round;
    lane.part = 0;
  }
  if (sync_ == Sync::window && head.round != windows_.round()) {
    kept_[head.sender].emplace_back(bytes.begin(), bytes.end());
    return {};
  }
  return take(*frame);
}

/// Takes a frame of the present round.
Result<void> Partition::take(const Frame& frame) {
  const FrameHead& head = frame.head;
  for (const FrameEvent& one : frame.events) {
    if (kernel_->layout().size() <= one.event.source || kernel_->layout().partition_of(one.event.source) != head.sender)
      return refused(head.sender, "has an event of a process of another partition");
    if (Result<void> done = kernel_->insert(one.event, one.payload); !done) return failure_ = done.error(), done;
  }
  kernel_->end_at(head.finish);
  if (sync_ == Sync::window) {
    if (head.is_last && !windows_.on_report(head.sender, {head.next, head.sent}))
      return refused(head.sender, "has not one time for each partition");
  } else if (!promises_.on_promise(head.sender, head.next, head.reached)) {
    return refused(head.sender, "promises less than an earlier one (SM-7)");
  }
  return {};
}

void Partition::on_event(std::uint32_t partition, const Event& event, wire::ByteView payload) {
  Lane& lane = lanes_[partition];
  lane.sent = std::min(lane.sent, Time{event.time});
  const bool is_full = lane.writer.add(event, payload);
  if (!is_full) return;
  FrameHead part = head(partition);
  if (sync_ == Sync::window) {
    part.is_last = false;
    ++lane.part_sent;
  } else {
    part.next = std::max(promises_.promised(), Time{});
    ++lane.round_sent;
  }
  send(partition, part);
}

FrameHead Partition::head(std::uint32_t to) const {
  const bool by_window = sync_ == Sync::window;
  return {.simulation = simulation_,
          .sender = kernel_->partition(),
          .kind = by_window ? FrameKind::window : FrameKind::promise,
          .round = by_window ? windows_.round() : lanes_[to].round_sent,
          .part = lanes_[to].part_sent,
          .is_last = true,
          .finish = kernel_->finish()};
}

void Partition::send(std::uint32_t to, const FrameHead& head) {
  ++counts_.frames;
  if (lanes_[to].writer.empty()) ++counts_.empty_frames;
  wire::Bytes bytes = lanes_[to].writer.finish(head);
  counts_.bytes += bytes.size();
  sink_.send(to, std::move(bytes));
}

/// Sends the last part of a round to all others, and reports for this partition.
void Partition::end_round() {
  WindowRule::Report own{kernel_->next(), {}};
  for (Lane& lane : lanes_) own.sent.push_back(std::exchange(lane.sent, kNever));
  for (std::uint32_t to = 0; to < lanes_.size(); ++to) {
    if (to == kernel_->partition()) continue;
    FrameHead last = head(to);
    last.next = own.next;
    last.sent = own.sent;
    send(to, last);
    lanes_[to].part_sent = 0;
  }
  windows_.on_report(kernel_->partition(), own);
}

Result<void> Partition::advance() {
  if (failure_) return *failure_;
  if (!is_running_) return {};
  Result<void> done = sync_ == Sync::window ? advance_windows() : advance_promises();
  if (!done) failure_ = done.error();
  return done;
}

Result<void> Partition::advance_windows() {
  while (windows_.is_complete()) {
    // The end that a process asked for lies before no partition's bound, so all see it at the same border.
    windows_.grant(std::min(granted_, kernel_->finish()));
    if (windows_.is_at_border()) return arrive();
    const Time bound = windows_.bound();
    windows_.begin_round();
    if (Result<void> done = kernel_->run_until(bound); !done) return done;
    ++counts_.windows;
    end_round();
    for (std::uint32_t sender = 0; sender < lanes_.size(); ++sender) {
      for (const wire::Bytes& bytes : std::exchange(kept_[sender], {})) {
        const Result<Frame> frame = decode_frame(bytes);
        if (!frame) return frame.error();
        if (Result<void> done = take(*frame); !done) return done;
      }
    }
  }
  return {};
}

/// The border is reached: no event before it can come.
Result<void> Partition::arrive() {
  is_running_ = false;
  has_arrived_ = true;
  return kernel_->run_until(border());
}

Result<void> Partition::advance_promises() {
  if (!promises_.has_reached()) {
    if (kernel_->next() < std::min(promises_.bound(), kernel_->finish())) ++counts_.windows;
    if (Result<void> done = kernel_->run_until(promises_.bound()); !done) return done;
    promises_.end_at(kernel_->finish());
    const Time next = kernel_->next();
    const bool has_reached = promises_.may_reach(next);
    send_promises(promises_.promise(next), has_reached);
    if (has_reached) promises_.on_reached();
  }
  if (promises_.is_at_border()) return arrive();
  return {};
}

void Partition::send_promises(Time promise, bool has_reached) {
  for (std::uint32_t to = 0; to < lanes_.size(); ++to) {
    if (to == kernel_->partition()) continue;
    if (lanes_[to].writer.empty() && promise <= promises_.promised() && !has_reached) continue;
    FrameHead frame = head(to);
    frame.next = promise;
    if (has_reached) frame.reached = promises_.target();
    send(to, frame);
    ++lanes_[to].round_sent;
  }
  promises_.on_promised(promise);
}

bool Partition::is_at_border() const noexcept { return has_arrived_ && !is_running_ && !failure_; }

Time Partition::border() const noexcept { return std::min(granted_, kernel_->finish()); }

BorderReport Partition::report() {
  BorderReport report = counts_;
  report.border = border();
  report.counters = kernel_->counters();
  report.pending = kernel_->pending();
  report.next = kernel_->next();
  report.finish = kernel_->finish();
  report.least_delay = kernel_->least_delay();
  return report;
}

std::vector<std::uint32_t> Partition::waits_for() const {
  std::vector<std::uint32_t> waiting;
  if (!is_running_) return waiting;
  for (std::uint32_t other = 0; other < lanes_.size(); ++other) {
    if (other == kernel_->partition()) continue;
    if (sync_ == Sync::window ? !windows_.has_reported(other) : promises_.waits_for(other)) waiting.push_back(other);
  }
  return waiting;
}

}  // namespace caftan::sim

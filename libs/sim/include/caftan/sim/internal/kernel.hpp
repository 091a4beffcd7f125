/// `Kernel`: the logical processes of one partition and their queue. Alone, with all processes, it is the sequential
/// kernel; with others, a rule says how far it may run (`Partition`). Start with `make_kernel`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "caftan/sim/internal/awaited_values.hpp"
#include "caftan/sim/internal/event_queue.hpp"
#include "caftan/sim/internal/layout.hpp"
#include "caftan/sim/internal/lp_table.hpp"
#include "caftan/sim/internal/payload_store.hpp"
#include "caftan/sim/model.hpp"
#include "caftan/sim/record.hpp"
#include "caftan/wire/checkpoint_file.hpp"

namespace caftan::sim {

/// Sees the events of a kernel: a log, or a debugger that stops.
class EventWatch {
 public:
  virtual ~EventWatch() = default;
  /// An event is about to be handled. @param payload  valid during the call
  virtual void before(const Event& event, wire::ByteView payload) = 0;
};

/// What bounds a kernel and what it keeps.
struct KernelOptions {
  std::uint64_t seed = 0;                          ///< of all random streams
  std::uint64_t events = 100'000'000;              ///< the most pending events
  std::uint64_t same_time = 1'000'000;             ///< the most events of one group at one time
  std::uint64_t largest_event = 64 * 1024 * 1024;  ///< bytes; the file's limits.message
  RecordPlan records{};
  EventWatch* watch = nullptr;  ///< sees all events; outlives the kernel
};

/// How many events a kernel has seen; what is pending is not counted here.
struct EventCounters {
  std::uint64_t sent = 0;
  std::uint64_t handled = 0;
  std::uint64_t cancelled = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& sent& handled& cancelled;
  }
};

/// Takes the events that go to other partitions.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// @param payload  valid during the call
  virtual void on_event(std::uint32_t partition, const Event& event, wire::ByteView payload) = 0;
};

/// Threads: one at a time.
class Kernel {
 public:
  /// @param layout, table  placed and complete; make_kernel makes them
  Kernel(std::unique_ptr<const Layout> layout, std::unique_ptr<LpTable> table, std::uint32_t partition,
         KernelOptions options);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Sets where events for other partitions go; not needed with one partition. Outlives the kernel.
  void send_to(EventSink& sink) noexcept { sink_ = &sink; }

  /// Calls `start` of all processes in the order of ids, at time 0. Instead of it, `load` continues an earlier run.
  /// Errors: those of LpContext, user_error (a process threw).
  Result<void> start();
  /// Handles all events before `bound`, and before the end that `finish` asked for, in the order of their keys.
  /// Errors: as start; malformed_payload (bytes of another partition that are no such event). After an error the run is
  /// over.
  Result<void> run_until(Time bound);
  /// Adds an event of another partition. @param event  without payload
  /// Errors: malformed_payload (no such process, type or handler, a source that is here, a time before what was handled
  /// (SM-2)),
  ///   limit_exceeded (too many pending events).
  Result<void> insert(const Event& event, wire::ByteView payload);

  /// Returns the time of the next pending event, kNever without one.
  Time next();
  /// Returns how many events are pending.
  std::uint64_t pending() const noexcept { return queue_.size() - cancelled_.size(); }
  const EventCounters& counters() const noexcept { return counters_; }
  /// Returns the end that `finish` asked for; kNever without one.
  Time finish() const noexcept { return finish_; }
  /// Takes over the end that a process of another partition asked for.
  void end_at(Time finish) noexcept;
  /// Returns the least delay of an event between groups so far; kNever without one.
  Time least_delay() const noexcept { return least_delay_; }
  /// Returns the time up to which all events were handled.
  Time bound() const noexcept { return bound_; }
  /// Returns the time of the last event that was handled.
  Time now() const noexcept { return Time{current_.time}; }

  Recorder& recorder() noexcept { return recorder_; }
  const Layout& layout() const noexcept { return *layout_; }
  std::uint32_t partition() const noexcept { return partition_; }
  const KernelOptions& options() const noexcept { return options_; }

  /// Forgets the statistics before `now`.
  void reset_statistics(Time now);
  /// Returns the statistics of all processes up to `now`, in the order of ids.
  std::vector<LpStatistic> statistics(Time now);

  /// Returns processes and events at the present border. Waits for the futures of pending events (SM-12).
  /// Errors: unsupported, user_error (a `serialize` threw), limit_exceeded, those of the futures.
  Result<wire::CheckpointFile> save();
  /// Takes from one file of a checkpoint what belongs to this partition. To be called for each file, instead of
  /// `start`; then `loaded`. Errors: malformed_payload, invalid_config (another model or seed).
  Result<void> load(const wire::CheckpointFile& file);
  /// All files were loaded. Errors: malformed_payload (a process is in none of them).
  Result<void> loaded() const;

  /// Returns the hash of each process, in the order of ids (SM-18). Errors: as save.
  Result<std::vector<std::uint64_t>> hashes() const;

 private:
  friend class LpContext;
  friend class KernelCheckpoint;
  struct Cancelled {
    std::uint32_t source;
    std::uint64_t sequence;
    bool operator==(const Cancelled&) const = default;
  };
  struct CancelledHash {
    std::size_t operator()(const Cancelled& key) const noexcept { return mix64(key.sequence << 32 ^ key.source); }
  };
  struct StreamHash {
    std::size_t operator()(const std::pair<std::uint32_t, std::uint64_t>& key) const noexcept {
      return mix64(key.second ^ key.first);
    }
  };
  /// How many events were handled at the time of the newest.
  struct AtOneTime {
    std::uint64_t events = 0;
    std::unordered_map<std::uint32_t, std::uint64_t> of_groups{};  // once there are many
  };

  void enter(std::uint32_t id, Time now) noexcept;
  void run();
  void handle(const Event& event);
  void count_at_one_time(const Event& event);
  Event make_event(Time delay, const LpContext::EventType& type, LpId to, ScheduleOptions options);
  EventHandle send(Time delay, const LpContext::EventType& type, LpId to, ScheduleOptions options,
                   wire::ByteView payload);
  EventHandle send(Time delay, const LpContext::EventType& type, LpId to, ScheduleOptions options,
                   std::unique_ptr<FutureEvent> value);
  wire::ByteView wait_for(const Event& event);
  void handle_awaited(Event event);
  void send_awaited();
  Result<void> wait_for_futures();
  void release(const Event& event) noexcept;
  bool cancel(const EventHandle& event);
  std::uint64_t& draws_of(std::string_view stream);
  void ask_to_finish();
  [[noreturn]] void fail(Errc code, std::string text);
  std::string sending(const LpContext::EventType& type, LpId to) const;
  Result<void> guarded(const std::function<void()>& run);
  void push(Event event, wire::ByteView payload);
  bool is_pending(const EventHandle& event) const;

  KernelOptions options_;
  std::unique_ptr<const Layout> layout_;
  std::unique_ptr<LpTable> table_;
  std::uint32_t partition_;
  EventSink* sink_ = nullptr;
  EventQueue queue_;
  PayloadStore payloads_;
  AwaitedValues awaited_;
  std::unordered_set<Cancelled, CancelledHash> cancelled_;  // of pending events
  std::unordered_map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t, StreamHash>
      draws_;  // of streams with names
  Recorder recorder_;
  LpContext context_;
  Event current_{.time = -1};  // the event that is handled, or was last
  Time bound_{};
  Time finish_ = kNever;
  Time least_delay_ = kNever;
  EventCounters counters_;
  AtOneTime at_one_time_;
  std::uint64_t loaded_ = 0;  // processes
  std::optional<Error> failure_;
};

/// Counts the processes of a model and places them; makes none. Errors: as make_kernel.
Result<std::unique_ptr<Layout>> lay_out(const std::function<void(Builder&)>& build, std::uint32_t partitions);

/// Builds a model and makes the processes of one partition. @param build  Model::build, bound to its config; called
/// twice Errors: invalid_config, bad_arguments (the model), user_error (`build` threw).
Result<std::unique_ptr<Kernel>> make_kernel(const std::function<void(Builder&)>& build, const KernelOptions& options,
                                            std::uint32_t partition = 0, std::uint32_t partitions = 1);

/// Calls `make_kernel` for `Model` and its config, which outlives the kernel.
template <class Model>
Result<std::unique_ptr<Kernel>> make_kernel_of(const typename Model::Config& config, const KernelOptions& options,
                                               std::uint32_t partition = 0, std::uint32_t partitions = 1) {
  return make_kernel([&config](Builder& builder) { Model::build(builder, config); }, options, partition, partitions);
}

}  // namespace caftan::sim

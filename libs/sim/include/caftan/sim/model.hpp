/// What a model consists of and what its processes can do. `Builder` is what `Model::build` adds logical processes to,
/// `LpContext` is what each handler gets. A logical process is a plain object: `using Events`, `on` for each event,
/// `start`, `serialize`; it shares nothing with others. Rules: docs/protocols/simulation.md.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/sim/future_event.hpp"
#include "caftan/sim/lp_class.hpp"
#include "caftan/sim/lp_id.hpp"
#include "caftan/sim/random.hpp"
#include "caftan/sim/time.hpp"

namespace caftan::sim {

class Kernel;
class Layout;
class LpTable;

/// How an event is scheduled.
struct ScheduleOptions {
  int priority = 0;  ///< -128 to 127; of events at one time the one of smaller priority comes first
};

/// How numbers of a type that sim does not know, such as tensors, are drawn: `draw(seed, numbers, ordinal)`.
/// caftan/sim_tensor/uniform_for.hpp has that of at::Tensor.
template <class Numbers>
struct UniformFor;

/// What the handlers of a process can do. It is valid during the call only. Threads: that of the handler.
///
/// A mistake (a delay below the lookahead, an unknown process) ends the run: the function throws RpcException, and the
/// run fails with its error also where a handler catches it.
class LpContext {
 public:
  /// Returns the id of the process.
  LpId id() const noexcept { return id_; }
  /// Returns the time of the event that is handled; 0 in `start`.
  Time now() const noexcept { return now_; }

  /// Schedules `event` for the process `to`. An event is a value: it is written now, later changes do not count, those
  /// of the memory of its tensors neither (SM-11).
  /// @param delay  units >= 0, rounded to ticks; to another group at least the model's lookahead
  /// @param event  an E, or a Future<E>, whose event has its key from now on (SM-12). The run waits for the future when
  ///   the event is next, before a checkpoint, and for another partition at the end of the window; its error ends the
  ///   run.
  /// Errors (thrown): lookahead_violation, bad_arguments (delay, unknown process, no handler there, priority),
  ///   limit_exceeded (too many pending events, too large an event).
  template <class E>
  EventHandle schedule(double delay, E&& event, LpId to, ScheduleOptions options = {}) {
    return send(delay_of<E>(delay, to), std::forward<E>(event), to, options);
  }
  /// As above, with a delay in ticks.
  template <class E>
  EventHandle schedule(Time delay, E&& event, LpId to, ScheduleOptions options = {}) {
    return send(delay, std::forward<E>(event), to, options);
  }
  /// As above, for the process itself.
  template <class E>
  EventHandle schedule(double delay, E&& event, ScheduleOptions options = {}) {
    return send(delay_of<E>(delay, id_), std::forward<E>(event), id_, options);
  }
  /// As above, for the process itself, with a delay in ticks.
  template <class E>
  EventHandle schedule(Time delay, E&& event, ScheduleOptions options = {}) {
    return send(delay, std::forward<E>(event), id_, options);
  }

  /// Takes back an event that the process has scheduled for itself. Returns whether it was still pending.
  /// Errors (thrown): bad_arguments (an event for another process, or of one).
  bool cancel(const EventHandle& event);

  /// Returns the process's own stream of random numbers.
  Random& random() noexcept { return random_; }
  /// Returns another stream of the process: draws from it do not move the others.
  Random random(std::string_view stream);
  /// Returns for each number one in [0, 1): a function of the run's seed, the number and `ordinal`, whatever process
  /// asks. @param numbers  for example of agents  @param ordinal  of the draw, for example a tick
  std::vector<double> uniform_for(std::span<const std::uint64_t> numbers, std::uint64_t ordinal) const;
  /// As above, for numbers of another type: an int64 tensor gives a float64 tensor of its shape.
  template <class Numbers>
  requires requires { sizeof(UniformFor<Numbers>); }
  auto uniform_for(const Numbers& numbers, std::uint64_t ordinal) const {
    return UniformFor<Numbers>::draw(seed(), numbers, ordinal);
  }

  /// Notes a value of the series `name`, which is kept if the run's file asks for it.
  void record(std::string_view name, double value);
  /// Ends the run one lookahead after now (SM-8); in a model of one group now. Events at this time and later stay
  /// pending. Errors (thrown): bad_arguments (several groups and no lookahead).
  void finish();

 private:
  friend class Kernel;
  explicit LpContext(Kernel& kernel) noexcept : kernel_(&kernel) {}
  LpContext(const LpContext&) = delete;
  LpContext& operator=(const LpContext&) = delete;

  struct EventType {
    std::uint64_t hash;
    std::string_view name;
  };
  /// @tparam T  an event or a future of one, maybe a reference to it
  template <class T>
  static constexpr EventType type_of() {
    using E = std::remove_cvref_t<T>;
    if constexpr (FutureOfEvent<E>) {
      return type_of<typename E::value_type>();
    } else {
      return {wire::type_hash<E>(), wire::type_name<E>()};
    }
  }
  template <class E>
  Time delay_of(double delay, LpId to) {
    return delay_of(delay, to, type_of<E>());
  }
  Time delay_of(double delay, LpId to, const EventType& type);
  template <class E>
  EventHandle send(Time delay, E&& event, LpId to, ScheduleOptions options) {
    using F = std::remove_cvref_t<E>;
    if constexpr (FutureOfEvent<F>) {
      static_assert(!std::is_lvalue_reference_v<E>,
                    "a future is given away: lp.schedule(delay, std::move(future), to)");
      return send_future(delay, type_of<F>(), to, options,
                         std::make_unique<detail::FutureEventOf<F>>(std::forward<E>(event)));
    } else {
      bytes_.clear();
      detail::write_event(event, bytes_);
      return send_bytes(delay, type_of<F>(), to, options);
    }
  }
  EventHandle send_bytes(Time delay, const EventType& type, LpId to, ScheduleOptions options);
  EventHandle send_future(Time delay, const EventType& type, LpId to, ScheduleOptions options,
                          std::unique_ptr<FutureEvent> value);
  std::uint64_t seed() const noexcept;

  Kernel* kernel_;
  LpId id_{};
  Time now_{};
  std::uint64_t no_draws_ = 0;  // what random_ counts before the first process
  Random random_{0, 0, 0, no_draws_};
  wire::Bytes bytes_{};  // of the event that is sent
};

/// Adds logical processes to a model. `Model::build` is called twice, first to count; the functions that make processes
/// are called for the ids of this partition only, so they must not draw on each other.
class Builder {
 public:
  /// @param table  where the processes of this partition are made; null: only count
  Builder(Layout& layout, LpTable* table) noexcept : layout_(layout), table_(table) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Sets the least delay of an event between two groups, in units, more than 0. Without it groups never send to each
  /// other.
  void lookahead(double units);
  /// As above, in ticks.
  void lookahead(Time least);
  /// Begins a group: the processes up to the next call stay in one partition, and their events may have any delay.
  /// Without groups each process is one.
  void group();
  /// Adds `count` processes; `make(LpId)` returns each. Returns the first id.
  template <class P, class F>
  LpId add(std::uint64_t count, F&& make) {
    const Slots slots = reserve(detail::kLpClass<P>, count);
    for (std::uint64_t i = slots.begin; i < slots.end; ++i) {
      ::new (slots.memory + (i - slots.begin) * sizeof(P)) P(make(LpId(i)));
      made();
    }
    return slots.first;
  }
  /// Adds one process, which `make()` returns. Returns its id.
  template <class P, class F>
  LpId add(F&& make) {
    return add<P>(1, [&make](LpId) { return make(); });
  }
  /// Reports that the model cannot be built: the first error of a model is that of the run.
  void fail(Error error);
  /// Notes what is no error but probably a mistake; the run reports it.
  void warn(std::string text);
  /// Notes what the config says of a moment of the run; `check` warns of a file whose run ends before.
  /// @param what  for example "scenario: 'wheel.tyre' changes"
  void plan(Time at, std::string what);

 private:
  struct Slots {
    LpId first;
    std::uint64_t begin;  // ids of this partition among the new ones
    std::uint64_t end;
    std::byte* memory;
  };
  Slots reserve(const LpClass& type, std::uint64_t count);
  void made();

  Layout& layout_;
  LpTable* table_;
  std::uint64_t next_ = 0;  // id, of the second call
  std::size_t next_range_ = 0;
};

}  // namespace caftan::sim

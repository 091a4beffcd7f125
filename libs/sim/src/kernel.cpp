#include "caftan/sim/internal/kernel.hpp"

#include <algorithm>
#include <utility>

#include "caftan/base/fnv1a.hpp"
#include "kernel_checkpoint.hpp"
#include "model_code.hpp"
#include "rolling_hash.hpp"

namespace caftan::sim {
namespace {

constexpr int kPriorityZero = 128;
constexpr std::size_t kHashedBytes = 64;

EventHandle handle_of(const Event& event) {
  return {Time{event.time}, event.sequence, LpId(event.source), LpId(event.to),
          static_cast<std::uint8_t>(event.priority)};
}

}  // namespace

Kernel::Kernel(std::unique_ptr<const Layout> layout, std::unique_ptr<LpTable> table, std::uint32_t partition,
               KernelOptions options)
    : options_(std::move(options)),
      layout_(std::move(layout)),
      table_(std::move(table)),
      partition_(partition),
      recorder_(options_.records),
      context_(*this) {}

Result<void> Kernel::guarded(const std::function<void()>& run) {
  if (failure_) return *failure_;
  const auto where = [this] {
    std::string text = layout_->name_of(context_.id_.value);
    if (current_.time < 0) return text + ", start";
    return text + ", " + std::string(layout_->event_types()[current_.type].name) + " at " +
           to_string(Time{current_.time});
  };
  const std::optional<Error> thrown = run_model_code(run, where);
  // What LpContext refuses counts also where a handler caught the exception.
  if (thrown && !failure_) failure_ = thrown;
  if (failure_) return *failure_;
  return {};
}

void Kernel::enter(std::uint32_t id, Time now) noexcept {
  context_.id_ = LpId(id);
  context_.now_ = now;
  context_.random_ = Random(options_.seed, id, 0, table_->at(id).draws);
}

Result<void> Kernel::start() {
  return guarded([this] {
    for (std::size_t i = 0; i < table_->size() && !failure_; ++i) {
      const auto id = static_cast<std::uint32_t>(table_->first() + i);
      enter(id, Time{});
      const LpEntry& entry = table_->at(id);
      table_->class_of(entry).start(entry.object, context_);
    }
    send_awaited();
  });
}

Result<void> Kernel::run_until(Time bound) {
  bound_ = std::max(bound_, bound);
  return guarded([this] {
    run();
    send_awaited();
  });
}

void Kernel::run() {
  while (!queue_.empty()) {
    const Event event = queue_.top();
    // `finish` of a handler may lower the end while this runs.
    if (event.time >= std::min(bound_, finish_).ticks) return;
    queue_.pop();
    if (!cancelled_.empty() && cancelled_.erase({event.source, event.sequence}) > 0) {
      release(event);
      continue;
    }
    if (const Event* const soon = queue_.ahead(6)) __builtin_prefetch(&table_->at(soon->to));
    if (const Event* const sooner = queue_.ahead(3)) __builtin_prefetch(table_->at(sooner->to).object);
    if (event.is_awaited()) {
      handle_awaited(event);
    } else {
      handle(event);
    }
    if (failure_) return;
  }
}

void Kernel::handle(const Event& event) {
  if (event.time != current_.time) {
    at_one_time_.events = 0;
    if (!at_one_time_.of_groups.empty()) at_one_time_.of_groups.clear();
  }
  current_ = event;
  if (++at_one_time_.events > options_.same_time) count_at_one_time(event);
  LpEntry& entry = table_->at(event.to);
  const wire::ByteView payload = PayloadStore::view(event);
  if (options_.watch) options_.watch->before(event, payload);
  std::uint64_t hash = mixed_in(entry.hash, static_cast<std::uint64_t>(event.time));
  hash = mixed_in(hash, event.sequence << 8 | event.priority);
  hash = mixed_in(hash, layout_->event_types()[event.type].hash + event.source);
  if (!payload.empty()) {
    hash = mixed_in(hash, payload.size());
    hash = mixed_in(hash, payload.first(std::min(payload.size(), kHashedBytes)));
  }
  entry.hash = hash;
  enter(event.to, Time{event.time});
  table_->handler(entry.type, event.type)(entry.object, payload, context_);
  payloads_.release(event);
  ++counters_.handled;
}

/// Counts by group, once so many events were handled at one time that a group may be in an endless loop (SM-17).
void Kernel::count_at_one_time(const Event& event) {
  if (++at_one_time_.of_groups[layout_->group_of(event.to)] <= options_.same_time) return;
  context_.id_ = LpId(event.to);
  fail(Errc::limit_exceeded,
       layout_->name_of(event.to) + " gets " + std::string(layout_->event_types()[event.type].name) + " at " +
           to_string(Time{event.time}) + ": its group has handled more than " + std::to_string(options_.same_time) +
           " events at this time; a handler probably schedules without delay for ever");
}

void Kernel::fail(Errc code, std::string text) {
  if (!failure_) failure_ = Error(code, std::move(text));
  throw RpcException(*failure_);
}

std::string Kernel::sending(const LpContext::EventType& type, LpId to) const {
  return layout_->name_of(context_.id_.value) + " schedules " + std::string(type.name) + " for " +
         layout_->name_of(to.value) + " at " + to_string(context_.now_);
}

/// Returns the event that the process whose handler runs schedules, without payload, and counts it as sent.
Event Kernel::make_event(Time delay, const LpContext::EventType& type, LpId to, ScheduleOptions options) {
  const LpId from = context_.id_;
  if (delay.ticks < 0)
    fail(Errc::bad_arguments, sending(type, to) + ": the delay of " + to_string(delay) + " is negative");
  if (to.value >= layout_->size())
    fail(Errc::bad_arguments,
         sending(type, to) + ": there is no such LP; the model has " + std::to_string(layout_->size()));
  const bool is_here = table_->has(to.value);
  const std::optional<std::uint8_t> position = layout_->position_of(type.hash);
  const std::uint32_t class_there = is_here ? table_->at(to.value).type : layout_->type_of(to.value);
  if (!position || !table_->handler(class_there, *position))
    fail(Errc::bad_arguments, sending(type, to) + ": its class does not handle this event; add it to its Events");
  if (to != from && layout_->group_of(from.value) != layout_->group_of(to.value)) {
    const Time least = layout_->lookahead();
    if (least == kNever)
      fail(Errc::lookahead_violation,
           sending(type, to) + ", which is in another group, with a delay of " + to_string(delay) +
               ", but the model has no lookahead: call b.lookahead(...) in its build, or put both into one group");
    if (delay < least)
      fail(Errc::lookahead_violation, sending(type, to) + ", which is in another group, with a delay of " +
                                          to_string(delay) + ", below the model's lookahead of " + to_string(least));
    least_delay_ = std::min(least_delay_, delay);
  }
  const int priority = options.priority + kPriorityZero;
  if (priority < 0 || priority > 255)
    fail(Errc::bad_arguments,
         sending(type, to) + ": the priority " + std::to_string(options.priority) + " is not in -128 to 127");
  const Time at = later(context_.now_, delay);
  if (at == kNever)
    fail(Errc::bad_arguments, sending(type, to) + ": the delay of " + to_string(delay) + " leads beyond 2^63 ticks");
  LpEntry& entry = table_->at(from.value);
  if (entry.sequence == Event::kSequences)
    fail(Errc::limit_exceeded, sending(type, to) + ": the LP has scheduled 2^40 events, the most that there can be");
  if (is_here && pending() >= options_.events)
    fail(Errc::limit_exceeded, sending(type, to) + ": more than " + std::to_string(options_.events) +
                                   " events are pending in this partition; raise `events` if the model needs that");
  Event event{.time = at.ticks, .source = from.value, .to = to.value};
  event.sequence = entry.sequence++;
  event.priority = static_cast<std::uint8_t>(priority);
  event.type = *position;
  ++counters_.sent;
  return event;
}

EventHandle Kernel::send(Time delay, const LpContext::EventType& type, LpId to, ScheduleOptions options,
                         wire::ByteView payload) {
  if (payload.size() > options_.largest_event)
    fail(Errc::limit_exceeded, sending(type, to) + too_large(payload.size(), options_.largest_event));
  const Event event = make_event(delay, type, to, options);
  if (table_->has(to.value)) {
    push(event, payload);
  } else {
    sink_->on_event(layout_->partition_of(to.value), event, payload);
  }
  return handle_of(event);
}

// ---- events whose values are futures (SM-12)

EventHandle Kernel::send(Time delay, const LpContext::EventType& type, LpId to, ScheduleOptions options,
                         std::unique_ptr<FutureEvent> value) {
  Event event = make_event(delay, type, to, options);
  event.size = Event::kAwaited;
  event.payload = awaited_.add(std::move(value), sending(type, to));
  if (table_->has(to.value)) {
    queue_.push(event);
  } else {
    awaited_.leave(event);
  }
  return handle_of(event);
}

/// Waits for the value of an event and returns its bytes.
wire::ByteView Kernel::wait_for(const Event& event) {
  const Result<wire::ByteView> bytes = awaited_.wait_for(event.payload, options_.largest_event);
  if (!bytes) fail(bytes.error().code(), bytes.error().message());
  return *bytes;
}

void Kernel::handle_awaited(Event event) {
  const std::uint64_t position = event.payload;
  payloads_.put(event, wait_for(event));
  awaited_.erase(position);
  handle(event);
}

/// Sends the awaited events for other partitions: before the frames that say what this partition has sent.
void Kernel::send_awaited() {
  if (failure_) return;
  for (const Event& waiting : awaited_.take_leaving()) {
    Event event = waiting;
    event.size = 0;
    event.payload = 0;
    sink_->on_event(layout_->partition_of(event.to), event, wait_for(waiting));
    awaited_.erase(waiting.payload);
  }
}

/// Waits for the values of all pending events, in the order of their keys.
Result<void> Kernel::wait_for_futures() {
  return guarded([this] {
    if (awaited_.empty()) return;
    std::vector<Event> events = queue_.all();
    std::erase_if(events, [this](const Event& event) {
      return !event.is_awaited() || cancelled_.contains({event.source, event.sequence});
    });
    std::sort(events.begin(), events.end(), comes_before);
    for (const Event& event : events) wait_for(event);
  });
}

void Kernel::release(const Event& event) noexcept {
  if (event.is_awaited()) {
    awaited_.erase(event.payload);
  } else {
    payloads_.release(event);
  }
}

void Kernel::push(Event event, wire::ByteView payload) {
  payloads_.put(event, payload);
  queue_.push(event);
}

Result<void> Kernel::insert(const Event& event, wire::ByteView payload) {
  if (failure_) return *failure_;
  const auto refused = [&](const std::string& what) {
    failure_ = Error(Errc::malformed_payload, "an event of LP " + std::to_string(event.source) + " for LP " +
                                                  std::to_string(event.to) + " at " + to_string(Time{event.time}) +
                                                  " " + what);
    return *failure_;
  };
  if (!table_->has(event.to)) return refused("is for a process that is not in this partition");
  if (event.source >= layout_->size() || table_->has(event.source))
    return refused("does not come from another partition");
  if (event.type >= layout_->event_types().size() || !table_->handler(table_->at(event.to).type, event.type))
    return refused("is of a type that the process does not handle");
  if (event.time < bound_.ticks)
    return refused("arrived after all before " + to_string(bound_) +
                   " was handled: this is an error of Caftan's own (SM-2)");
  if (pending() >= options_.events) {
    const Error full = refused("is one more than the " + std::to_string(options_.events) +
                               " that may be pending in this partition; raise `events` if the model needs that");
    failure_ = full.with_code(Errc::limit_exceeded);
    return *failure_;
  }
  push(event, payload);
  return {};
}

Time Kernel::next() {
  while (!queue_.empty()) {
    const Event event = queue_.top();
    if (cancelled_.empty() || cancelled_.erase({event.source, event.sequence}) == 0) return Time{event.time};
    queue_.pop();
    release(event);
  }
  return kNever;
}

void Kernel::end_at(Time finish) noexcept { finish_ = std::min(finish_, finish); }

bool Kernel::is_pending(const EventHandle& event) const {
  if (event.time != context_.now_) return event.time > context_.now_;
  // At the present time later events may come before earlier ones of larger keys, so only the queue knows.
  const std::vector<Event> all = queue_.all();
  return std::any_of(all.begin(), all.end(), [&](const Event& other) {
    return other.source == event.source.value && other.sequence == event.sequence;
  });
}

bool Kernel::cancel(const EventHandle& event) {
  if (event.source != context_.id_ || event.to != context_.id_)
    fail(Errc::bad_arguments, layout_->name_of(context_.id_.value) + " cancels an event of LP " +
                                  std::to_string(event.source.value) + " for LP " + std::to_string(event.to.value) +
                                  ": a process can only take back what it has scheduled for itself");
  if (event.sequence >= table_->at(context_.id_.value).sequence || !is_pending(event)) return false;
  if (!cancelled_.insert({event.source.value, event.sequence}).second) return false;
  ++counters_.cancelled;
  return true;
}

std::uint64_t& Kernel::draws_of(std::string_view stream) { return draws_[{context_.id_.value, base::fnv1a(stream)}]; }

void Kernel::ask_to_finish() {
  const bool has_lookahead = layout_->lookahead() != kNever;
  if (!has_lookahead && layout_->groups() > 1)
    fail(Errc::bad_arguments,
         layout_->name_of(context_.id_.value) + " calls finish at " + to_string(context_.now_) +
             ", but the model has several groups and no lookahead, so others may be beyond: call b.lookahead(...)");
  end_at(has_lookahead ? later(context_.now_, layout_->lookahead()) : context_.now_);
}

void Kernel::reset_statistics(Time now) {
  auto visitor = StatisticsVisitor::resetting(now);
  for (std::size_t i = 0; i < table_->size(); ++i) {
    const LpEntry& entry = table_->at(static_cast<std::uint32_t>(table_->first() + i));
    if (const auto visit = table_->class_of(entry).statistics) visit(entry.object, visitor);
  }
}

std::vector<LpStatistic> Kernel::statistics(Time now) {
  std::vector<LpStatistic> all;
  auto visitor = StatisticsVisitor::gathering(now, all);
  for (std::size_t i = 0; i < table_->size(); ++i) {
    const auto id = static_cast<std::uint32_t>(table_->first() + i);
    const LpEntry& entry = table_->at(id);
    visitor.of(LpId(id));
    if (const auto visit = table_->class_of(entry).statistics) visit(entry.object, visitor);
  }
  return all;
}

Result<void> Kernel::loaded() const {
  if (loaded_ == table_->size()) return {};
  return Error(Errc::malformed_payload, "the files of the checkpoint have " + std::to_string(loaded_) + " of the " +
                                            std::to_string(table_->size()) + " processes of this partition");
}

Result<wire::CheckpointFile> Kernel::save() {
  if (auto done = wait_for_futures(); !done) return done.error();
  return KernelCheckpoint(*this).save();
}

Result<void> Kernel::load(const wire::CheckpointFile& file) { return KernelCheckpoint(*this).load(file); }

Result<std::vector<std::uint64_t>> Kernel::hashes() const {
  if (failure_) return *failure_;
  std::vector<std::uint64_t> hashes;
  hashes.reserve(table_->size());
  wire::Bytes state;
  const auto where = [&] { return layout_->name_of(table_->first() + hashes.size()) + ", serialize"; };
  const std::optional<Error> thrown = run_model_code(
      [&] {
        for (std::size_t i = 0; i < table_->size(); ++i) {
          const LpEntry& entry = table_->at(static_cast<std::uint32_t>(table_->first() + i));
          write_state(*table_, entry, state);
          hashes.push_back(mixed_in(entry.hash, state));
        }
      },
      where);
  if (thrown) return *thrown;
  return hashes;
}

}  // namespace caftan::sim

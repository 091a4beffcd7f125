// Random models for the model test, and the naive sequential loop that says what must come out. The behaviour of a
// process is one function, which the library's processes and the naive ones share; queues, order, and sending are not
// shared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "caftan/sim/model.hpp"

namespace caftan::sim::test {

/// What a model consists of. Delays are few ticks, so that ties abound.
struct Shape {
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> groups{};  // of each process, not falling
  std::int64_t lookahead = 1;           // 0: none
  std::int64_t end = 60;                // ticks
  bool finishes = false;                // a process may end the run
};

inline Shape make_shape(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Shape shape{.seed = seed};
  const std::size_t processes = 2 + below(12);
  const bool has_groups = below(2) == 0;
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < processes; ++i) {
    if (i > 0 && (!has_groups || below(3) == 0)) ++group;
    shape.groups.push_back(group);
  }
  shape.lookahead = below(8) == 0 ? 0 : 1 + static_cast<std::int64_t>(below(6));
  shape.end = 20 + static_cast<std::int64_t>(below(60));
  shape.finishes = shape.lookahead > 0 && below(3) == 0;
  return shape;
}

/// The state of a process: what it has seen, in its order.
struct Seen {
  std::vector<std::uint64_t> log{};
  std::optional<EventHandle> kept{};  // an event that may be cancelled

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& log& kept;
  }
};

/// Three types of events: without payload, with one that lies in the event, with one that may lie beside it.
struct Blank {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};
struct Small {
  std::uint32_t tag = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& tag;
  }
};
struct Large {
  std::vector<std::uint8_t> bytes{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& bytes;
  }
};

inline std::uint64_t logged(std::int64_t time, std::uint64_t tag) {
  return mix64(static_cast<std::uint64_t>(time) * 1000003 + tag);
}
inline std::uint64_t tag_of(const Large& large) {
  std::uint64_t tag = large.bytes.size();
  for (const std::uint8_t byte : large.bytes) tag = tag * 31 + byte;
  return tag;
}

/// What a process does at an event (or at its start). `host` offers now, self, below, send, cancel and finish.
template <class Host>
void react(const Shape& shape, Seen& seen, Host& host, std::uint64_t tag) {
  seen.log.push_back(logged(host.now(), tag));
  const auto self = host.self();
  if (seen.kept && host.below(3) == 0) {
    seen.log.push_back(host.cancel(*seen.kept));
    seen.kept.reset();
  }
  const std::uint64_t branches = host.now() < 0 ? 2 : std::uint64_t{0x2110} >> 4 * host.below(4) & 15;
  for (std::uint64_t i = 0; i < branches; ++i) {
    std::uint32_t to = host.below(2) == 0 ? static_cast<std::uint32_t>(host.below(shape.groups.size())) : self;
    const bool is_near = shape.groups[to] == shape.groups[self];
    if (!is_near && shape.lookahead == 0) to = self;
    std::int64_t delay = static_cast<std::int64_t>(host.below(10));
    if (shape.groups[to] != shape.groups[self]) delay += shape.lookahead;
    const EventHandle handle =
        host.send(to, delay, static_cast<int>(host.below(3)) - 1, host.below(3), host.below(180));
    if (to == self && !seen.kept) seen.kept = handle;
  }
  if (shape.finishes && host.now() > 15 && host.below(60) == 0) host.finish();
}

/// A future in the shape of caftan::Future, whose value is there when it is asked for.
template <class E>
struct FutureOf {
  using value_type = E;
  E value{};
  template <class F>
  void then(F&& continuation) && {
    continuation(Result<E>(value));
  }
  Result<E> result() && { return std::move(value); }
};

/// The library's process. Events of an odd tag are scheduled as futures.
struct Process {
  using Events = sim::Events<Blank, Small, Large>;
  const Shape* shape = nullptr;
  Seen seen{};
  struct Host {
    LpContext& lp;
    std::int64_t at;
    std::int64_t now() const { return at; }
    std::uint32_t self() const { return lp.id().value; }
    std::uint64_t below(std::uint64_t n) { return lp.random().below(n); }
    EventHandle send(std::uint32_t to, std::int64_t delay, int priority, std::uint64_t kind, std::uint64_t tag) {
      if (kind == 0) return lp.schedule(Time{delay}, Blank{}, LpId(to), {.priority = priority});
      if (kind == 1) return send(Small{static_cast<std::uint32_t>(tag)}, to, delay, priority, tag);
      return send(Large{std::vector<std::uint8_t>(tag, 7)}, to, delay, priority, tag);
    }
    template <class E>
    EventHandle send(E event, std::uint32_t to, std::int64_t delay, int priority, std::uint64_t tag) {
      if (tag % 2 == 0) return lp.schedule(Time{delay}, event, LpId(to), {.priority = priority});
      return lp.schedule(Time{delay}, FutureOf<E>{std::move(event)}, LpId(to), {.priority = priority});
    }
    bool cancel(const EventHandle& handle) { return lp.cancel(handle); }
    void finish() { lp.finish(); }
  };
  void see(LpContext& lp, std::int64_t at, std::uint64_t tag) {
    Host host{lp, at};
    react(*shape, seen, host, tag);
  }
  void start(LpContext& lp) { see(lp, -1, 0); }
  void on(const Blank&, LpContext& lp) { see(lp, lp.now().ticks, 1); }
  void on(const Small& small, LpContext& lp) { see(lp, lp.now().ticks, 2 + small.tag); }
  void on(const Large& large, LpContext& lp) { see(lp, lp.now().ticks, tag_of(large)); }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& seen;
  }
};

/// The model of a shape.
inline void build(Builder& builder, const Shape& shape) {
  if (shape.lookahead > 0) builder.lookahead(Time{shape.lookahead});
  for (std::size_t i = 0; i < shape.groups.size(); ++i) {
    if (i == 0 || shape.groups[i] != shape.groups[i - 1]) builder.group();
    builder.add<Process>([&shape] { return Process{&shape}; });
  }
}

/// The naive loop: one set of all events.
class Naive {
 public:
  explicit Naive(const Shape& shape)
      : shape_(shape), seen_(shape.groups.size()), draws_(seen_.size()), sequences_(seen_.size()) {
    end_ = shape.end;
    for (std::uint32_t id = 0; id < seen_.size(); ++id) handle(id, -1, 0);
    while (!events_.empty() && std::get<0>(events_.begin()->first) < end_) {
      const auto [key, event] = *events_.begin();
      events_.erase(events_.begin());
      ++handled_;
      handle(event.to, std::get<0>(key), event.tag);
    }
  }
  const std::vector<std::uint64_t>& log(std::size_t id) const { return seen_[id].log; }
  std::uint64_t handled() const { return handled_; }
  std::uint64_t pending() const { return events_.size(); }
  std::int64_t end() const { return end_; }

 private:
  using Key = std::tuple<std::int64_t, int, std::uint32_t, std::uint64_t>;  // time, priority, source, sequence
  struct Item {
    std::uint32_t to;
    std::uint64_t tag;
  };
  struct Host {
    Naive& of;
    std::uint32_t id;
    std::int64_t at;
    std::int64_t now() const { return at; }
    std::uint32_t self() const { return id; }
    std::uint64_t below(std::uint64_t n) { return Random(of.shape_.seed, id, 0, of.draws_[id]).below(n); }
    EventHandle send(std::uint32_t to, std::int64_t delay, int priority, std::uint64_t kind, std::uint64_t tag) {
      const Key key{std::max<std::int64_t>(at, 0) + delay, priority, id, of.sequences_[id]++};
      const std::uint64_t seen = kind == 0 ? 1 : kind == 1 ? 2 + tag : tag_of(Large{std::vector<std::uint8_t>(tag, 7)});
      of.events_[key] = {to, seen};
      return {Time{std::get<0>(key)}, std::get<3>(key), LpId(id), LpId(to), static_cast<std::uint8_t>(priority + 128)};
    }
    bool cancel(const EventHandle& handle) {
      return of.events_.erase({handle.time.ticks, handle.priority - 128, handle.source.value, handle.sequence}) > 0;
    }
    void finish() { of.end_ = std::min(of.end_, at + of.shape_.lookahead); }
  };
  void handle(std::uint32_t id, std::int64_t at, std::uint64_t tag) {
    Host host{*this, id, at};
    react(shape_, seen_[id], host, tag);
  }

  const Shape& shape_;
  std::map<Key, Item> events_;
  std::vector<Seen> seen_;
  std::vector<std::uint64_t> draws_;
  std::vector<std::uint64_t> sequences_;
  std::uint64_t handled_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace caftan::sim::test

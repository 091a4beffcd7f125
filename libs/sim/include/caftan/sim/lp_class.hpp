/// What a kernel must know of a class of logical processes, derived from the class itself: its events, how a handler is
/// called, how its state is written. Users write `using Events = sim::Events<...>`; the rest is for `Builder`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "caftan/sim/statistics.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/self_contained.hpp"
#include "caftan/wire/type_name.hpp"

namespace caftan::sim {

class LpContext;

/// The types of the events that a class of logical processes handles.
template <class... Es>
struct Events {
  static_assert((std::is_default_constructible_v<Es> && ...), "an event is read into a default constructed object");
};

/// A class of logical processes as data.
struct LpClass {
  /// The handler of one type of event.
  struct Handler {
    std::uint64_t event = 0;  ///< type hash
    std::string_view event_name{};
    void (*handle)(void* lp, wire::ByteView payload, LpContext& context) = nullptr;
  };
  std::string_view name{};
  std::uint64_t hash = 0;
  std::size_t size = 0;
  std::size_t alignment = 0;
  std::span<const Handler> handlers{};
  void (*start)(void* lp, LpContext& context) = nullptr;
  /// Writes the state to an archive with a SelfContained, `load` reads it from such a one.
  void (*save)(const void* lp, wire::OutArchive& archive) = nullptr;
  void (*load)(void* lp, wire::InArchive& archive) = nullptr;
  void (*destroy)(void* lp) = nullptr;
  void (*statistics)(void* lp, StatisticsVisitor& visitor) = nullptr;  ///< null: it has none
};

namespace detail {

/// Appends an event to `to`, with all that it has (SM-11). Throws EncodeError.
template <class E>
void write_event(const E& event, wire::Bytes& to) {
  if constexpr (!std::is_empty_v<E>) {
    wire::SelfContained whole;
    wire::OutArchive archive(to);
    archive.attach(&whole);
    archive << event;
  }
}

/// Reads an event of `payload`. Throws DecodeError.
template <class E>
E event_of(wire::ByteView payload) {
  E event{};
  if constexpr (!std::is_empty_v<E>) {
    wire::SelfContained whole;
    wire::InArchive archive(payload);
    archive.attach(&whole);
    archive >> event;
    if (archive.remaining() > 0) throw wire::DecodeError("the event has bytes left");
  }
  return event;
}

template <class P, class List>
struct HandlersOf;
template <class P, class... Es>
struct HandlersOf<P, Events<Es...>> {
  template <class E>
  static void handle(void* lp, wire::ByteView payload, LpContext& context) {
    static_assert(
        requires(P & process, const E& event) { process.on(event, context); },
        "a class of logical processes needs `void on(const E& event, sim::LpContext& lp)` for each E of its Events");
    const E event = event_of<E>(payload);
    static_cast<P*>(lp)->on(event, context);
  }
  static constexpr LpClass::Handler kHandlers[] = {
      {wire::type_hash<Es>(), wire::type_name<Es>(), &HandlersOf::template handle<Es>}...};
};

template <class P>
constexpr LpClass make_lp_class() {
  static_assert(
      requires { typename P::Events; },
      "a class of logical processes names its events: using Events = sim::Events<A, B>");
  static_assert(
      requires(P & process, LpContext & context) { process.start(context); },
      "a class of logical processes needs `void start(sim::LpContext& lp)`");
  LpClass result{
      .name = wire::type_name<P>(),
      .hash = wire::type_hash<P>(),
      .size = sizeof(P),
      .alignment = alignof(P),
      .handlers = HandlersOf<P, typename P::Events>::kHandlers,
      .start = [](void* lp, LpContext& context) { static_cast<P*>(lp)->start(context); },
      .save = [](const void* lp, wire::OutArchive& archive) { archive << *static_cast<const P*>(lp); },
      .load = [](void* lp, wire::InArchive& archive) { archive >> *static_cast<P*>(lp); },
      .destroy = [](void* lp) { static_cast<P*>(lp)->~P(); },
  };
  if constexpr (requires(P & process, StatisticsVisitor & visitor) { P::statistics(visitor, process); }) {
    result.statistics = [](void* lp, StatisticsVisitor& visitor) { P::statistics(visitor, *static_cast<P*>(lp)); };
  }
  return result;
}

template <class P>
inline constexpr LpClass kLpClass = make_lp_class<P>();

}  // namespace detail
}  // namespace caftan::sim

/// Distinct id types. Two ids of different kinds never compare or convert; each id made by a worker carries the
/// incarnation of its maker, so that it is never repeated (RR-1).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace caftan {

/// A worker's number in its job: 0, 1, ... in the order of the application file. Peers may not choose it.
struct WorkerId {
  std::uint32_t value = 0;
  auto operator<=>(const WorkerId&) const = default;
};

/// One life of a worker: random, never zero, new at each start.
struct Incarnation {
  std::uint64_t value = 0;
  auto operator<=>(const Incarnation&) const = default;
};

/// One life of a worker.
struct WorkerLife {
  WorkerId id;
  Incarnation incarnation;
  auto operator<=>(const WorkerLife&) const = default;
};

/// An id unique over the whole job and all incarnations: who made it, in which life, and a counter from 1.
template <class Tag>
struct GlobalId {
  WorkerId worker;
  Incarnation incarnation;
  std::uint64_t number = 0;  ///< 0 = no id
  auto operator<=>(const GlobalId&) const = default;
  explicit operator bool() const noexcept { return number != 0; }
  /// Returns the life that made the id.
  WorkerLife maker() const noexcept { return {worker, incarnation}; }
};

using RRefId = GlobalId<struct RRefIdTag>;                        ///< a remote value; made by its creator
using ForkId = GlobalId<struct ForkIdTag>;                        ///< one user reference to a remote value
using ContextId = GlobalId<struct ContextIdTag>;                  ///< an autograd context
using AutogradMessageId = GlobalId<struct AutogradMessageIdTag>;  ///< one recorded message
/// A request in flight. Unique among the requests of one session, so it needs no maker.
struct CallId {
  std::uint64_t value = 0;
  auto operator<=>(const CallId&) const = default;
};

/// Returns "worker.number", for logs and errors.
template <class Tag>
std::string to_string(const GlobalId<Tag>& id) {
  return std::to_string(id.worker.value) + "." + std::to_string(id.number);
}

/// Mixes a 64-bit number well enough for hash tables (splitmix64's finalizer).
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace caftan

template <>
struct std::hash<caftan::WorkerId> {
  std::size_t operator()(caftan::WorkerId id) const noexcept { return caftan::mix64(id.value); }
};
template <>
struct std::hash<caftan::CallId> {
  std::size_t operator()(caftan::CallId id) const noexcept { return caftan::mix64(id.value); }
};
template <class Tag>
struct std::hash<caftan::GlobalId<Tag>> {
  std::size_t operator()(const caftan::GlobalId<Tag>& id) const noexcept {
    return caftan::mix64(id.number ^ caftan::mix64(id.incarnation.value + id.worker.value));
  }
};

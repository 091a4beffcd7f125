/// How an actor of another worker is named on the wire: always within one session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "caftan/base/ids.hpp"

namespace caftan::remote {

enum class AddressKind : std::uint8_t {
  none = 0,
  exported = 1,    ///< a number of the export table of the session
  owner_rref = 2,  ///< the actor of an OwnerRRef, by RRefId
  user_rref = 3,   ///< the actor of a fork, by ForkId; the exporting worker announces its end unasked (RR-4)
  root = 4,        ///< the root actor of the sender; as the target of a message, that of the receiver
  /// A number of the receiver's own export table, in a handle of one of its own actors that it gets back.
  returned = 5,
  autograd_context = 6,  ///< the actor of an autograd context at the receiver, by ContextId
  send_function = 7,     ///< the actor of a SendFunction at the receiver, by AutogradMessageId
  recv_function = 8,     ///< the actor of a RecvFunction, by AutogradMessageId
  sim_partition = 9,     ///< the actor of a simulation's partition at the receiver, by (simulation, index)
};

/// Returns whether addresses of this kind are names that every worker can form: no export table lists them, the
/// worker's NamedActors finds them. A kind that this version does not know is a name that no actor has (WI-23).
constexpr bool is_name(AddressKind kind) noexcept { return kind >= AddressKind::autograd_context; }

struct Address {
  static constexpr std::size_t kSize = 1 + 4 + 8 + 8;  ///< encoded

  AddressKind kind = AddressKind::none;
  WorkerId worker;
  Incarnation incarnation;
  std::uint64_t number = 0;

  static Address of(const RRefId& id) noexcept {
    return {AddressKind::owner_rref, id.worker, id.incarnation, id.number};
  }
  static Address of(const ForkId& id) noexcept {
    return {AddressKind::user_rref, id.worker, id.incarnation, id.number};
  }
  static Address of(const ContextId& id) noexcept {
    return {AddressKind::autograd_context, id.worker, id.incarnation, id.number};
  }
  static Address send_function(const AutogradMessageId& id) noexcept {
    return {AddressKind::send_function, id.worker, id.incarnation, id.number};
  }
  static Address recv_function(const AutogradMessageId& id) noexcept {
    return {AddressKind::recv_function, id.worker, id.incarnation, id.number};
  }
  static Address sim_partition(std::uint64_t simulation, std::uint32_t index) noexcept {
    return {AddressKind::sim_partition, {}, Incarnation{simulation}, index};
  }
  static Address root() noexcept { return {AddressKind::root, {}, {}, 0}; }
  static Address exported(std::uint64_t number) noexcept { return {AddressKind::exported, {}, {}, number}; }

  ContextId context_id() const noexcept { return {worker, incarnation, number}; }
  AutogradMessageId message_id() const noexcept { return {worker, incarnation, number}; }

  auto operator<=>(const Address&) const = default;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& kind& worker& incarnation& number;
  }
};

}  // namespace caftan::remote

template <>
struct std::hash<caftan::remote::Address> {
  std::size_t operator()(const caftan::remote::Address& a) const noexcept {
    return caftan::mix64((a.number + static_cast<std::uint64_t>(a.kind) * 0x9e3779b97f4a7c15ULL) ^
                         caftan::mix64(a.incarnation.value + a.worker.value));
  }
};

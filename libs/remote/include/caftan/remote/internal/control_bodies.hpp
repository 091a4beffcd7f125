/// The bodies of the frames about actors, but for the values of messages and replies: docs/protocols/wire.md, frames 20
/// and 22 to 27. `wire::encode` and `wire::decode` write and read them.
#pragma once

#include <cstddef>

#include "caftan/base/result.hpp"
#include "caftan/remote/internal/address.hpp"

namespace caftan::remote {

/// The body of link and unlink; the first bytes of an actor message.
struct RouteBody {
  static constexpr std::size_t kSize = 2 * Address::kSize;  ///< encoded

  Address to;
  Address from;  ///< no address: the message has no sender

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& to& from;
  }
};

/// The body of monitor and demonitor.
struct MonitorBody {
  Address actor;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& actor;
  }
};

/// The body of down.
struct DownBody {
  static constexpr std::size_t kBesideReason = Address::kSize;  ///< bytes

  Address actor;
  Error reason;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& actor& reason;
  }
};

/// The body of exit.
struct ExitBody {
  static constexpr std::size_t kBesideReason = RouteBody::kSize;  ///< bytes

  Address to;
  Address from;  ///< the actor that has ended
  Error reason;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& to& from& reason;
  }
};

}  // namespace caftan::remote

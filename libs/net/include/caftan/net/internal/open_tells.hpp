/// `OpenTells`: the one-way calls that were handed to a peer and have not ended there, as far as the peer has reported.
/// Rules TL-3 and TL-5: docs/protocols/tell.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/base/internal/fifo.hpp"
#include "caftan/base/result.hpp"

namespace caftan::net {

/// Threads: none of its own and no lock.
class OpenTells {
 public:
  /// What a one-way call keeps until it has ended.
  struct Tell {
    std::uint64_t room = 0;              ///< of the peer's window
    std::shared_ptr<const void> keep{};  ///< the reference to the object that it calls
  };

  /// A one-way call was handed over.
  void append(Tell&& tell) { open_.push_back(std::move(tell)); }
  /// The peer reports that `count` more have ended. They are counted, not named: as many of the oldest are returned,
  /// for the caller to give their room back. Errors: malformed_payload (none, or more than were handed over).
  Result<std::vector<Tell>> on_ended(std::uint64_t count);
  /// Returns all that are left, of which none is any more.
  std::vector<Tell> take_all();
  std::size_t size() const noexcept { return open_.size(); }

 private:
  std::vector<Tell> take(std::size_t count);

  base::Fifo<Tell> open_;
};

}  // namespace caftan::net

/// Distinguishes errors of calls to a worker that is gone from those of a worker that is there.
#pragma once

#include "caftan/base/error.hpp"

namespace caftan {

/// Returns whether a call has failed because its worker was lost, or could not be reached.
inline bool is_loss_of_peer(const Error& error) {
  return error.code() == Errc::peer_down || error.code() == Errc::peer_unreachable;
}

}  // namespace caftan

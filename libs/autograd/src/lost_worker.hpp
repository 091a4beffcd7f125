/// The error of everything that a lost worker was needed for.
#pragma once

#include <string>

#include "caftan/autograd/internal/messages.hpp"

namespace caftan::autograd {

/// @param name  of the worker; if empty, the error names the worker by its number
/// @param why  what the worker was needed for: "which takes part in pass 0.7#2"
inline Error lost_worker(WorkerLife peer, const std::string& name, const std::string& why) {
  const std::string who = name.empty() ? name_of(peer) : name;
  return Error(Errc::peer_down, name, "lost " + who + ", " + why);
}

}  // namespace caftan::autograd

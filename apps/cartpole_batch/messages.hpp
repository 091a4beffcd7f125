/// The agent's order to an observer.
#pragma once

#include <cstdint>

namespace caftan::cartpole_batch {

struct PlayOrder {
  std::uint64_t observer = 0;     ///< index of the receiver among the agent's observers
  std::int64_t episode = 0;       ///< from 1
  std::int64_t steps = 0;         ///< env steps, >= 1
  double gamma = 1;               ///< discount of the returns
  std::uint64_t shared_seed = 0;  ///< the seed from which all observers start if their seeding is "same"
  bool batched = true;            ///< the agent answers several observers with one run

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& observer& episode& steps& gamma& shared_seed& batched;
  }
};

}  // namespace caftan::cartpole_batch

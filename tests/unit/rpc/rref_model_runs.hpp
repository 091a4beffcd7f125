/// Runs of many histories of the RRef model until one is bad.
#pragma once

#include <cstdint>
#include <utility>

#include "histories.hpp"
#include "rref_model_world.hpp"

namespace caftan::rpc::model {

struct Found {
  bool bad = false;
  std::uint64_t histories = 0;  ///< that were run
  History history;              ///< the bad one, as it was drawn
};

/// Runs the histories [first, last) of `seed` until one is bad.
inline Found first_bad_history(Without without, std::uint64_t seed, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t index = first; index < last; ++index) {
    History history = make_history(seed, index);
    if (!World(without).run(history).empty()) return {true, index - first + 1, std::move(history)};
  }
  return {false, last - first, {}};
}

}  // namespace caftan::rpc::model

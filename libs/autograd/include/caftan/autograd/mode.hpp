/// `Mode` of a backward pass, as `BackwardOptions` takes it.
#pragma once

#include <cstdint>

namespace caftan::autograd {

/// How a pass finds out which recorded messages take part.
enum class Mode : std::uint8_t {
  smart = 0,  ///< marks first: branches that the roots do not use are left alone
  fast = 1,   ///< all recorded sends take part, as in the reference: fewer messages, but an unused branch is an error
};
constexpr bool is_valid(Mode mode) noexcept { return mode <= Mode::fast; }

}  // namespace caftan::autograd

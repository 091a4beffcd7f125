/// `CallSection`: what a frame of a call says about its autograd context: the content of section `autograd`. Layout:
/// docs/protocols/dist_autograd.md, "Layout".
#pragma once

#include <cstdint>

#include "caftan/autograd/internal/decided_set.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::autograd {

struct CallSection {
  ContextId context;
  /// Id of the message of the frame's recorded tensors; its number is 0 if none is recorded.
  AutogradMessageId message;
  std::uint64_t order_key = 0;  ///< of the call, or of its reply
  DecidedSet decided;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& context& message& order_key& decided;
  }
};

}  // namespace caftan::autograd

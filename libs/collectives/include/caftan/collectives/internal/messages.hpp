/// What the members of a group send each other (docs/protocols/collectives.md, Messages).
#pragma once

#include <cstdint>
#include <string>

#include "caftan/base/error.hpp"

namespace caftan::collectives {

/// Which group a message is of.
struct GroupKey {
  std::string name{};
  std::uint64_t instance = 0;  ///< how many groups of this name its members have made before
  std::uint64_t members = 0;   ///< a hash of the members' names in their order, and of the backend

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& instance& members;
  }
};

/// What a piece is of.
struct PieceHeader {
  std::uint64_t operation = 0;
  std::uint8_t part = 0;  ///< 0: what the sender has; 1: a reduced chunk
  std::string what{};     ///< the operation and its tensors: "all_reduce mean of Float [3, 4]"

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& operation& part& what;
  }
};

/// An error as it travels, without its cause.
struct Reason {
  std::uint8_t code = 0;
  std::string worker{};
  std::string text{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& code& worker& text;
  }
};

}  // namespace caftan::collectives

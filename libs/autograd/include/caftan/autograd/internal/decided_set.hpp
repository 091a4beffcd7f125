/// `DecidedSet`: which backward passes of one context are decided, and how. It rides in every frame that carries a
/// context; the home's write into it is the commit point of a pass (docs/protocols/dist_autograd.md, "One pass").
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::autograd {

/// The number of a pass within its context, granted by the context's home: 1, 2, ...
struct PassNumber {
  std::uint64_t value = 0;  ///< 0 = no pass
  auto operator<=>(const PassNumber&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value;
  }
};

/// All passes up to `up_to()` are decided, ok but for the short list of failed ones. Values of one context are all
/// prefixes of one truth, so the longer of two includes the other.
class DecidedSet {
 public:
  /// A context with more failed passes than this opens no further one.
  static constexpr std::size_t kMostFailed = 64;

  PassNumber up_to() const noexcept { return up_to_; }
  /// Returns whether `pass` is decided, ok or failed.
  bool contains(PassNumber pass) const noexcept { return pass.value != 0 && pass <= up_to_; }
  /// Returns whether `pass` is decided and ok.
  bool is_ok(PassNumber pass) const noexcept;
  const std::vector<PassNumber>& failed() const noexcept { return failed_; }

  /// Decides the next pass, number up_to + 1. Precondition: failed().size() < kMostFailed if it failed.
  void decide_next(bool ok);
  /// Takes over what `other` knows beyond this. Returns true if there was anything new.
  bool learn(const DecidedSet& other);

  bool operator==(const DecidedSet&) const = default;

 private:
  friend struct wire::Codec<DecidedSet>;
  PassNumber up_to_;
  std::vector<PassNumber> failed_;  // ascending
};

/// Returns for example "3 (failed: 2)", for logs and traces.
std::string to_string(const DecidedSet& decided);

}  // namespace caftan::autograd

/// Decoding refuses a list that is too long, not ascending, or beyond `up_to`.
template <>
struct caftan::wire::Codec<caftan::autograd::DecidedSet> {
  static void save(OutArchive& to, const autograd::DecidedSet& set);
  static void load(InArchive& from, autograd::DecidedSet& set);
};

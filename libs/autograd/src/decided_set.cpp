#include "caftan/autograd/internal/decided_set.hpp"

#include <algorithm>
#include <cassert>

namespace caftan::autograd {

bool DecidedSet::is_ok(PassNumber pass) const noexcept {
  return contains(pass) && !std::binary_search(failed_.begin(), failed_.end(), pass);
}

void DecidedSet::decide_next(bool ok) {
  assert(ok || failed_.size() < kMostFailed);
  ++up_to_.value;
  if (!ok) failed_.push_back(up_to_);
}

bool DecidedSet::learn(const DecidedSet& other) {
  if (other.up_to_ <= up_to_) return false;
  *this = other;
  return true;
}

std::string to_string(const DecidedSet& decided) {
  std::string text = std::to_string(decided.up_to().value);
  const char* before = " (failed: ";
  for (const PassNumber pass : decided.failed()) {
    text += before + std::to_string(pass.value);
    before = ", ";
  }
  return decided.failed().empty() ? text : text + ")";
}

}  // namespace caftan::autograd

namespace caftan::wire {

void Codec<autograd::DecidedSet>::save(OutArchive& to, const autograd::DecidedSet& set) {
  to << set.up_to_ << set.failed_;
}

void Codec<autograd::DecidedSet>::load(InArchive& from, autograd::DecidedSet& set) {
  from >> set.up_to_ >> set.failed_;
  if (set.failed_.size() > autograd::DecidedSet::kMostFailed) throw DecodeError("too many failed passes");
  autograd::PassNumber last;
  for (const autograd::PassNumber pass : set.failed_) {
    if (pass <= last || pass > set.up_to_) throw DecodeError("failed passes are not ascending");
    last = pass;
  }
}

}  // namespace caftan::wire

#include "saved_state.hpp"

#include <span>
#include <tuple>

#include "state_format.hpp"

namespace caftan::optim {
namespace {

constexpr std::uint64_t kSavedMagic = 0x54504f5444544643;  // "CFTDTOPT"
constexpr std::uint32_t kSavedVersion = 1;                 // without initial rates
constexpr std::uint32_t kSavedWithInitial = 2;             // with them

}  // namespace

Result<void> SavedState::write(wire::Bytes& to) const {
  const std::uint32_t version = initial_lrs.empty() ? kSavedVersion : kSavedWithInitial;
  wire::append(to, std::as_bytes(std::span(&kSavedMagic, 1)));
  wire::append(to, std::as_bytes(std::span(&version, 1)));
  if (version == kSavedVersion) return wire::encode_into(to, std::tie(step, lrs, owners));
  return wire::encode_into(to, std::tie(step, lrs, owners, initial_lrs));
}

Result<void> SavedState::read(wire::ByteView bytes) {
  const auto content = after_prefix(bytes, kSavedMagic, kSavedWithInitial);
  if (!content) return content.error();
  if (content->version < kSavedWithInitial) return wire::decode_into(content->bytes, std::tie(step, lrs, owners));
  return wire::decode_into(content->bytes, std::tie(step, lrs, owners, initial_lrs));
}

}  // namespace caftan::optim

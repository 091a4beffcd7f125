#include "saved_state.hpp"

#include <span>
#include <tuple>

#include "caftan/wire/checkpoint_file.hpp"
#include "state_parts.hpp"

namespace caftan::optim {
namespace {

constexpr std::uint64_t kSavedMagic = 0x54504f5444544643;  // "CFTDTOPT"
constexpr std::uint32_t kSavedWithInitial = 2;             // with initial rates
constexpr std::uint32_t kSavedWithManifest = 3;            // with a manifest, and momenta

/// An owner as versions 1 and 2 have it.
struct OwnerWithoutParameters {
  std::string worker;
  std::vector<std::uint32_t> groups;
  wire::Bytes state;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& groups& state;
  }
};

/// What the manifest says of an owner's part, which stands behind the manifest.
struct PartFacts {
  std::string worker;
  std::vector<std::uint32_t> groups;
  std::vector<std::uint64_t> parameters;
  std::vector<std::string> names;
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;  // CRC-32C

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& groups& parameters& names& size& checksum;
  }
};

/// What stands in front of the parts.
struct Manifest {
  StepNumber step;
  std::vector<double> lrs;
  std::vector<double> initial_lrs;
  Momenta momenta;
  std::vector<PartFacts> parts;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& lrs& initial_lrs& momenta& parts;
  }
};

Error damaged(const std::string& what) {
  return Error(Errc::malformed_payload, "the saved optimizer is truncated or damaged in " + what +
                                            ": its checksum is another one; use another checkpoint");
}

}  // namespace

Result<void> SavedState::write(wire::Bytes& to) const {
  Manifest manifest{step, lrs, initial_lrs, momenta, {}};
  for (const SavedOwner& owner : owners) {
    manifest.parts.push_back(
        {owner.worker, owner.groups, owner.parameters, owner.names, owner.state.size(), wire::crc32c(owner.state)});
  }
  const auto head = wire::encode(manifest);
  if (!head) return head.error();
  put(to, kSavedMagic);
  put(to, kSavedWithManifest);
  put(to, std::uint64_t{head->size()});
  put(to, wire::crc32c(*head));
  wire::append(to, *head);
  for (const SavedOwner& owner : owners) wire::append(to, owner.state);
  return {};
}

Result<void> SavedState::read(wire::ByteView bytes) {
  const auto content = after_prefix(bytes, kSavedMagic, kSavedWithManifest);
  if (!content) return content.error();
  bytes = content->bytes;
  if (content->version < kSavedWithManifest) {
    std::vector<OwnerWithoutParameters> parts;
    auto read = content->version < kSavedWithInitial
                    ? wire::decode_into(bytes, std::tie(step, lrs, parts))
                    : wire::decode_into(bytes, std::tie(step, lrs, parts, initial_lrs));
    if (!read) return read;
    for (auto& part : parts)
      owners.push_back({std::move(part.worker), std::move(part.groups), std::move(part.state), {}, {}});
    return {};
  }
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;
  if (!take(bytes, size) || !take(bytes, checksum) || size > bytes.size() ||
      wire::crc32c(bytes.first(size)) != checksum) {
    return damaged("its manifest");
  }
  Manifest manifest;
  if (auto read = wire::decode_into(bytes.first(size), manifest); !read) return read;
  bytes = bytes.subspan(size);
  for (PartFacts& part : manifest.parts) {
    if (part.size > bytes.size() || wire::crc32c(bytes.first(part.size)) != part.checksum) {
      return damaged("the part of " + part.worker);
    }
    wire::Bytes state;
    wire::append(state, bytes.first(part.size));
    bytes = bytes.subspan(part.size);
    owners.push_back({std::move(part.worker), std::move(part.groups), std::move(state), std::move(part.parameters),
                      std::move(part.names)});
  }
  if (!bytes.empty()) {
    return Error(Errc::malformed_payload, std::to_string(bytes.size()) + " bytes too many in the saved optimizer");
  }
  step = manifest.step;
  lrs = std::move(manifest.lrs);
  initial_lrs = std::move(manifest.initial_lrs);
  momenta = std::move(manifest.momenta);
  return {};
}

}  // namespace caftan::optim

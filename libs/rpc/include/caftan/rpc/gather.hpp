/// Values that the members of a set of workers give each other: `CallSite::all_gather` and `barrier`. Here is how a
/// value becomes a contribution that any worker can pass on, and back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/rpc/future.hpp"
#include "caftan/rpc/packing.hpp"

namespace caftan::rpc {

/// The value of one member, encoded: its type, its bytes, and its tensors beside.
struct Contribution {
  std::uint64_t type = 0;  ///< hash of the name of the type
  std::string type_name;
  std::string bytes;
  std::vector<at::Tensor> tensors;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& type& type_name& bytes& tensors;
  }
};

/// The contributions of all members with their names, in the order of their ids.
using Contributions = std::vector<std::pair<std::string, Contribution>>;

/// What one worker brings to a round.
struct GatherRequest {
  std::string what;                  ///< "barrier" or "all_gather", for errors
  std::vector<std::string> members;  ///< names; none = all members of the job
  Contribution value;
};

/// Encodes a value. Errors: unsupported (it has an RRef, or a part that cannot travel).
template <class T>
Result<Contribution> contribute(const T& value) {
  Contribution contribution{wire::type_hash<T>(), std::string(wire::type_name<T>()), {}, {}};
  wire::Bytes bytes;
  if (const Result<void> done = encode_value(value, bytes, contribution.tensors); !done) {
    return Error(done.error().code(), "all_gather: " + done.error().text());
  }
  contribution.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return contribution;
}

/// Decodes the value of `member`. Errors: wrong_type (it gave a value of another type), malformed_payload.
template <class T>
Result<T> take_contribution(const std::string& member, const Contribution& contribution) {
  if (contribution.type != wire::type_hash<T>()) {
    return Error(Errc::wrong_type, member,
                 "all_gather: " + member + " has given a " + contribution.type_name + ", this worker a " +
                     std::string(wire::type_name<T>()));
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(contribution.bytes.data());
  Result<T> value = decode_value<T>({bytes, contribution.bytes.size()}, contribution.tensors);
  if (value) return value;
  return Error(value.error().code(), member, "all_gather: " + member + ": " + value.error().text());
}

/// Decodes the values of all members, by their names.
template <class T>
Result<std::map<std::string, T>> take_contributions(const Contributions& all) {
  std::map<std::string, T> values;
  for (const auto& [member, contribution] : all) {
    Result<T> value = take_contribution<T>(member, contribution);
    if (!value) return value.error();
    values.emplace(member, *std::move(value));
  }
  return values;
}

}  // namespace caftan::rpc

#include "caftan/remote/internal/message_registry.hpp"

#include <cstring>
#include <stdexcept>

#include "caftan/base/fnv1a.hpp"

namespace caftan::remote {

std::uint64_t MessageRegistry::id_of(const std::string& name) { return base::fnv1a(name); }

void MessageRegistry::add(std::type_index type, Codec codec) {
  const std::uint64_t id = codec.id;
  if (by_type_.contains(type) || by_id_.contains(id)) {
    throw std::logic_error("message '" + codec.name + "' or its type is registered already");
  }
  by_type_.emplace(type, std::move(codec));
  by_id_.emplace(id, type);
}

std::string MessageRegistry::name_of(std::uint64_t id) const {
  const auto type = by_id_.find(id);
  return type == by_id_.end() ? std::string() : by_type_.at(type->second).name;
}

Result<std::uint64_t> MessageRegistry::encode(const caf::type_erased_tuple& content, wire::Bytes& to,
                                              OutAttachment& beside, ActorExchange& exchange) const {
  if (content.size() == 1) {
    if (const std::type_info* type = content.type(0).second) {
      if (const auto found = by_type_.find(std::type_index(*type)); found != by_type_.end()) {
        to.resize(to.size() + sizeof found->second.id);
        std::memcpy(to.data() + to.size() - sizeof found->second.id, &found->second.id, sizeof found->second.id);
        const auto encoded = found->second.encode(content.get(0), to, beside, exchange);
        return encoded ? Result<std::uint64_t>(found->second.id) : encoded.error();
      }
    }
  }
  return Error(Errc::unsupported, "a message between workers must be one value of a registered type (add_message): " +
                                      caf::to_string(content.type(0)));
}

Result<caf::message> MessageRegistry::decode(wire::ByteView from, InAttachment& beside, ActorExchange& exchange) const {
  std::uint64_t id = 0;
  if (from.size() < sizeof id) return Error(Errc::malformed_payload, "a message is cut off");
  std::memcpy(&id, from.data(), sizeof id);
  const auto type = by_id_.find(id);
  if (type == by_id_.end()) return Error(Errc::unknown_function, "a message of a type that is not registered here");
  return by_type_.at(type->second).decode(from.subspan(sizeof id), beside, exchange);
}

}  // namespace caftan::remote

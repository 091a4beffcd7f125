/// The messages that actors of different workers may send each other. A message is one value of a registered type; all
/// other messages stay inside their worker. CAF's own serializer sees no byte of the network.
#pragma once

#include <cstdint>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include <caf/make_message.hpp>
#include <caf/message.hpp>

#include "caftan/base/result.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/internal/block_pool.hpp"
#include "caftan/wire/internal/segment.hpp"

namespace caftan::remote {

class ActorExchange;

/// The tensors of a message, which travel beside its bytes. The codec of a value with tensors finds the attachment
/// as a companion of its archive, fills it when the value is written and takes it when the value is read.
struct OutAttachment {
  wire::Bytes table;
  std::vector<wire::Segment> segments;
};
struct InAttachment {
  wire::ByteView table;
  /// As many segments, and as large, as the sender announced; the table is not compared with them yet.
  std::vector<wire::Block> segments;
  Result<void> received = {};  ///< limit_exceeded: there was no memory for the segments, so `segments` is empty
};

class MessageRegistry {
 public:
  /// Registers T under `name`. T travels by the wire archives and must be allowed in a CAF message
  /// (CAF_ALLOW_UNSAFE_MESSAGE_TYPE or a CAF type id).
  /// Precondition: neither T nor the name is registered yet.
  template <class T>
  void add(const std::string& name) {
    Codec codec;
    codec.name = name;
    codec.id = id_of(name);
    codec.encode = [](const void* value, wire::Bytes& to, OutAttachment& beside, ActorExchange& exchange) {
      return wire::encode_into(to, *static_cast<const T*>(value), &exchange, &beside);
    };
    codec.decode = [](wire::ByteView from, InAttachment& beside, ActorExchange& exchange) -> Result<caf::message> {
      auto value = wire::decode<T>(from, &exchange, &beside);
      if (!value) return value.error();
      return caf::make_message(std::move(*value));
    };
    add(std::type_index(typeid(T)), std::move(codec));
  }

  /// Appends the registered id and the bytes of `content`, and returns the id; what travels beside them goes into
  /// `beside`. Errors: unsupported (not one value of a registered type).
  Result<std::uint64_t> encode(const caf::type_erased_tuple& content, wire::Bytes& to, OutAttachment& beside,
                               ActorExchange& exchange) const;

  /// Returns how the message `name` is written: the first 8 bytes of what encode appends.
  static std::uint64_t id_of(const std::string& name);
  /// Returns the name of a message registered here; empty if there is none of that id.
  std::string name_of(std::uint64_t id) const;

  /// Errors: unknown_function (no such message registered here), malformed_payload.
  Result<caf::message> decode(wire::ByteView from, InAttachment& beside, ActorExchange& exchange) const;

 private:
  struct Codec {
    std::string name;
    std::uint64_t id = 0;
    Result<void> (*encode)(const void* value, wire::Bytes& to, OutAttachment& beside,
                           ActorExchange& exchange) = nullptr;
    Result<caf::message> (*decode)(wire::ByteView from, InAttachment& beside, ActorExchange& exchange) = nullptr;
  };
  void add(std::type_index type, Codec codec);

  std::unordered_map<std::type_index, Codec> by_type_;
  std::unordered_map<std::uint64_t, std::type_index> by_id_;
};

}  // namespace caftan::remote

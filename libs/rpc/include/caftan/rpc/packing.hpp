/// Values of a call to bytes, tensors and references, and back; the border at which archive exceptions become errors.
/// Layout of the bodies: docs/protocols/call.md.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "caftan/base/fnv1a.hpp"
#include "caftan/rpc/future_state.hpp"
#include "caftan/rpc/request.hpp"
#include "caftan/rpc/signature.hpp"
#include "caftan/tensor/payload.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::rpc {

/// Companion of an OutArchive: takes references out of band.
struct RRefSink {
  RRefHandles& handles;
};
/// Companion of an InArchive.
struct RRefSource {
  const RRefHandles& handles;
};

/// Whether a value of type T can be sent. Specialize with `true` for a final class whose `serialize` is private, which
/// cannot be seen from outside.
template <class T>
inline constexpr bool enable_sending = wire::Scalar<T> || (wire::SavedByCodec<T> && wire::LoadedByCodec<T>) ||
                                       wire::detail::HasSerialize<T> || wire::detail::HasFreeSerialize<T> ||
                                       requires(wire::OutArchive& a, T& v) {
  v.serialize(a, 0U);
}
|| requires(wire::OutArchive& a, T& v) { serialize(a, v, 0U); };

/// The writing side of one body.
class Packer {
 public:
  Packer(wire::Bytes& body, std::vector<at::Tensor>& tensors, RRefHandles& rrefs)
      : archive(body), tensors_(tensors), rrefs_{rrefs} {
    archive.attach(&tensors_);
    archive.attach(&rrefs_);
  }
  wire::OutArchive archive;

 private:
  tensor::TensorSink tensors_;
  RRefSink rrefs_;
};

/// The reading side of one body.
class Unpacker {
 public:
  explicit Unpacker(const InPayload& payload) : Unpacker(payload, payload.body) {}
  Unpacker(const InPayload& payload, wire::ByteView body)
      : archive(body), tensors_(payload.tensors), rrefs_{payload.rrefs} {
    archive.attach(&tensors_);
    archive.attach(&rrefs_);
  }
  wire::InArchive archive;

 private:
  tensor::TensorSource tensors_;
  RRefSource rrefs_;
};

/// Appends the prologue, with which the body of a request of kind call, create or method begins.
void write_prologue(wire::Bytes& body, const FunctionKey& key);

/// Reads the prologue and moves `body` past it. The views point into `body`.
/// Errors: malformed_payload.
Result<FunctionKey> read_prologue(wire::ByteView& body);

/// What a call for a named object starts with: then follow the name, and the prologue and arguments of a constructor.
inline constexpr FunctionKey kGetOrCreate{"caftan.get_or_create", "", base::fnv1a("caftan.get_or_create"),
                                          base::fnv1a("")};
/// Whether a call for `key` is one for a named object.
constexpr bool is_get_or_create(const FunctionKey& key) noexcept {
  return key.name_hash == kGetOrCreate.name_hash && key.name == kGetOrCreate.name;
}
/// Reads the name of an object and moves `body` past it.
/// Errors: malformed_payload.
Result<std::string> read_object_name(wire::ByteView& body);

namespace detail {
/// Returns the error for an argument whose encoding threw; called only from a handler, for the exception in flight.
/// @param position  of the argument, from 1
Error argument_not_sendable(std::size_t position, std::string_view function);
Error argument_not_readable(std::size_t position, std::string_view function, std::string_view type);
Error too_many_arguments(std::string_view function, std::size_t bytes);
Error result_not_sendable(std::string_view type);
Error result_not_readable(std::string_view type);
Error reply_of_another_type(std::string_view expected);
Error cannot_be_sent(std::string_view type);
Error value_not_sendable(std::string_view type);
Error value_not_readable(std::string_view type);

template <class T>
const T& as(const T& value) noexcept {
  return value;
}
}  // namespace detail

/// Appends the arguments, converted to the parameter types P, to a request. Arguments that do not fit are refused by
/// the compiler, with a text. Errors: unsupported (naming the argument's position), and those of a codec.
template <class... P, class... A>
Result<void> pack_arguments(TypeList<P...>, OutRequest& request, const A&... arguments) {
  if constexpr (Arguments<TypeList<P...>>::template check<const A&...>()) {
    std::size_t position = 0;
    request.tensors.reuse();
    try {
      Packer packer(request.body, request.tensors, request.rrefs);
      ((++position, packer.archive << detail::as<P>(arguments)), ...);
    } catch (...) {
      return detail::argument_not_sendable(position, request.what);
    }
  }
  return {};
}

/// Reads exactly the arguments from `body`.
/// Errors: bad_arguments (naming position and type).
template <class... P>
Result<void> unpack_arguments(const InPayload& payload, wire::ByteView body, std::string_view function,
                              std::tuple<P...>& arguments) {
  std::size_t position = 0;
  std::string_view type;
  Unpacker unpacker(payload, body);
  try {
    std::apply([&](P&... argument) { ((++position, type = wire::type_name<P>(), unpacker.archive >> argument), ...); },
               arguments);
  } catch (...) {
    return detail::argument_not_readable(position, function, type);
  }
  if (unpacker.archive.remaining() > 0) return detail::too_many_arguments(function, unpacker.archive.remaining());
  return {};
}

/// Encodes a result: the hash of its type, then the value.
/// Errors: unsupported.
template <class T>
Result<OutReply> encode_reply(const T& value) {
  if constexpr (enable_sending<T>) {
    OutReply reply;
    reply.body.reuse();
    reply.tensors.reuse();
    try {
      Packer packer(reply.body, reply.tensors, reply.rrefs);
      packer.archive << wire::type_hash<T>() << value;
      return reply;
    } catch (...) {
      return detail::result_not_sendable(wire::type_name<T>());
    }
  } else {
    return detail::cannot_be_sent(wire::type_name<T>());
  }
}

/// Appends a value to `bytes`, and its tensors to `tensors`; it has no references.
/// Errors: unsupported.
template <class T>
Result<void> encode_value(const T& value, wire::Bytes& bytes, std::vector<at::Tensor>& tensors) {
  try {
    wire::OutArchive archive(bytes);
    tensor::TensorSink sink(tensors);
    archive.attach(&sink);
    archive << value;
    return {};
  } catch (...) {
    return detail::value_not_sendable(wire::type_name<T>());
  }
}

/// Reads a value that encode_value<T> wrote.
/// Errors: malformed_payload.
template <class T>
Result<T> decode_value(wire::ByteView bytes, const std::vector<at::Tensor>& tensors) {
  try {
    wire::InArchive archive(bytes);
    tensor::TensorSource source(tensors);
    archive.attach(&source);
    T value = wire::detail::blank<T>();
    archive >> value;
    if (archive.remaining() > 0) throw wire::DecodeError("bytes left over");
    return value;
  } catch (...) {
    return detail::value_not_readable(wire::type_name<T>());
  }
}

/// Reads a reply that encode_reply<Stored<T>> made.
/// Errors: wrong_type, malformed_payload.
template <class T>
Result<T> decode_reply(const InPayload& payload) {
  using Value = Stored<T>;
  Unpacker unpacker(payload);
  try {
    std::uint64_t type = 0;
    unpacker.archive >> type;
    if (type != wire::type_hash<Value>()) return detail::reply_of_another_type(wire::type_name<Value>());
    Value value = wire::detail::blank<Value>();
    unpacker.archive >> value;
    if (unpacker.archive.remaining() > 0) throw wire::DecodeError("bytes left over");
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return value;
    }
  } catch (...) {
    return detail::result_not_readable(wire::type_name<Value>());
  }
}

}  // namespace caftan::rpc

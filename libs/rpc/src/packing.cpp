#include "caftan/rpc/packing.hpp"

namespace caftan::rpc {

void write_prologue(wire::Bytes& body, const FunctionKey& key) {
  constexpr std::size_t kSmallArguments = 96;
  body.reserve(body.size() + 2 * sizeof(std::uint64_t) + 4 + key.name.size() + key.signature.size() + kSmallArguments);
  wire::OutArchive archive(body);
  archive << key.name_hash << key.signature_hash << key.name << key.signature;
}

Result<FunctionKey> read_prologue(wire::ByteView& body) {
  wire::InArchive archive(body);
  try {
    FunctionKey key;
    archive >> key.name_hash >> key.signature_hash;
    const auto text = [&archive] {
      const wire::ByteView bytes = archive.take(archive.load_count());
      return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    key.name = text();
    key.signature = text();
    body = body.subspan(archive.position());
    return key;
  } catch (...) {
    return wire::detail::decode_failure(archive.position());
  }
}

Result<std::string> read_object_name(wire::ByteView& body) {
  wire::InArchive archive(body);
  try {
    const wire::ByteView bytes = archive.take(archive.load_count());
    body = body.subspan(archive.position());
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (...) {
    return wire::detail::decode_failure(archive.position());
  }
}

namespace {

Error prefixed(Errc code, const std::string& prefix, const Error& error) {
  return Error(code, prefix + ": " + error.text());
}
std::string argument_of(std::size_t position, std::string_view function) {
  return "argument " + std::to_string(position) + " of " + std::string(function);
}

}  // namespace

namespace detail {

Error argument_not_sendable(std::size_t position, std::string_view function) {
  const Error error = wire::detail::encode_failure();
  return prefixed(error.code(), argument_of(position, function), error);
}

Error argument_not_readable(std::size_t position, std::string_view function, std::string_view type) {
  const Error error = wire::detail::decode_failure(0);
  return prefixed(Errc::bad_arguments, argument_of(position, function) + " is no " + std::string(type), error);
}

Error too_many_arguments(std::string_view function, std::size_t bytes) {
  return Error(Errc::bad_arguments,
               std::to_string(bytes) + " bytes are left over after the last argument of " + std::string(function));
}

Error result_not_sendable(std::string_view type) {
  const Error error = wire::detail::encode_failure();
  return prefixed(error.code(), "the result, a " + std::string(type) + ", cannot be sent", error);
}

Error result_not_readable(std::string_view type) {
  const Error error = wire::detail::decode_failure(0);
  return prefixed(error.code(), "the reply is no " + std::string(type), error);
}

Error reply_of_another_type(std::string_view expected) {
  return Error(Errc::wrong_type, "the reply has another type than " + std::string(expected));
}

Error cannot_be_sent(std::string_view type) {
  return Error(Errc::unsupported, "a " + std::string(type) +
                                      " cannot be sent: it has no visible serialize; call its methods, or specialize "
                                      "caftan::rpc::enable_sending");
}

Error value_not_sendable(std::string_view type) {
  const Error error = wire::detail::encode_failure();
  return prefixed(error.code(), "the value, a " + std::string(type) + ", cannot be sent", error);
}

Error value_not_readable(std::string_view type) {
  const Error error = wire::detail::decode_failure(0);
  return prefixed(error.code(), "the value is no " + std::string(type), error);
}

}  // namespace detail

}  // namespace caftan::rpc

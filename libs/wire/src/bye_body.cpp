#include "caftan/wire/internal/bye_body.hpp"

#include <utility>

#include "caftan/wire/archive.hpp"

namespace caftan::wire {

Bytes ByeBody::encode() const {
  if (reason.code() == Errc::ok) return {};
  auto bytes = wire::encode(reason);
  return bytes ? *std::move(bytes) : Bytes();
}

Result<ByeBody> ByeBody::decode(ByteView bytes) {
  ByeBody body;
  if (bytes.empty()) return body;
  if (auto read = decode_into(bytes, body.reason); !read) return read.error();
  return body;
}

}  // namespace caftan::wire

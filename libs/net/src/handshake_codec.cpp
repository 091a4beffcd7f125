#include "handshake_codec.hpp"

#include <algorithm>
#include <concepts>
#include <optional>
#include <utility>

namespace caftan::net::handshake {

namespace {

class Writer {
 public:
  explicit Writer(Kind kind) {
    bytes_.reserve(kMaxHandshakeMessage);
    put(kMagic);
    put(static_cast<std::uint8_t>(kind));
    put(std::uint32_t{0});
  }
  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void put(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }
  void put(wire::ByteView bytes) { wire::append(bytes_, bytes); }
  void put_sized(std::string_view text) {
    put(static_cast<std::uint8_t>(text.size()));
    put(text);
  }
  wire::Bytes finish(std::size_t room = 0) && {
    const std::size_t size = bytes_.size() - kHeaderSize + room;
    for (std::size_t i = 0; i < 4; ++i) bytes_[kHeaderSize - 4 + i] = static_cast<std::byte>(size >> (8 * i));
    return std::move(bytes_);
  }

 private:
  wire::Bytes bytes_;
};

/// Reads fields in order; once one does not fit, all that follow are zero and `is_good` is false.
class Reader {
 public:
  explicit Reader(wire::ByteView rest) : rest_(rest) {}

  template <std::unsigned_integral T>
  T get() {
    const wire::ByteView bytes = get_bytes(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[i]) << (8 * i)));
    }
    return value;
  }
  wire::ByteView get_bytes(std::size_t size) {
    if (size > rest_.size()) {
      is_good_ = false;
      rest_ = {};
      return {};
    }
    const wire::ByteView bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::string get_sized() {
    const wire::ByteView bytes = get_bytes(get<std::uint8_t>());
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  bool is_good() const noexcept { return is_good_; }
  bool at_end() const noexcept { return rest_.empty(); }

 private:
  wire::ByteView rest_;
  bool is_good_ = true;
};

Error malformed(std::string text) { return Error(Errc::malformed_payload, "handshake: " + std::move(text)); }

/// The fewest and the most bytes that the payload of a message has.
struct Bounds {
  std::size_t min;
  std::size_t max;
};
std::optional<Bounds> bounds_of(std::uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::client_hello:
      return Bounds{4, kMaxPayload};
    case Kind::server_hello:
      return Bounds{4 + kProofSize, kMaxPayload};
    case Kind::client_proof:
      return Bounds{kProofSize, kProofSize};
    case Kind::welcome:
      return Bounds{0, 0};
    case Kind::reject:
      return Bounds{2, 2 + kMaxRejectText};
  }
  return std::nullopt;
}

}  // namespace

bool is_printable(std::string_view text) noexcept {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Result<std::size_t> message_size(wire::ByteView start) {
  const std::size_t known = std::min(start.size(), kMagic.size());
  const auto matches = [](std::byte a, char b) { return a == static_cast<std::byte>(b); };
  if (!std::equal(start.begin(), start.begin() + known, kMagic.begin(), matches)) {
    return malformed("the peer does not speak Caftan's protocol (wrong magic)");
  }
  if (start.size() <= kMagic.size()) return std::size_t{0};
  const auto kind = static_cast<std::uint8_t>(start[kMagic.size()]);
  const auto bounds = bounds_of(kind);
  if (!bounds) return malformed("message kind " + std::to_string(kind) + " does not exist");
  if (start.size() < kHeaderSize) return std::size_t{0};
  const auto size = Reader(start.subspan(kHeaderSize - 4, 4)).get<std::uint32_t>();
  if (size < bounds->min || size > bounds->max) {
    return malformed("a message of kind " + std::to_string(kind) + " announces " + std::to_string(size) +
                     " bytes; it has " + std::to_string(bounds->min) + " to " + std::to_string(bounds->max));
  }
  return kHeaderSize + size;
}

wire::Bytes encode_hello(Kind kind, const Hello& hello, std::size_t room) {
  const Introduction& self = hello.introduction;
  Writer writer(kind);
  writer.put(self.versions.min);
  writer.put(self.versions.max);
  writer.put(self.features);
  writer.put(static_cast<std::uint8_t>(self.purpose));
  writer.put(self.id.value);
  writer.put(self.incarnation.value);
  writer.put(self.connection);
  writer.put(self.limits.message);
  writer.put(self.limits.tensors);
  writer.put(self.limits.send_queue);
  writer.put(wire::ByteView(hello.nonce));
  writer.put_sized(self.cluster);
  writer.put_sized(self.name);
  writer.put_sized(self.address);
  writer.put_sized(self.settings);
  if (self.features & kSaysSegments) writer.put(self.limits.segments);
  if (self.features & kSharesMemory) writer.put(self.ring);
  return std::move(writer).finish(room);
}

wire::Bytes encode_proof(const Proof& proof) {
  Writer writer(Kind::client_proof);
  writer.put(wire::ByteView(proof));
  return std::move(writer).finish();
}

wire::Bytes encode_welcome() { return Writer(Kind::welcome).finish(); }

wire::Bytes encode_reject(const Error& error) {
  Writer writer(Kind::reject);
  writer.put(static_cast<std::uint8_t>(error.code()));
  writer.put_sized(std::string_view(error.text()).substr(0, kMaxRejectText));
  return std::move(writer).finish();
}

Result<VersionRange> decode_versions(wire::ByteView payload) {
  Reader reader(payload);
  VersionRange versions;
  versions.min = reader.get<std::uint16_t>();
  versions.max = reader.get<std::uint16_t>();
  if (!reader.is_good() || versions.min == 0 || versions.min > versions.max) {
    return malformed("a hello has no valid range of versions");
  }
  return versions;
}

Result<Hello> decode_hello(wire::ByteView payload) {
  const auto versions = decode_versions(payload);
  if (!versions) return versions.error();
  Hello hello;
  Introduction& peer = hello.introduction;
  Reader reader(payload.subspan(4));
  peer.versions = *versions;
  peer.features = reader.get<std::uint64_t>();
  const auto purpose = reader.get<std::uint8_t>();
  peer.purpose = static_cast<Purpose>(purpose);
  peer.id.value = reader.get<std::uint32_t>();
  peer.incarnation.value = reader.get<std::uint64_t>();
  peer.connection = reader.get<std::uint64_t>();
  peer.limits.message = reader.get<std::uint64_t>();
  peer.limits.tensors = reader.get<std::uint64_t>();
  peer.limits.send_queue = reader.get<std::uint64_t>();
  const wire::ByteView nonce = reader.get_bytes(hello.nonce.size());
  std::copy(nonce.begin(), nonce.end(), hello.nonce.begin());
  peer.cluster = reader.get_sized();
  peer.name = reader.get_sized();
  peer.address = reader.get_sized();
  if (!reader.at_end()) peer.settings = reader.get_sized();
  peer.limits.segments = (peer.features & kSaysSegments) != 0 ? reader.get<std::uint32_t>() : kUnsaidSegments;
  if ((peer.features & kSharesMemory) != 0) peer.ring = reader.get<std::uint32_t>();
  if (!reader.is_good()) return malformed("a hello ends before its last field");
  if (purpose < 1 || purpose > 3) return malformed("connection purpose " + std::to_string(purpose) + " does not exist");
  if (peer.incarnation.value == 0) return malformed("an incarnation of zero");
  if (peer.limits.message == 0 || peer.limits.send_queue == 0) return malformed("a limit of zero bytes");
  if (peer.limits.segments == 0) return malformed("a limit of zero segments");
  const auto is_name = [](const std::string& text) {
    return !text.empty() && text.size() <= kMaxName && is_printable(text);
  };
  if (!is_name(peer.cluster) || !is_name(peer.name)) {
    return malformed("a name is empty, longer than " + std::to_string(kMaxName) + " bytes or has control characters");
  }
  if (!is_printable(peer.address) || !is_printable(peer.settings)) {
    return malformed("an address or settings have control characters");
  }
  return hello;
}

Result<Reject> decode_reject(wire::ByteView payload) {
  Reader reader(payload);
  const auto code = static_cast<Errc>(reader.get<std::uint8_t>());
  Reject reject{code, reader.get_sized()};
  if (!reader.is_good() || !reader.at_end()) return malformed("a reject with a wrong size");
  std::replace_if(
      reject.text.begin(), reject.text.end(), [](char c) { return !is_printable(std::string_view(&c, 1)); }, '?');
  if (code == Errc::ok || to_string(code) == "unknown") {
    reject.code = Errc::protocol_mismatch;
    reject.text += " (error code " + std::to_string(static_cast<unsigned>(code)) + ")";
  }
  return reject;
}

}  // namespace caftan::net::handshake

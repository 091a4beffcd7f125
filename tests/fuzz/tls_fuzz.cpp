// Feeds arbitrary bytes to one side of TLS, and changes the cipher text of an open connection. The first byte says
// which side reads (bit 0: 1 = client), what is done (bit 1: 0 = the bytes are what a fresh side gets, 1 = they are
// changes of a connection) and in pieces of how many bytes the side gets its input (the other bits; 0 = all at once).
//
// A change is three bytes: where (two, from the start of what is not read yet) and what is XORed there; 0 cuts the rest
// away.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/net/internal/tls_engine.hpp"

namespace {

using namespace caftan;
using net::TlsEngine;

void require(bool holds) {
  if (!holds) std::abort();
}

TlsEngine make_fresh(bool is_client) {
  net::TlsKeys keys;
  keys.cluster = "cartpole";
  keys.secret = net::Secret("correct horse battery staple");
  return is_client ? *TlsEngine::client(keys) : *TlsEngine::server(keys);
}

/// Feeds all bytes, in pieces, until the side fails. Returns the error.
std::optional<std::string> feed_in_pieces(TlsEngine& side, wire::ByteView in, std::size_t piece) {
  for (std::size_t at = 0; at < in.size(); at += piece) {
    if (const auto fed = side.feed(in.subspan(at, std::min(piece, in.size() - at))); !fed) return fed.error().message();
  }
  return std::nullopt;
}

/// What a side without the key sends opens nothing, and the error does not depend on the pieces (TS-2, TS-7).
void feed_fresh(bool is_client, wire::ByteView in, std::size_t piece) {
  TlsEngine side = make_fresh(is_client);
  const auto error = feed_in_pieces(side, in, piece);
  require(!side.is_open());
  require(side.take_outgoing().size() < 64 * 1024);
  if (in.empty() || !error) return;
  TlsEngine whole = make_fresh(is_client);
  require(feed_in_pieces(whole, in, in.size()) == error);
  require(whole.feed(in).error().message() == *error);
}

/// Reads all plain text that is there.
std::string read_all(TlsEngine& side) {
  std::string text;
  for (char buffer[512];;) {
    const auto got = side.read(reinterpret_cast<std::byte*>(buffer), sizeof buffer);
    if (!got || *got == 0) return text;
    text.append(buffer, *got);
  }
}

/// Of a changed stream only what was sent before the first change is read (TS-8).
void change_open(bool reader_is_client, wire::ByteView changes, std::size_t piece) {
  TlsEngine reader = make_fresh(reader_is_client);
  TlsEngine writer = make_fresh(!reader_is_client);
  for (int i = 0; i < 4; ++i) {
    require(!feed_in_pieces(reader, writer.take_outgoing(), SIZE_MAX / 2));
    require(!feed_in_pieces(writer, reader.take_outgoing(), SIZE_MAX / 2));
  }
  require(reader.is_open() && writer.is_open());
  writer.renew_key_after(700);
  std::string sent;
  wire::Bytes cipher;
  std::vector<std::pair<std::size_t, std::size_t>> records;  // ends of cipher text and of plain text
  for (std::size_t size = 1; size < 800; size *= 3) {
    const std::string text(size, static_cast<char>('a' + records.size()));
    require(bool(writer.write({reinterpret_cast<const std::byte*>(text.data()), text.size()})));
    wire::append(cipher, writer.take_outgoing());
    sent += text;
    records.emplace_back(cipher.size(), sent.size());
  }
  const wire::Bytes unchanged = cipher;
  for (std::size_t i = 0; i + 2 < changes.size(); i += 3) {
    const std::size_t at = static_cast<std::size_t>(changes[i]) * 256 + static_cast<std::size_t>(changes[i + 1]);
    if (at >= cipher.size()) continue;
    if (changes[i + 2] == std::byte{0})
      cipher.resize(at);
    else
      cipher[at] ^= changes[i + 2];
  }
  const auto [first, ignored] = std::mismatch(cipher.begin(), cipher.end(), unchanged.begin());
  const auto change = static_cast<std::size_t>(first - cipher.begin());
  std::size_t whole = 0;  // bytes of plain text whose records lie before the first change
  for (const auto& [end, plain] : records) {
    if (end <= change) whole = plain;
  }
  std::string got;
  for (std::size_t at = 0; at < cipher.size(); at += piece) {
    if (!reader.feed(wire::ByteView(cipher).subspan(at, std::min(piece, cipher.size() - at)))) break;
    got += read_all(reader);
  }
  require(got == sent.substr(0, whole));
  require(reader.is_open() || change < cipher.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool is_client = (data[0] & 1) != 0;
  const wire::ByteView in(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const std::size_t piece = data[0] >> 2 == 0 ? std::size_t{1} << 20 : data[0] >> 2;
  const auto run = (data[0] & 2) == 0 ? feed_fresh : change_open;
  run(is_client, in, piece);
  return 0;
}

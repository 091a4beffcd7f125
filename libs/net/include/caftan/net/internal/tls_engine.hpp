/// `TlsEngine`: one side of one TLS 1.3 connection. Bytes of the socket go in and come out; the plain text is read and
/// written in between. Rules TS-1 to TS-11: docs/protocols/tls.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/net/internal/secret.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::net {

/// The files of a side with certificates, in PEM.
struct TlsFiles {
  std::filesystem::path certificate;  ///< of this host or worker, with those between it and the authority
  std::filesystem::path key;          ///< of the certificate
  std::filesystem::path authority;    ///< which has signed the certificates of all
  bool operator==(const TlsFiles&) const = default;
};

struct TlsKeys {
  std::string cluster;
  Secret secret;   ///< the pre-shared key is derived from it; not used with certificates
  TlsFiles files;  ///< read by `client` and `server`; an empty certificate: the pre-shared key
  bool has_files() const noexcept { return !files.certificate.empty(); }
};

/// Threads: none of its own and no lock.
class TlsEngine {
 public:
  /// Makes the side that connected. Errors: invalid_config (no secret and no files, files that do not fit, a
  /// certificate that is not valid now), io_error (a file that cannot be read); the text names the file.
  static Result<TlsEngine> client(const TlsKeys& keys);
  /// Makes the side that accepted. Errors: as client.
  static Result<TlsEngine> server(const TlsKeys& keys);
  TlsEngine(TlsEngine&&) noexcept;
  TlsEngine& operator=(TlsEngine&&) noexcept;
  ~TlsEngine();

  /// Takes cipher text and goes on with the TLS handshake as far as it leads. After an error `take_outgoing` has
  /// the reason, for the peer. Errors: those of docs/protocols/tls.md; the first one stays.
  Result<void> feed(wire::ByteView cipher);
  /// As feed, without a copy: the bytes must stay as they are until `has_unread` is false or an error was returned.
  /// What is wrong with them is an error of `read`. Preconditions: is_open(), all cipher text before has been read.
  void lend(wire::ByteView cipher);
  /// Returns whether both sides have shown their keys: only then there is plain text.
  bool is_open() const noexcept;

  /// Reads plain text; 0 = none now. Precondition: is_open().
  /// Errors: peer_down (a changed byte; the peer's close_notify: `has_ended` then).
  Result<std::size_t> read(std::byte* to, std::size_t room);
  /// Returns whether cipher text or plain text is here that was not read yet.
  bool has_unread() const noexcept;
  /// Returns whether the peer has ended its stream in good order.
  bool has_ended() const noexcept;
  /// Encrypts `plain` into `outgoing`. Precondition: is_open(). Errors: peer_down, io_error.
  Result<void> write(wire::ByteView plain);
  /// Ends this side's stream in good order.
  void close_write();

  /// Returns the cipher text that is to be sent, and forgets it.
  wire::Bytes take_outgoing();
  /// The same, into a buffer whose memory is used again.
  void take_outgoing(wire::Bytes& into);

  /// Ends the engine when the peer has closed the connection, and returns its error: peer_down, saying what was
  /// missing.
  Error closed() const;
  /// Returns the error of a handshake that is not over at its deadline: timeout. @param limit  for the text
  Error expired(base::Duration limit) const;

  /// Returns bytes that only the two ends of this connection can compute. Precondition: is_open().
  Result<TlsBinding> binding() const;
  /// Returns the names of the peer's certificate; nothing without one. Precondition: is_open().
  std::optional<std::vector<std::string>> peer_names() const;
  /// Sets after how many bytes the sending key is renewed, for tests.
  void renew_key_after(std::uint64_t bytes) noexcept;

 private:
  struct State;
  explicit TlsEngine(std::unique_ptr<State> state);
  static Result<TlsEngine> make(const TlsKeys& keys, bool is_client);
  std::unique_ptr<State> state_;
};

}  // namespace caftan::net

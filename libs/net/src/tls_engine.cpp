#include "caftan/net/internal/tls_engine.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "caftan/base/internal/rounded_duration.hpp"
#include "handshake_codec.hpp"
#include "tls_certificates.hpp"
#include "tls_contexts.hpp"
#include "tls_handles.hpp"

namespace caftan::net {
namespace {

constexpr std::string_view kKeyLabel = "caftan tls key 1";
constexpr std::string_view kClusterLabel = "caftan tls cluster 1";
constexpr std::string_view kIdentity = "caftan-1 ";
constexpr std::size_t kIdentityDigits = 32;
constexpr std::string_view kBindingLabel = "EXPORTER-caftan-handshake-1";
constexpr std::string_view kPlainStart = "CAFTAN";  // of a handshake without TLS: no TLS record begins so
constexpr std::uint64_t kRenewKey = std::uint64_t{64} << 30;
constexpr std::string_view kSameTls = "; write the same [tls] into the files of both sides";

using tls::Context;
using tls::Free;
using tls::openssl_text;
using Connection = std::unique_ptr<SSL, Free<SSL_free>>;
using Session = std::unique_ptr<SSL_SESSION, Free<SSL_SESSION_free>>;

wire::ByteView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Returns an identity that a side of the same cluster knows again, and that does not say the cluster's name.
std::string identity_of(std::string_view cluster) {
  std::string text(kClusterLabel);
  text += cluster;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha256(), nullptr);
  std::string identity(kIdentity);
  for (std::size_t i = 0; i < kIdentityDigits; ++i) {
    identity += "0123456789abcdef"[(digest[i / 2] >> (i % 2 == 0 ? 4 : 0)) & 0xf];
  }
  return identity;
}

/// Returns a fatal alert as it is sent before there are keys.
wire::Bytes plain_alert(int description) {
  const std::array<int, 7> record{21, 3, 3, 0, 2, SSL3_AL_FATAL, description};
  wire::Bytes bytes;
  for (const int byte : record) bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

}  // namespace

struct TlsEngine::State {
  bool is_client = false;
  std::string cluster;
  std::string certificate;  ///< the file; empty: the pre-shared key
  std::string identity;
  Proof key{};  ///< the pre-shared key
  Context context;
  Connection ssl;
  wire::Bytes kept;       ///< cipher text that was fed, or what may be the start of a handshake without TLS
  wire::ByteView unread;  ///< what OpenSSL has not taken yet of the cipher text that was fed or lent
  wire::Bytes outgoing;   ///< cipher text
  bool sniffed = false;
  bool is_open = false;
  bool has_ended = false;
  bool other_cluster = false;      ///< the client has the pre-shared key of another cluster
  bool shown_certificate = false;  ///< the server has certificates, this side none
  std::string refused;             ///< why the peer's certificate is refused
  std::optional<Error> error;
  wire::Bytes instead;  ///< what is sent instead of OpenSSL's own last words
  std::uint64_t renew_after = kRenewKey;
  std::uint64_t sent = 0;  ///< plain text since the sending key was new

  ~State() { ::OPENSSL_cleanse(key.data(), key.size()); }

  bool has_files() const noexcept { return !certificate.empty(); }
  std::string peer() const { return is_client ? "the server" : "the client"; }
  Error fail(Error why) {
    if (!error) error = std::move(why);
    return *error;
  }
  Session make_session() const;
  Result<void> go_on();
  Error why();
  Error why_alert(int alert) const;
  Result<bool> sniff(wire::ByteView& cipher);

  static void set_up(SSL_CTX* context, bool is_client, bool has_files);
  static State& of(const SSL* ssl) { return *static_cast<State*>(SSL_get_app_data(ssl)); }
  static int use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
                     SSL_SESSION** session);
  static int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session);
  static int verify(int fits, X509_STORE_CTX* chain);
};

// ---- OpenSSL's ends of the connection

namespace {

int give_cipher(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  wire::append(*static_cast<wire::Bytes*>(::BIO_get_data(bio)), bytes_of({data, size}));
  *written = size;
  return 1;
}

int take_cipher(BIO* bio, char* data, std::size_t size, std::size_t* taken) {
  wire::ByteView& unread = *static_cast<wire::ByteView*>(::BIO_get_data(bio));
  ::BIO_clear_retry_flags(bio);
  *taken = std::min(size, unread.size());
  if (*taken == 0) {
    ::BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(data, unread.data(), *taken);
  unread = unread.subspan(*taken);
  return 1;
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

int begin(BIO* bio) {
  ::BIO_set_init(bio, 1);
  return 1;
}

/// Returns how OpenSSL reads and writes cipher text; null if memory is short.
const BIO_METHOD* cipher_method() {
  static const std::unique_ptr<BIO_METHOD, Free<BIO_meth_free>> method = [] {
    std::unique_ptr<BIO_METHOD, Free<BIO_meth_free>> made(::BIO_meth_new(BIO_TYPE_SOURCE_SINK, "caftan cipher text"));
    const bool done = made && ::BIO_meth_set_write_ex(made.get(), give_cipher) == 1 &&
                      ::BIO_meth_set_read_ex(made.get(), take_cipher) == 1 &&
                      ::BIO_meth_set_ctrl(made.get(), control) == 1 && ::BIO_meth_set_create(made.get(), begin) == 1;
    return done ? std::move(made) : nullptr;
  }();
  return method.get();
}

/// @param data  wire::ByteView to read from, or wire::Bytes to write to
BIO* make_end(void* data) {
  BIO* const bio = cipher_method() ? ::BIO_new(cipher_method()) : nullptr;
  if (bio) ::BIO_set_data(bio, data);
  return bio;
}

}  // namespace

/// Returns the pre-shared key in the form of OpenSSL; null if memory is short.
Session TlsEngine::State::make_session() const {
  Session session(::SSL_SESSION_new());
  const unsigned char suite[2] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
  const SSL_CIPHER* const cipher = ::SSL_CIPHER_find(ssl.get(), suite);
  const bool made = session && cipher &&
                    ::SSL_SESSION_set1_master_key(session.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                                  key.size()) == 1 &&
                    ::SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                    ::SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? std::move(session) : nullptr;
}

int TlsEngine::State::use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                              SSL_SESSION** session) {
  const State& self = of(ssl);
  *identity = reinterpret_cast<const unsigned char*>(self.identity.data());
  *size = self.identity.size();
  *session = self.make_session().release();
  return *session ? 1 : 0;
}

int TlsEngine::State::find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  State& self = of(ssl);
  const std::string_view asked(reinterpret_cast<const char*>(identity), size);
  *session = nullptr;
  if (asked == self.identity) {
    *session = self.make_session().release();
    return *session ? 1 : 0;
  }
  self.other_cluster = asked.starts_with(kIdentity);
  return 1;  // goes on without a key, and fails for the lack of a certificate
}

int TlsEngine::State::verify(int fits, X509_STORE_CTX* chain) {
  auto* const ssl = static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(chain, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  State& self = of(ssl);
  if (!self.has_files()) {
    self.shown_certificate = true;
    ::X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
  }
  if (fits == 1) return 1;
  X509* const certificate = ::X509_STORE_CTX_get_current_cert(chain);
  const int why = ::X509_STORE_CTX_get_error(chain);
  const bool is_authority = ::X509_STORE_CTX_get_error_depth(chain) > 0;
  const std::string of_peer = "the certificate of " + self.peer() + ", " + tls::text_of_names(certificate) + ", ";
  const std::string of_time = is_authority ? "the authority of the certificate of " + self.peer() + " " : of_peer;
  self.refused = of_peer;
  if (why == X509_V_ERR_CERT_HAS_EXPIRED) {
    self.refused =
        of_time + "has expired at " + tls::day_text(::X509_get0_notAfter(certificate)) + ": it needs a new one";
  } else if (why == X509_V_ERR_CERT_NOT_YET_VALID) {
    self.refused = of_time + "is not valid before " + tls::day_text(::X509_get0_notBefore(certificate)) +
                   ": compare the clocks of both machines";
  } else if (why == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT) {
    self.refused += "is signed by itself: it needs one that tls.authority has signed";
  } else if (why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || why == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
             why == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE || why == X509_V_ERR_CERT_SIGNATURE_FAILURE) {
    self.refused += "is not signed by tls.authority of this side: both need the same authority";
  } else {
    self.refused += std::string("does not fit: ") + ::X509_verify_cert_error_string(why);
  }
  return 0;
}

/// Returns what an alert of the peer says.
Error TlsEngine::State::why_alert(int alert) const {
  const std::string own = certificate.empty() ? "this side's certificate" : "the certificate " + certificate;
  switch (alert) {
    case SSL_AD_UNKNOWN_PSK_IDENTITY:
      return Error(Errc::wrong_cluster, peer() + " belongs to another cluster than '" + cluster + "'");
    case SSL_AD_DECRYPT_ERROR:
      if (has_files()) return why_alert(SSL_AD_UNKNOWN_CA);  // two authorities of the same name
      return Error(Errc::not_authenticated, "server and client have different secrets for cluster '" + cluster + "'");
    case SSL_AD_PROTOCOL_VERSION:
      return Error(Errc::protocol_mismatch, peer() + " does not speak TLS 1.3");
    case SSL_AD_HANDSHAKE_FAILURE:
      return Error(
          Errc::not_authenticated,
          peer() + (has_files() ? " has no certificates, this side has" : " does not take this side's pre-shared key") +
              std::string(kSameTls));
    case SSL_AD_CERTIFICATE_REQUIRED:
      return Error(Errc::not_authenticated,
                   peer() + " asks for a certificate, and this side has none" + std::string(kSameTls));
    case SSL_AD_CERTIFICATE_EXPIRED:
      return Error(Errc::not_authenticated, peer() + " refuses " + own + ": it has expired there; renew it");
    case SSL_AD_UNKNOWN_CA:
      return Error(Errc::not_authenticated,
                   peer() + " refuses " + own + ": its tls.authority has not signed it; both need the same authority");
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_CERTIFICATE_REVOKED:
      return Error(Errc::not_authenticated,
                   peer() + " refuses " + own + " (" + ::SSL_alert_desc_string_long(alert) +
                       "): it is damaged, not for this use, or not valid yet by the clock there");
    default:
      break;
  }
  return Error(is_open ? Errc::peer_down : Errc::malformed_payload,
               peer() + " ended TLS with the alert '" + ::SSL_alert_desc_string_long(alert) + "'");
}

/// Returns why OpenSSL has refused what came, and sets what is sent where OpenSSL would say too little.
Error TlsEngine::State::why() {
  const unsigned long code = ::ERR_peek_error();
  const int reason = ::ERR_GET_REASON(code);
  const int alert = reason - SSL_AD_REASON_OFFSET;
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && alert > 0 && alert < 256) return why_alert(alert);
  if (other_cluster) {
    instead = plain_alert(SSL_AD_UNKNOWN_PSK_IDENTITY);
    return Error(Errc::wrong_cluster, "the client belongs to another cluster than '" + cluster + "'");
  }
  if (shown_certificate) {
    return Error(Errc::not_authenticated, "the server has certificates, this side has none" + std::string(kSameTls));
  }
  if (!refused.empty()) return Error(Errc::not_authenticated, refused);
  switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
      instead = plain_alert(SSL_AD_DECRYPT_ERROR);
      return Error(Errc::not_authenticated, "server and client have different secrets for cluster '" + cluster + "'");
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Error(Errc::not_authenticated, peer() + " shows no certificate" + std::string(kSameTls));
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      return Error(Errc::malformed_payload, peer() + " speaks HTTP: this is the port of a Caftan worker");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
      return Error(Errc::protocol_mismatch, peer() + " does not speak TLS 1.3, this side speaks no older one");
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_CERTIFICATE_SET:
      return Error(Errc::not_authenticated, peer() +
                                                " shows no pre-shared key of this cluster: it has certificates, "
                                                "or is no worker" +
                                                std::string(kSameTls));
    default:
      break;
  }
  if (is_open) return Error(Errc::peer_down, "TLS: bytes were changed on their way (" + openssl_text() + ")");
  return Error(Errc::malformed_payload, "no TLS handshake: " + openssl_text());
}

void TlsEngine::State::set_up(SSL_CTX* context, bool is_client, bool has_files) {
  if (has_files) {
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
    return;
  }
  if (is_client) ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, verify);
  ::SSL_CTX_set_psk_use_session_callback(context, use_key);
  ::SSL_CTX_set_psk_find_session_callback(context, find_key);
}

Result<void> TlsEngine::State::go_on() {
  ::ERR_clear_error();
  const int done = ::SSL_do_handshake(ssl.get());
  if (done == 1) {
    if (!has_files() && ::SSL_session_reused(ssl.get()) != 1) {
      return fail(Error(Errc::not_authenticated, peer() + " did not use the pre-shared key"));
    }
    is_open = true;
    return {};
  }
  const int what = ::SSL_get_error(ssl.get(), done);
  if (what == SSL_ERROR_WANT_READ) return {};
  return fail(why());
}

/// Looks whether the peer speaks the handshake without TLS. Returns whether the bytes are for TLS, and sets `cipher` to
/// all of them.
Result<bool> TlsEngine::State::sniff(wire::ByteView& cipher) {
  wire::append(kept, cipher);
  const std::size_t known = std::min(kept.size(), kPlainStart.size());
  if (std::memcmp(kept.data(), kPlainStart.data(), known) == 0) {
    if (known < kPlainStart.size()) return false;
    const Error error(Errc::protocol_mismatch,
                      is_client ? "the server speaks no TLS, the client does: tls.mode must be the same in both files"
                                : "the client speaks no TLS, the server does: tls.mode must be the same in both files");
    if (!is_client) instead = handshake::encode_reject(error);
    return fail(error);
  }
  sniffed = true;
  cipher = kept;
  return true;
}

TlsEngine::TlsEngine(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsEngine::TlsEngine(TlsEngine&&) noexcept = default;
TlsEngine& TlsEngine::operator=(TlsEngine&&) noexcept = default;
TlsEngine::~TlsEngine() = default;

Result<TlsEngine> TlsEngine::client(const TlsKeys& keys) { return make(keys, true); }
Result<TlsEngine> TlsEngine::server(const TlsKeys& keys) { return make(keys, false); }

Result<TlsEngine> TlsEngine::make(const TlsKeys& keys, bool is_client) {
  if (!keys.has_files() && keys.secret.empty()) {
    return Error(Errc::invalid_config, "TLS needs the cluster's secret, or certificates in [tls]");
  }
  ::ERR_clear_error();
  auto state = std::make_unique<State>();
  state->is_client = is_client;
  state->cluster = keys.cluster;
  state->certificate = keys.files.certificate.string();
  state->identity = identity_of(keys.cluster);
  auto context = tls::shared_context(is_client, keys.files, State::set_up);
  if (!context) return context.error();
  state->context = *std::move(context);
  if (!state->has_files()) {
    auto key = make_proof(keys.secret, kKeyLabel, bytes_of(keys.cluster));
    if (!key) return key.error();
    state->key = *key;
    ::OPENSSL_cleanse(key->data(), key->size());
  }
  state->ssl.reset(::SSL_new(state->context.get()));
  BIO* const in = make_end(&state->unread);
  BIO* const out = make_end(&state->outgoing);
  if (!state->ssl || !in || !out) {
    ::BIO_free(in);
    ::BIO_free(out);
    return Error(Errc::io_error, "no memory for TLS");
  }
  ::SSL_set_bio(state->ssl.get(), in, out);
  SSL_set_app_data(state->ssl.get(), state.get());
  if (is_client) {
    ::SSL_set_connect_state(state->ssl.get());
    if (auto begun = state->go_on(); !begun) return begun.error();
  } else {
    ::SSL_set_accept_state(state->ssl.get());
  }
  return TlsEngine(std::move(state));
}

Result<void> TlsEngine::feed(wire::ByteView cipher) {
  State& state = *state_;
  if (state.error) return *state.error;
  if (!state.sniffed) {
    const auto is_tls = state.sniff(cipher);
    if (!is_tls) return is_tls.error();
    if (!*is_tls) return {};
  }
  wire::Bytes all(state.unread.begin(), state.unread.end());
  wire::append(all, cipher);
  state.kept = std::move(all);
  state.unread = state.kept;
  return state.is_open ? Result<void>() : state.go_on();
}

void TlsEngine::lend(wire::ByteView cipher) { state_->unread = cipher; }

bool TlsEngine::is_open() const noexcept { return state_->is_open && !state_->error; }

Result<std::size_t> TlsEngine::read(std::byte* to, std::size_t room) {
  State& state = *state_;
  if (state.error) return *state.error;
  ::ERR_clear_error();
  std::size_t got = 0;
  const int done = ::SSL_read_ex(state.ssl.get(), to, room, &got);
  if (done == 1) return got;
  switch (::SSL_get_error(state.ssl.get(), done)) {
    case SSL_ERROR_WANT_READ:
      return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      state.has_ended = true;
      return state.fail(Error(Errc::peer_down, "the connection was closed by the peer"));
    default:
      return state.fail(state.why());
  }
}

bool TlsEngine::has_unread() const noexcept {
  return ::SSL_has_pending(state_->ssl.get()) == 1 || !state_->unread.empty();
}

bool TlsEngine::has_ended() const noexcept { return state_->has_ended; }

Result<void> TlsEngine::write(wire::ByteView plain) {
  State& state = *state_;
  ::ERR_clear_error();
  if (state.sent > 0 && state.sent + plain.size() > state.renew_after) {
    ::SSL_key_update(state.ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    state.sent = 0;
  }
  std::size_t put = 0;
  if (::SSL_write_ex(state.ssl.get(), plain.data(), plain.size(), &put) != 1 || put != plain.size()) {
    return Error(Errc::peer_down, "TLS: " + openssl_text());
  }
  state.sent += put;
  return {};
}

void TlsEngine::close_write() {
  if (is_open()) ::SSL_shutdown(state_->ssl.get());
}

wire::Bytes TlsEngine::take_outgoing() {
  wire::Bytes bytes;
  take_outgoing(bytes);
  return bytes;
}

void TlsEngine::take_outgoing(wire::Bytes& into) {
  State& state = *state_;
  if (!state.instead.empty()) {
    state.outgoing = std::exchange(state.instead, {});
  }
  into.clear();
  into.swap(state.outgoing);
}

Error TlsEngine::closed() const {
  if (state_->error) return *state_->error;
  if (is_open()) return Error(Errc::peer_down, "the connection was cut: it ended without TLS's own end");
  return Error(Errc::peer_down, "TLS: " + state_->peer() + " closed the connection during the TLS handshake");
}

Error TlsEngine::expired(base::Duration limit) const {
  return Error(Errc::timeout,
               "TLS: " + state_->peer() + " has not finished the TLS handshake within " + base::format_rounded(limit));
}

Result<TlsBinding> TlsEngine::binding() const {
  TlsBinding binding;
  if (::SSL_export_keying_material(state_->ssl.get(), reinterpret_cast<unsigned char*>(binding.data()), binding.size(),
                                   kBindingLabel.data(), kBindingLabel.size(), nullptr, 0, 0) != 1) {
    return Error(Errc::io_error, "TLS gives no binding: " + openssl_text());
  }
  return binding;
}

std::optional<std::vector<std::string>> TlsEngine::peer_names() const {
  X509* const certificate = ::SSL_get0_peer_certificate(state_->ssl.get());
  return certificate ? std::optional(tls::names_of(certificate)) : std::nullopt;
}

void TlsEngine::renew_key_after(std::uint64_t bytes) noexcept { state_->renew_after = bytes; }

}  // namespace caftan::net

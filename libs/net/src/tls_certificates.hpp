/// Certificates: the files of a side, and the names in one that a peer shows, which may be any bytes.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/net/internal/tls_engine.hpp"

namespace caftan::net::tls {

/// Returns what OpenSSL says of its last failure.
std::string openssl_text();
/// Returns a moment as texts name it, "2026-11-29 10:00 UTC".
std::string day_text(const ASN1_TIME* time);
/// Returns the host names and addresses for which a certificate holds. A name that no host can have is left out: one
/// with other bytes than printable ASCII, or longer than 253 of them.
std::vector<std::string> names_of(const X509* certificate);
/// Returns "for a, b, c, d and 3 more", or "without a name". @param certificate  may be null
std::string text_of_names(const X509* certificate);
/// Checks that a side's own certificate is valid at this moment. Errors: invalid_config.
Result<void> check_own_validity(const SSL_CTX* context, const TlsFiles& files);
/// Reads the files of a side with certificates. Errors: as of TlsEngine::client, but for times.
Result<void> load_files(SSL_CTX* context, const TlsFiles& files);

}  // namespace caftan::net::tls

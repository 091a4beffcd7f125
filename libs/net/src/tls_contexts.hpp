/// What connections of one kind share in OpenSSL: making it anew costs as much as half a handshake, and reading
/// certificates several.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "caftan/base/result.hpp"
#include "caftan/net/internal/tls_engine.hpp"

namespace caftan::net::tls {

using Context = std::shared_ptr<SSL_CTX>;

/// Returns the context of sides with these files, without a file of those with a pre-shared key. It is made anew once a
/// file has changed (TS-9). Errors: as of TlsEngine::client. Threads: any.
/// @param set_up  sets the callbacks of a new context
Result<Context> shared_context(bool is_client, const TlsFiles& files,
                               void (*set_up)(SSL_CTX*, bool is_client, bool has_files));

}  // namespace caftan::net::tls

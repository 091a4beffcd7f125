#include "caftan/net/internal/tls_authority.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <utility>

#include "tls_handles.hpp"

namespace caftan::net {
namespace {

using tls::Free;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO_free_all>>;

Error refused() { return Error(Errc::io_error, "OpenSSL makes no certificate"); }

std::string take(BIO* memory) {
  std::string text(::BIO_ctrl_pending(memory), '\0');
  ::BIO_read(memory, text.data(), static_cast<int>(text.size()));
  return text;
}

Result<TlsPair> to_pem(X509* certificate, EVP_PKEY* key) {
  const Memory one(::BIO_new(::BIO_s_mem()));
  const Memory other(::BIO_new(::BIO_s_mem()));
  if (::PEM_write_bio_X509(one.get(), certificate) != 1 ||
      ::PEM_write_bio_PrivateKey(other.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return refused();
  }
  return TlsPair{take(one.get()), take(other.get())};
}

bool add(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && ::X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// Returns the names as OpenSSL's configuration writes them: "DNS:head,IP:192.0.2.10".
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    std::array<unsigned char, sizeof(in6_addr)> ignored{};
    const bool is_ip = ::inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
                       ::inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
    text += (text.empty() ? "" : ",") + std::string(is_ip ? "IP:" : "DNS:") + name;
  }
  return text;
}

/// Returns a certificate without extensions that is not signed yet.
Certificate begin(EVP_PKEY* key, const std::string& name, const TlsValidity& validity) {
  Certificate certificate(::X509_new());
  std::uint64_t serial = 0;
  if (!certificate || ::RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return nullptr;
  X509* const made = certificate.get();
  const bool done = ::X509_set_version(made, X509_VERSION_3) == 1 &&
                    ::ASN1_INTEGER_set_uint64(::X509_get_serialNumber(made), serial >> 1) == 1 &&
                    ::X509_gmtime_adj(X509_getm_notBefore(made), validity.from.count()) != nullptr &&
                    ::X509_gmtime_adj(X509_getm_notAfter(made), validity.until.count()) != nullptr &&
                    ::X509_set_pubkey(made, key) == 1 &&
                    ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                                                 reinterpret_cast<const unsigned char*>(name.data()),
                                                 static_cast<int>(name.size()), -1, 0) == 1;
  return done ? std::move(certificate) : nullptr;
}

}  // namespace

struct TlsAuthority::Parts {
  Key key;
  Certificate certificate;
};

TlsAuthority::TlsAuthority(std::shared_ptr<const Parts> parts, TlsPair pair)
    : parts_(std::move(parts)), pair_(std::move(pair)) {}

Result<TlsAuthority> TlsAuthority::make(const TlsValidity& validity) {
  auto parts = std::make_shared<Parts>();
  parts->key.reset(EVP_EC_gen("P-256"));
  if (!parts->key) return refused();
  parts->certificate = begin(parts->key.get(), "Caftan authority", validity);
  X509* const own = parts->certificate.get();
  if (!own || ::X509_set_issuer_name(own, ::X509_get_subject_name(own)) != 1 ||
      !add(own, own, NID_basic_constraints, "critical,CA:TRUE") ||
      !add(own, own, NID_key_usage, "critical,keyCertSign") || !add(own, own, NID_subject_key_identifier, "hash") ||
      ::X509_sign(own, parts->key.get(), ::EVP_sha256()) == 0) {
    return refused();
  }
  auto pair = to_pem(own, parts->key.get());
  if (!pair) return pair.error();
  return TlsAuthority(std::move(parts), *std::move(pair));
}

Result<TlsPair> TlsAuthority::issue(const std::vector<std::string>& names, const TlsValidity& validity) const {
  if (names.empty()) return Error(Errc::invalid_config, "a certificate needs a name");
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return refused();
  const Certificate certificate = begin(key.get(), names.front(), validity);
  X509* const made = certificate.get();
  X509* const authority = parts_->certificate.get();
  if (!made || ::X509_set_issuer_name(made, ::X509_get_subject_name(authority)) != 1 ||
      !add(made, authority, NID_basic_constraints, "critical,CA:FALSE") ||
      !add(made, authority, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !add(made, authority, NID_subject_alt_name, alternatives(names)) ||
      ::X509_sign(made, parts_->key.get(), ::EVP_sha256()) == 0) {
    return Error(Errc::invalid_config, "no certificate can have the name '" + names.front() + "'");
  }
  return to_pem(made, key.get());
}

}  // namespace caftan::net

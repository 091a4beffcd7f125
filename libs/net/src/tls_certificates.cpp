#include "tls_certificates.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>

#include "caftan/base/internal/joined.hpp"
#include "tls_handles.hpp"

namespace caftan::net::tls {
namespace {

using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

std::optional<std::string> host_name_of(const ASN1_STRING* name) {
  constexpr int kLongest = 253;
  const int size = ::ASN1_STRING_length(name);
  if (size < 1 || size > kLongest) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(name)),
                              static_cast<std::size_t>(size));
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; })) return std::nullopt;
  return std::string(text);
}

std::optional<std::string> address_of(const ASN1_STRING* address) {
  const int size = ::ASN1_STRING_length(address);
  if (size != sizeof(in_addr) && size != sizeof(in6_addr)) return std::nullopt;
  char text[INET6_ADDRSTRLEN];
  const int family = size == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (!::inet_ntop(family, ::ASN1_STRING_get0_data(address), text, sizeof text)) return std::nullopt;
  return text;
}

int no_password(char*, int, int, void*) { return -1; }  // a key with a password must not ask for it on the terminal

/// Checks that a file can be read. @param key  of the file in [tls]
Result<void> check_readable(const char* key, const std::filesystem::path& file) {
  if (::access(file.c_str(), R_OK) == 0) return {};
  return Error(Errc::io_error, std::string("tls.") + key + " " + file.string() + ": " + std::strerror(errno));
}

Error bad_file(const char* key, const std::filesystem::path& file, const std::string& what) {
  return Error(Errc::invalid_config, std::string("tls.") + key + " " + file.string() + " " + what);
}

}  // namespace

std::string openssl_text() {
  const unsigned long code = ::ERR_peek_error();
  const char* const reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason ? reason : "no reason";
}

std::string day_text(const ASN1_TIME* time) {
  std::tm parts{};
  if (::ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown time";
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  const Names found(
      static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; found && i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found.get(), i);
    std::optional<std::string> text;
    if (name->type == GEN_DNS) text = host_name_of(name->d.dNSName);
    if (name->type == GEN_IPADD) text = address_of(name->d.iPAddress);
    if (text) names.push_back(*std::move(text));
  }
  return names;
}

std::string text_of_names(const X509* certificate) {
  constexpr std::size_t kShown = 4;
  auto names = certificate ? names_of(certificate) : std::vector<std::string>();
  if (names.empty()) return "without a name";
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return "for " + base::joined(names) + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

Result<void> check_own_validity(const SSL_CTX* context, const TlsFiles& files) {
  const X509* const own = ::SSL_CTX_get0_certificate(context);
  if (::X509_cmp_current_time(::X509_get0_notAfter(own)) < 0) {
    return bad_file("certificate", files.certificate,
                    "has expired at " + day_text(::X509_get0_notAfter(own)) + "; put a new one there");
  }
  if (::X509_cmp_current_time(::X509_get0_notBefore(own)) > 0) {
    return bad_file("certificate", files.certificate,
                    "is not valid before " + day_text(::X509_get0_notBefore(own)) + "; check this machine's clock");
  }
  return {};
}

Result<void> load_files(SSL_CTX* context, const TlsFiles& files) {
  ::SSL_CTX_set_default_passwd_cb(context, no_password);
  if (auto found = check_readable("certificate", files.certificate); !found) return found;
  if (auto found = check_readable("key", files.key); !found) return found;
  if (auto found = check_readable("authority", files.authority); !found) return found;
  if (::SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return bad_file("certificate", files.certificate, "holds no certificate in PEM (" + openssl_text() + ")");
  }
  if (::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool differs = ::ERR_GET_REASON(::ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
                         ::ERR_GET_REASON(::ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH;
    return bad_file("key", files.key,
                    differs ? "is not the key of tls.certificate " + files.certificate.string()
                            : "holds no key in PEM without a password (" + openssl_text() + ")");
  }
  if (::SSL_CTX_load_verify_file(context, files.authority.c_str()) != 1) {
    return bad_file("authority", files.authority, "holds no certificate in PEM (" + openssl_text() + ")");
  }
  return {};
}

}  // namespace caftan::net::tls

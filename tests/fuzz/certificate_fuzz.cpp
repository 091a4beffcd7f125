// Reads the names of a certificate that a stranger shows: arbitrary bytes in DER.
#include <openssl/x509.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tls_certificates.hpp"
#include "tls_handles.hpp"

namespace {

using namespace caftan::net;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_shown(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const unsigned char* at = data;
  const std::unique_ptr<X509, tls::Free<X509_free>> certificate(::d2i_X509(nullptr, &at, static_cast<long>(size)));
  if (!certificate) return 0;
  for (const std::string& name : tls::names_of(certificate.get())) {
    require(!name.empty() && name.size() <= 253 && std::ranges::all_of(name, is_shown));
  }
  const std::string text = tls::text_of_names(certificate.get());
  require(text.size() < 1200 && std::ranges::all_of(text, is_shown));
  return 0;
}

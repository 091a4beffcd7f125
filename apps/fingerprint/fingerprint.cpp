#include "fingerprint/fingerprint.hpp"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <new>

namespace caftan {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are added as they lie in memory");

/// Throws std::bad_alloc if a call of OpenSSL has failed: every OpenSSL has SHA-256, so a call fails only without
/// memory, or where a configuration forbids SHA-256.
void require(int answer) {
  if (answer != 1) throw std::bad_alloc();
}

}  // namespace

Fingerprint::Fingerprint() : digest_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  require(digest_ ? 1 : 0);
  require(EVP_DigestInit_ex(digest_.get(), EVP_sha256(), nullptr));
}

Fingerprint::Fingerprint(const Fingerprint& other) : digest_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  require(digest_ ? 1 : 0);
  require(EVP_MD_CTX_copy_ex(digest_.get(), other.digest_.get()));
}

Fingerprint::~Fingerprint() = default;

void Fingerprint::add_bytes(const void* bytes, std::size_t size) {
  require(EVP_DigestUpdate(digest_.get(), bytes, size));
}

void Fingerprint::add(std::uint64_t number) { add_bytes(&number, sizeof number); }

void Fingerprint::add(double number) { add(std::bit_cast<std::uint64_t>(number)); }

void Fingerprint::add(std::span<const float> values) { add_bytes(values.data(), values.size_bytes()); }

std::string Fingerprint::text() const {
  const Fingerprint copy(*this);  // finishing a digest ends it
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  require(EVP_DigestFinal_ex(copy.digest_.get(), bytes.data(), &size));
  std::string text = "sha256:";
  for (unsigned i = 0; i < size; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

}  // namespace caftan

#include "caftan/net/internal/secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <utility>

namespace caftan::net {

namespace {

unsigned char* raw(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

Secret::Secret(std::string_view text)
    : bytes_(reinterpret_cast<const std::byte*>(text.data()),
             reinterpret_cast<const std::byte*>(text.data()) + text.size()) {}

Secret::Secret(Secret&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Secret& Secret::operator=(Secret other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Result<Nonce> random_nonce() {
  Nonce nonce;
  if (RAND_bytes(raw(nonce.data()), static_cast<int>(nonce.size())) != 1) {
    return Error(Errc::io_error, "the operating system gives no random numbers");
  }
  return nonce;
}

Result<Proof> make_proof(const Secret& secret, std::string_view label, std::span<const std::byte> transcript) {
  std::vector<std::byte> message;
  message.reserve(label.size() + transcript.size());
  const auto* text = reinterpret_cast<const std::byte*>(label.data());
  message.insert(message.end(), text, text + label.size());
  message.insert(message.end(), transcript.begin(), transcript.end());
  Proof proof;
  unsigned size = 0;
  // OpenSSL takes a null key for "the previous one", also when its length is zero.
  static constexpr std::byte kEmptyKey{};
  const std::byte* key = secret.empty() ? &kEmptyKey : secret.bytes().data();
  if (HMAC(EVP_sha256(), key, static_cast<int>(secret.bytes().size()), raw(message.data()), message.size(),
           raw(proof.data()), &size) == nullptr ||
      size != proof.size()) {
    return Error(Errc::io_error, "HMAC-SHA256 is not available in this OpenSSL");
  }
  return proof;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace caftan::net

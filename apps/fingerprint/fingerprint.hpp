/// For all applications: a SHA-256 over everything that decides how a training goes on: equal fingerprints mean equal
/// trainings, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace caftan {

/// Threads: one at a time.
class Fingerprint {
 public:
  Fingerprint();
  Fingerprint(const Fingerprint& other);
  Fingerprint& operator=(const Fingerprint& other) = delete;
  ~Fingerprint();

  /// Numbers count as 8 little-endian bytes, doubles with their bits.
  void add(std::uint64_t number);
  void add(double number);
  /// Floats count as 4 little-endian bytes each.
  void add(std::span<const float> values);

  /// Returns "sha256:" and 64 hexadecimal digits over what was added so far; more can be added afterwards.
  std::string text() const;

 private:
  void add_bytes(const void* bytes, std::size_t size);

  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> digest_;
};

}  // namespace caftan

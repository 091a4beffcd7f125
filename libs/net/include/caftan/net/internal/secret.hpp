/// The shared secret of a cluster, wiped from memory when it is dropped, and the source of nonces for handshakes.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::net {

/// The secret of a cluster. Each copy is wiped when it is destroyed. The class has no text form, so that a secret never
/// gets into a log.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view text);
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret other) noexcept;
  ~Secret();

  bool empty() const noexcept { return bytes_.empty(); }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

using Nonce = std::array<std::byte, 32>;

/// Returns 32 bytes never returned before, or an error, which ends the handshake.
using NonceSource = std::function<Result<Nonce>()>;

/// Returns a nonce of the operating system's random numbers. Errors: io_error. Threads: any.
Result<Nonce> random_nonce();

using Proof = std::array<std::byte, 32>;

/// Bytes that only the two ends of one TLS connection can compute.
using TlsBinding = std::array<std::byte, 32>;

/// Returns HMAC-SHA256(secret, label || transcript). Errors: io_error (the crypto library refused). Threads: any.
Result<Proof> make_proof(const Secret& secret, std::string_view label, std::span<const std::byte> transcript);

/// Returns whether `a` and `b` are equal, in a time that does not depend on where they differ.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace caftan::net

/// `TlsAuthority`: signs certificates for the hosts of one job, for the command `certs` and for tests.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::net {

/// A certificate and its key, in PEM.
struct TlsPair {
  std::string certificate;
  std::string key;
};

/// From when to when a certificate is valid, from now on.
struct TlsValidity {
  std::chrono::seconds from = -std::chrono::hours(1);  // the clocks of two hosts differ
  std::chrono::seconds until = std::chrono::days(365);
};

/// Threads: one at a time.
class TlsAuthority {
 public:
  /// Makes an authority with a new key. Errors: io_error.
  static Result<TlsAuthority> make(const TlsValidity& validity = {});
  /// Returns the authority's own certificate and key.
  const TlsPair& pair() const noexcept { return pair_; }
  /// Signs a certificate with a new key. @param names  host names, names of workers and IP addresses
  /// Errors: invalid_config (no names), io_error.
  Result<TlsPair> issue(const std::vector<std::string>& names, const TlsValidity& validity = {}) const;

 private:
  struct Parts;
  TlsAuthority(std::shared_ptr<const Parts> parts, TlsPair pair);
  std::shared_ptr<const Parts> parts_;
  TlsPair pair_;
};

}  // namespace caftan::net

// What encryption costs without a socket: the CPU time of a TLS handshake at each side, and AES-128-GCM on one core.
#include <openssl/evp.h>
#include <time.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caftan/net/internal/tls_authority.hpp"
#include "caftan/net/internal/tls_engine.hpp"
#include "folder.hpp"
#include "measure.hpp"

namespace caftan::bench {
namespace {

using net::TlsEngine;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "tls_bench: %s\n", what);
  std::exit(1);
}

double cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

/// Makes one connection after another, keys read anew for each as a worker does.
Line sessions(const Request& request, const net::TlsKeys& keys) {
  std::array<double, 2> used{};  // of the client and of the server, microseconds
  std::uint64_t made = 0;
  const auto timed = [&](int side, const auto& work) {
    const double before = cpu_us();
    auto result = work();
    used[side] += cpu_us() - before;
    if (!result) fail(result.error().message().c_str());
    return result;
  };
  for (const double end = cpu_us() + std::chrono::duration<double, std::micro>(request.time).count(); cpu_us() < end;) {
    auto client = timed(0, [&] { return TlsEngine::client(keys); });
    auto server = timed(1, [&] { return TlsEngine::server(keys); });
    while (!client->is_open() || !server->is_open()) {
      (void)timed(1, [&] { return server->feed(client->take_outgoing()); });
      (void)timed(0, [&] { return client->feed(server->take_outgoing()); });
    }
    ++made;
  }
  const auto each = [&](int side) { return used[side] / static_cast<double>(made); };
  return Line().add("sessions", made).add("client_us", each(0)).add("server_us", each(1));
}

/// Encrypts `request.floats` elements, in pieces as large as a record of TLS.
Line aes(const Request& request) {
  constexpr int kRecord = 16 * 1024;
  const std::size_t records = request.floats * sizeof(float) / kRecord;
  std::vector<unsigned char> plain(records * kRecord, 1);
  std::vector<unsigned char> cipher(plain.size());
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&::EVP_CIPHER_CTX_free)> context(::EVP_CIPHER_CTX_new(),
                                                                                  ::EVP_CIPHER_CTX_free);
  const std::array<unsigned char, 16> key{1};
  std::array<unsigned char, 12> nonce{};
  const Rig rig("aes", {});
  return rig.sync(request, [&] {
    for (std::size_t i = 0; i < records; ++i) {
      ++nonce[i % nonce.size()];
      int size = 0;
      const bool done =
          ::EVP_EncryptInit_ex(context.get(), ::EVP_aes_128_gcm(), nullptr, key.data(), nonce.data()) == 1 &&
          ::EVP_EncryptUpdate(context.get(), cipher.data() + i * kRecord, &size, plain.data() + i * kRecord, kRecord) ==
              1;
      if (!done) fail("AES-128-GCM");
    }
  });
}

int serve() {
  net::TlsKeys keys;
  keys.cluster = "benchmark";
  keys.secret = net::Secret("benchmark");
  const test::Folder folder;
  const net::TlsAuthority authority = net::TlsAuthority::make().value();
  const net::TlsPair pair = authority.issue({"benchmark"}).value();
  net::TlsKeys certified = keys;
  certified.files = {folder.write("certificate", pair.certificate), folder.write("key", pair.key),
                     folder.write("authority", authority.pair().certificate)};
  const Rig rig("tls", {});
  return rig.serve({{"session", [&](const Request& request) { return sessions(request, keys); }},
                    {"session_certified", [&](const Request& request) { return sessions(request, certified); }},
                    {"aes", aes}});
}

}  // namespace
}  // namespace caftan::bench

int main() { return caftan::bench::serve(); }

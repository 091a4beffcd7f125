#include "tls_contexts.hpp"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "tls_certificates.hpp"

namespace caftan::net::tls {
namespace {

constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::size_t kMostContexts = 16;

/// What changes with the contents of a file.
struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  timespec changed{};
  bool operator==(const Stamp& other) const noexcept {
    return device == other.device && inode == other.inode && size == other.size &&
           changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
};
using Stamps = std::array<Stamp, 3>;

/// Returns nothing where a file cannot be looked at, or was changed just now: it could change again within the same
/// moment of the file system's clock.
std::optional<Stamps> stamps_of(const TlsFiles& files) {
  constexpr time_t kJustNow = 2;  // seconds
  Stamps stamps{};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  Stamp* at = stamps.data();
  for (const std::filesystem::path* file : {&files.certificate, &files.key, &files.authority}) {
    struct stat found {};
    if (file->empty()) continue;
    if (::stat(file->c_str(), &found) != 0 || found.st_mtim.tv_sec + kJustNow > now.tv_sec) return std::nullopt;
    *at++ = {found.st_dev, found.st_ino, found.st_size, found.st_mtim};
  }
  return stamps;
}

class Contexts {
 public:
  Context find(bool is_client, const TlsFiles& files, const Stamps& stamps) {
    const base::LockGuard lock(mutex_);
    const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
      return kept.is_client == is_client && kept.files == files && kept.stamps == stamps;
    });
    return found == kept_.end() ? nullptr : found->context;
  }
  void keep(bool is_client, const TlsFiles& files, const Stamps& stamps, Context context) {
    const base::LockGuard lock(mutex_);
    std::erase_if(kept_, [&](const Kept& kept) { return kept.is_client == is_client && kept.files == files; });
    if (kept_.size() == kMostContexts) kept_.erase(kept_.begin());
    kept_.push_back({is_client, files, stamps, std::move(context)});
  }

 private:
  struct Kept {
    bool is_client;
    TlsFiles files;
    Stamps stamps;
    Context context;
  };
  base::Mutex mutex_;
  std::vector<Kept> kept_ CAFTAN_GUARDED_BY(mutex_);  // the oldest first
};

Contexts& contexts() {
  static Contexts kept;
  return kept;
}

Result<Context> make_context(bool is_client, const TlsFiles& files) {
  Context context(::SSL_CTX_new(is_client ? ::TLS_client_method() : ::TLS_server_method()), ::SSL_CTX_free);
  if (!context || ::SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      ::SSL_CTX_set_ciphersuites(context.get(), kSuite) != 1) {
    return Error(Errc::io_error, "TLS 1.3 is not available in this OpenSSL");
  }
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_num_tickets(context.get(), 0);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (files.certificate.empty()) return context;
  if (auto loaded = load_files(context.get(), files); !loaded) return loaded.error();
  return context;
}

}  // namespace

Result<Context> shared_context(bool is_client, const TlsFiles& files,
                               void (*set_up)(SSL_CTX*, bool is_client, bool has_files)) {
  const auto stamps = stamps_of(files);  // before the files are read
  Context context = stamps ? contexts().find(is_client, files, *stamps) : nullptr;
  if (!context) {
    auto made = make_context(is_client, files);
    if (!made) return made;
    context = *std::move(made);
    set_up(context.get(), is_client, !files.certificate.empty());
    if (stamps) contexts().keep(is_client, files, *stamps, context);
  }
  if (files.certificate.empty()) return context;
  if (auto valid = check_own_validity(context.get(), files); !valid) return valid.error();
  return context;
}

}  // namespace caftan::net::tls

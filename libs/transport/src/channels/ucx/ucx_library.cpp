#include "channels/ucx/ucx_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace caftan::transport {
namespace {

constexpr const char* kLibrary = "libucp.so.0";

/// Loads the library. Its variables are set for this process unless its user has set them: it must not take the
/// signals of errors, which belong to the program, and it must not print beside the program's output.
Result<UcxLibrary> load() {
  constexpr int kKeep = 0;
  ::setenv("UCX_ERROR_SIGNALS", "", kKeep);
  ::setenv("UCX_HANDLE_ERRORS", "none", kKeep);
  ::setenv("UCX_LOG_LEVEL", "fatal", kKeep);
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", kKeep);
  // UX-9: where a peer ends, UCX 1.13 may complete twice what its TCP sends from the caller's memory, and aborts the
  // process. With no vectors for that memory its TCP copies, whatever the user has set.
  constexpr int kReplace = 1;
  ::setenv("UCX_TCP_MAX_IOV", "0", kReplace);
  ::setenv("UCX_TCP_TX_SEG_SIZE", "64k", kKeep);  // what a copy holds: the 8 KiB of UCX take three times as long
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return Error(Errc::unsupported,
                 std::string("UCX cannot be loaded: ") + (why ? why : kLibrary) + "; Debian's package is libucx0");
  }
  UcxLibrary library{};
  std::string lacking;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (!function) lacking = name;
  };
  find(library.config_read, "ucp_config_read");
  find(library.config_release, "ucp_config_release");
  find(library.init_version, "ucp_init_version");
  find(library.cleanup, "ucp_cleanup");
  find(library.worker_create, "ucp_worker_create");
  find(library.worker_destroy, "ucp_worker_destroy");
  find(library.worker_get_address, "ucp_worker_get_address");
  find(library.worker_release_address, "ucp_worker_release_address");
  find(library.worker_get_efd, "ucp_worker_get_efd");
  find(library.worker_progress, "ucp_worker_progress");
  find(library.worker_arm, "ucp_worker_arm");
  find(library.ep_create, "ucp_ep_create");
  find(library.ep_close, "ucp_ep_close_nbx");
  find(library.stream_send, "ucp_stream_send_nbx");
  find(library.stream_recv_data, "ucp_stream_recv_data_nb");
  find(library.stream_data_release, "ucp_stream_data_release");
  find(library.request_check_status, "ucp_request_check_status");
  find(library.request_free, "ucp_request_free");
  find(library.mem_map, "ucp_mem_map");
  find(library.mem_unmap, "ucp_mem_unmap");
  find(library.status_string, "ucs_status_string");
  if (lacking.empty()) return library;
  return Error(Errc::unsupported, std::string(kLibrary) + " has no " + lacking + ": it is not UCX 1.13 or later");
}

}  // namespace

Result<const UcxLibrary*> ucx_library() {
  // As the loader's own table of libraries, this is one for the process.
  static const Result<UcxLibrary> library = load();
  if (!library) return library.error();
  return &*library;
}

}  // namespace caftan::transport

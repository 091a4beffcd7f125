/// The functions of UCX's library, which is loaded when the first channel asks for it. A process that uses no UCX loads
/// nothing: the library patches functions of the C library as soon as it is there.
#pragma once

#include <ucp/api/ucp.h>

#include "caftan/base/result.hpp"

namespace caftan::transport {

struct UcxLibrary {
  decltype(&::ucp_config_read) config_read;
  decltype(&::ucp_config_release) config_release;
  decltype(&::ucp_init_version) init_version;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_worker_create) worker_create;
  decltype(&::ucp_worker_destroy) worker_destroy;
  decltype(&::ucp_worker_get_address) worker_get_address;
  decltype(&::ucp_worker_release_address) worker_release_address;
  decltype(&::ucp_worker_get_efd) worker_get_efd;
  decltype(&::ucp_worker_progress) worker_progress;
  decltype(&::ucp_worker_arm) worker_arm;
  decltype(&::ucp_ep_create) ep_create;
  decltype(&::ucp_ep_close_nbx) ep_close;
  decltype(&::ucp_stream_send_nbx) stream_send;
  decltype(&::ucp_stream_recv_data_nb) stream_recv_data;
  decltype(&::ucp_stream_data_release) stream_data_release;
  decltype(&::ucp_request_check_status) request_check_status;
  decltype(&::ucp_request_free) request_free;
  decltype(&::ucp_mem_map) mem_map;
  decltype(&::ucp_mem_unmap) mem_unmap;
  decltype(&::ucs_status_string) status_string;
};

/// Returns the library, which stays loaded. Errors: unsupported (it is not installed, or lacks a function; the text
/// names the package). Threads: any.
Result<const UcxLibrary*> ucx_library();

}  // namespace caftan::transport

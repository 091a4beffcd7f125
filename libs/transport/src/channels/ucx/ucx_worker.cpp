#include "channels/ucx/ucx_worker.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace caftan::transport {

Result<std::unique_ptr<UcxWorker>> UcxWorker::open() {
  const auto library = ucx_library();
  if (!library) return library.error();
  std::unique_ptr<UcxWorker> worker(new UcxWorker(**library));
  if (auto made = worker->make(); !made) return made.error();
  return worker;
}

Result<void> UcxWorker::make() {
  const auto refused = [&](const char* what, ucs_status_t status) {
    return Error(Errc::unsupported, std::string("UCX ") + what + ": " + ucx_.status_string(status) +
                                        "; UCX_TLS and UCX_NET_DEVICES choose its transports and devices");
  };
  ucp_config_t* config = nullptr;
  if (const auto status = ucx_.config_read(nullptr, nullptr, &config); status != UCS_OK)
    return refused("does not read its settings", status);
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP;
  const auto status = ucx_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
  ucx_.config_release(config);
  if (status != UCS_OK) return refused("does not start", status);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const auto made = ucx_.worker_create(context_, &worker, &worker_); made != UCS_OK)
    return refused("has no usable device", made);
  if (const auto got = ucx_.worker_get_efd(worker_, &fd_); got != UCS_OK)
    return refused("cannot wait for these transports without computing", got);
  return {};
}

UcxWorker::~UcxWorker() {
  if (chunk_) ucx_.stream_data_release(ep_, chunk_);
  // Without UCX's handling of errors an endpoint waits for its peer; then UCX ends it with the worker.
  if (ep_ && handles_errors_) {
    ucp_request_param_t options{};
    options.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    options.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const closing = ucx_.ep_close(ep_, &options);
    // Closing by force ends all requests with an error, so that UCX reads the slots no more.
    const auto await = [this](void* request) {
      if (!UCS_PTR_IS_PTR(request)) return;
      while (ucx_.request_check_status(request) == UCS_INPROGRESS) ucx_.worker_progress(worker_);
      ucx_.request_free(request);
    };
    await(closing);
    for (void* const request : requests_) await(request);
  }
  if (worker_) ucx_.worker_destroy(worker_);  // which ends requests that still read the slots
  if (memory_) ucx_.mem_unmap(context_, memory_);
  if (context_) ucx_.cleanup(context_);
}

Result<wire::Bytes> UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  if (const auto status = ucx_.worker_get_address(worker_, &address, &size); status != UCS_OK) {
    return Error(Errc::unsupported, std::string("UCX has no address: ") + ucx_.status_string(status));
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(address);
  wire::Bytes copy(bytes, bytes + size);
  ucx_.worker_release_address(worker_, address);
  return copy;
}

Result<void> UcxWorker::connect(wire::ByteView address) {
  if (auto mapped = map_slots(); !mapped) return mapped;
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_handler = {&UcxWorker::on_failure, this};
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  auto status = ucx_.ep_create(worker_, &parameters, &ep_);
  if (status == UCS_ERR_UNREACHABLE || status == UCS_ERR_UNSUPPORTED) {
    // UCX's shared memory does not find out that the peer has ended. The socket beside it does.
    parameters.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    handles_errors_ = false;
    status = ucx_.ep_create(worker_, &parameters, &ep_);
  }
  if (status == UCS_OK) return {};
  ep_ = nullptr;
  return Error(Errc::peer_down, std::string("UCX does not reach the peer: ") + ucx_.status_string(status) +
                                    "; both sides need a transport in common (UCX_TLS, UCX_NET_DEVICES)");
}

Result<void> UcxWorker::map_slots() {
  slots_ = std::make_unique_for_overwrite<std::byte[]>(kSlots * kSlot);
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  parameters.address = slots_.get();
  parameters.length = kSlots * kSlot;
  const auto status = ucx_.mem_map(context_, &parameters, &memory_);
  if (status == UCS_OK) return {};
  return Error(Errc::limit_exceeded,
               std::string("UCX cannot register 1 MiB of memory: ") + ucx_.status_string(status) + " (ulimit -l)");
}

void UcxWorker::on_failure(void* self, ucp_ep_h, ucs_status_t status) { static_cast<UcxWorker*>(self)->fail(status); }

void UcxWorker::fail(ucs_status_t status) {
  if (failure_) return;
  failure_ = Error(Errc::peer_down, std::string("the connection of UCX is broken: ") + ucx_.status_string(status));
}

bool UcxWorker::progress() {
  int rounds = 0;
  for (int tries = 0; tries < kTries; ++tries) {
    while (ucx_.worker_progress(worker_) != 0) {
      tries = 0;
      if (++rounds == kRounds) return false;
    }
    if (ucx_.worker_arm(worker_) != UCS_ERR_BUSY) return true;
  }
  return false;
}

bool UcxWorker::is_free(std::size_t slot) const {
  return requests_[slot] == nullptr || ucx_.request_check_status(requests_[slot]) != UCS_INPROGRESS;
}

bool UcxWorker::has_room() const { return is_free(next_); }

bool UcxWorker::is_sent() {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (!is_free(slot)) return false;
  }
  return true;
}

Result<std::size_t> UcxWorker::write(const iovec* vectors, int count, std::size_t most) {
  if (failure_) return *failure_;
  std::size_t total = 0;
  int at = 0;
  std::size_t skip = 0;  // bytes of vectors[at] that are taken
  while (total < most && at < count && is_free(next_)) {
    void*& request = requests_[next_];
    if (request) ucx_.request_free(std::exchange(request, nullptr));
    std::byte* const slot = slots_.get() + next_ * kSlot;
    std::size_t size = 0;
    while (at < count && size < kSlot && total < most) {
      const std::size_t part = std::min({vectors[at].iov_len - skip, kSlot - size, most - total});
      std::memcpy(slot + size, static_cast<const std::byte*>(vectors[at].iov_base) + skip, part);
      size += part;
      total += part;
      skip += part;
      if (skip == vectors[at].iov_len) {
        ++at;
        skip = 0;
      }
    }
    if (size == 0) break;
    ucp_request_param_t options{};
    options.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    options.memh = memory_;
    void* const sending = ucx_.stream_send(ep_, slot, size, &options);
    if (UCS_PTR_IS_ERR(sending)) {
      fail(UCS_PTR_STATUS(sending));
      return *failure_;
    }
    if (!sending) continue;  // UCX has a copy
    request = sending;
    next_ = (next_ + 1) % kSlots;
  }
  return total;
}

bool UcxWorker::has_data() {
  if (chunk_) return true;
  std::size_t size = 0;
  void* const got = ucx_.stream_recv_data(ep_, &size);
  if (!got) return false;
  if (UCS_PTR_IS_ERR(got)) {
    fail(UCS_PTR_STATUS(got));
    return false;
  }
  chunk_ = static_cast<std::byte*>(got);
  chunk_size_ = size;
  chunk_read_ = 0;
  return true;
}

Result<std::size_t> UcxWorker::read(const iovec* vectors, int count) {
  std::size_t total = 0;
  int at = 0;
  std::size_t filled = 0;  // bytes of vectors[at]
  while (at < count && has_data()) {
    const std::size_t part = std::min(chunk_size_ - chunk_read_, vectors[at].iov_len - filled);
    std::memcpy(static_cast<std::byte*>(vectors[at].iov_base) + filled, chunk_ + chunk_read_, part);
    chunk_read_ += part;
    filled += part;
    total += part;
    if (filled == vectors[at].iov_len) {
      ++at;
      filled = 0;
    }
    if (chunk_read_ == chunk_size_) ucx_.stream_data_release(ep_, std::exchange(chunk_, nullptr));
  }
  if (total == 0 && failure_) return *failure_;
  return total;
}

}  // namespace caftan::transport

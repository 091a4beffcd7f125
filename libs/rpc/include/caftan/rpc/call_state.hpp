/// `CallState<T>`: the state of an outgoing call in one allocation, which is both the state of the call's future and
/// the sink of its reply.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "caftan/rpc/future_state.hpp"
#include "caftan/rpc/packing.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::rpc {

/// What a call keeps besides its outcome.
struct CallRecord {
  Peer peer;
  std::string_view what;
  std::shared_ptr<const std::string> what_owner;
  CallToken token;  ///< written by the calling thread before the future is handed out
  InPayload payload;
};

/// Gives a request up; does nothing where the worker has ended.
void cancel_request(const std::weak_ptr<Caller>& caller, const CallToken& token) noexcept;
/// Reports the error of a call whose future was dropped; does nothing where the worker has ended.
void report_unobserved_error(const std::weak_ptr<Caller>& caller, std::string_view what, const Error& error) noexcept;

/// The reply is decoded by the thread that first reads the result, never by the thread that read the frame.
template <class T>
class CallState final : public FutureState<T>, public ReplySink {
 public:
  CallState(std::weak_ptr<Caller> caller, Peer peer, const OutRequest& request) : FutureState<T>(std::move(caller)) {
    record_.peer = std::move(peer);
    record_.what = request.what;
    record_.what_owner = request.what_owner;
  }

  /// Keeps the token by which the worker finds the request again. Threads: that of the call, before the future is
  /// handed out.
  void set_token(CallToken token) noexcept { record_.token = std::move(token); }

  void on_reply(Result<InPayload> reply) override {
    if (!reply) {
      this->complete(Result<T>(reply.error()));
      return;
    }
    base::UniqueLock lock(this->mutex_);
    if (this->ready()) return;
    record_.payload = *std::move(reply);
    record_.payload.keep_body();
    auto after = this->mark_undecoded();
    lock.unlock();
    this->follow_up(std::move(after));
  }

  bool cancel() override {
    if (!FutureState<T>::cancel()) return false;
    cancel_request(this->caller(), record_.token);
    return true;
  }

  std::shared_ptr<base::ReadableSource> source() const override { return record_.token.source.lock(); }

 private:
  bool ends_by_complete() const noexcept override { return false; }
  Result<T> decode() override {
    const InPayload payload = std::move(record_.payload);
    Result<T> value = decode_reply<T>(payload);
    if (value) return value;
    return Error(value.error().code(), record_.peer.name(), std::string(record_.what) + ": " + value.error().text());
  }
  void report_unobserved() noexcept override {
    report_unobserved_error(this->caller(), record_.what, this->outcome().error());
  }

  CallRecord record_;
};

}  // namespace caftan::rpc

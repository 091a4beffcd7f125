/// A call hook that counts: each of the seven moments, and the requests that have not met their end (CALL-3).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "caftan/rpc/call_hook.hpp"

namespace caftan::test {

class CountingHook final : public rpc::CallHook {
 public:
  struct Counts {
    int requests = 0, unsent = 0, received = 0, replies = 0, replies_received = 0, replies_dropped = 0, peers_down = 0;
  };

  Result<rpc::HookTicket> on_request(const Peer&, rpc::OutRequest&) override {
    const std::lock_guard lock(mutex_);
    ++counts_.requests;
    ends_[++last_] = 0;
    return rpc::HookTicket{last_};
  }
  void on_unsent(rpc::HookTicket ticket) noexcept override { end(ticket, counts_.unsent); }
  Result<void> on_receive(rpc::InPayload&, CallInfo&) override {
    const std::lock_guard lock(mutex_);
    ++counts_.received;
    if (refuse_) return *refuse_;
    return {};
  }
  void on_reply(const CallInfo&, rpc::OutReply&) override {
    const std::lock_guard lock(mutex_);
    ++counts_.replies;
  }
  Result<void> on_reply_received(rpc::HookTicket ticket, rpc::InPayload&) override {
    end(ticket, counts_.replies_received);
    return {};
  }
  void on_reply_dropped(rpc::HookTicket ticket, const Error&) noexcept override {
    end(ticket, counts_.replies_dropped);
  }
  void on_peer_down(const WorkerLife&) noexcept override {
    const std::lock_guard lock(mutex_);
    ++counts_.peers_down;
  }

  /// Makes on_receive refuse every call.
  void refuse(Error error) { refuse_ = std::move(error); }
  Counts counts() const { return counts_; }
  /// Returns whether every request met exactly one end.
  bool all_ended_once() const {
    for (const auto& [ticket, ends] : ends_) {
      if (ends != 1) return false;
    }
    return true;
  }

 private:
  void end(rpc::HookTicket ticket, int& count) noexcept {
    const std::lock_guard lock(mutex_);
    ++count;
    ++ends_[ticket.value];
  }

  mutable std::mutex mutex_;
  Counts counts_;
  std::optional<Error> refuse_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, int> ends_;
};

}  // namespace caftan::test

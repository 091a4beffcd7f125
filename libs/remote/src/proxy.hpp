/// The stand-in for an actor of another worker. Each message to it becomes a frame. When the actor or the session ends,
/// the proxy goes down, and CAF sends down and exit messages to the actors that monitor it or are linked to it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include <caf/actor_proxy.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::remote {

class Proxy final : public caf::actor_proxy {
 public:
  Proxy(caf::actor_config& config, std::weak_ptr<transport::Session> session, const Address& address, bool watched);
  ~Proxy() override;

  const Address& address_at_peer() const noexcept { return address_; }
  std::shared_ptr<transport::Session> session() const noexcept { return session_.lock(); }

  /// A message that cannot be sent is dropped, a request gets an error as its reply; `send` returns the reason instead.
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  /// As enqueue of a message that is no request. Errors: as ActorExchange::send.
  Result<void> send(const caf::strong_actor_ptr& from, const caf::type_erased_tuple& content,
                    std::optional<transport::FlushBy> may_wait);
  void attach(caf::attachable_ptr ptr) override;
  bool add_backlink(caf::abstract_actor* other) override;
  bool remove_backlink(caf::abstract_actor* other) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override;
  const char* name() const override { return "proxy"; }

  /// While set, links that this thread makes or removes send no frame, since the peer does the same by itself (WI-19).
  static bool& quiet_links() noexcept {
    static thread_local bool quiet = false;
    return quiet;
  }

 private:
  void send_exit(const caf::exit_msg& exit);
  Result<void> send_message(const caf::type_erased_tuple& content, const caf::strong_actor_ptr& sender,
                            caf::message_id id, std::optional<transport::FlushBy> may_wait);
  void send_link(wire::FrameKind kind, caf::abstract_actor* other);

  const std::weak_ptr<transport::Session> session_;
  const Address address_;
  std::atomic<bool> watched_;
};

/// Answers one request of the peer: the message that the local actor replies with becomes the reply frame. If the actor
/// drops the request, the peer gets broken_promise, which CAF 0.17.6 itself never sends.
class ReplyActor final : public caf::actor_proxy {
 public:
  ReplyActor(caf::actor_config& config, std::weak_ptr<transport::Session> session, std::uint64_t call);
  ~ReplyActor() override;

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override;
  const char* name() const override { return "reply"; }

 private:
  void answer_error(const Error& error);

  const std::weak_ptr<transport::Session> session_;
  const std::uint64_t call_;
  std::atomic<bool> answered_{false};
};

}  // namespace caftan::remote

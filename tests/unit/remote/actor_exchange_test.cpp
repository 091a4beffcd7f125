// Actors of two workers over two sessions: messages, requests, monitors and links, and what the loss of the session
// does.
#include "caftan/remote/internal/actor_exchange.hpp"

#include <gtest/gtest.h>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <cstring>
#include <stdexcept>

#include "exchange_side.hpp"

namespace caftan::remote {
struct Ping {
  int number = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& number;
  }
};
struct Introduction {
  caf::actor who;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& who;
  }
};
struct NotRegistered {};
}  // namespace caftan::remote

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::remote::Ping)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::remote::Introduction)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::remote::NotRegistered)

namespace caftan::remote::actor_exchange_test {
namespace {

/// The messages that an actor got.
struct Notes {
  std::vector<int> pings;
  std::vector<Error> downs;
  std::vector<Error> replies;
  std::vector<caf::actor> met;
  bool ended = false;
};

/// Answers a Ping with the next number, the Ping 13 with an error and the Ping 99 not at all; sends a Ping to each
/// actor that an Introduction names.
class Echo final : public caf::event_based_actor {
 public:
  Echo(caf::actor_config& config, std::shared_ptr<Notes> notes)
      : caf::event_based_actor(config), notes_(std::move(notes)) {
    set_down_handler([this](const caf::down_msg& down) { notes_->downs.push_back(from_caf(down.reason, system())); });
  }
  void on_exit() override { notes_->ended = true; }
  caf::behavior make_behavior() override {
    return {
        [this](const Ping& ping) -> caf::result<Ping> {
          notes_->pings.push_back(ping.number);
          // CAF sends a handler's result back also when the message was no request; two Echo actors would then never
          // stop.
          if (!current_mailbox_element()->mid.is_request()) return caf::delegated<Ping>();
          if (ping.number == 13) return to_caf(Error(Errc::bad_arguments, "worker1", "thirteen"));
          if (ping.number == 99) return caf::delegated<Ping>();
          return Ping{ping.number + 1};
        },
        [this](const Introduction& introduction) {
          notes_->met.push_back(introduction.who);
          send(introduction.who, Ping{7});
        },
    };
  }

 private:
  const std::shared_ptr<Notes> notes_;
};

class Exchange : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static MessageRegistry messages() {
    MessageRegistry registry;
    registry.add<Ping>("ping");
    registry.add<Introduction>("introduction");
    return registry;
  }
  Exchange() {
    auto [a, b] = make_loopback_pair(executor_);
    near_ = std::make_unique<ExchangeSide>(executor_, WorkerId{0}, WorkerId{1}, std::move(a),
                                           transport::SessionOptions(), messages());
    far_ = std::make_unique<ExchangeSide>(executor_, WorkerId{1}, WorkerId{0}, std::move(b),
                                          transport::SessionOptions(), messages());
    remote_ = far_->host.spawn<Echo>(remote_notes_);
    local_ = near_->host.spawn<Echo>(local_notes_);
    ActorExchange::of(*far_->session).export_at(Address::root(), strong(remote_));
    near_->session->start();
    far_->session->start();
    proxy_ = ActorExchange::of(*near_->session).proxy(Address::root());
  }
  ~Exchange() override {
    for (const auto& actor : {local_, remote_}) caf::anon_send_exit(actor, caf::exit_reason::kill);
    local_notes_->met.clear();
    remote_notes_->met.clear();
    executor_.run();
    local_ = remote_ = nullptr;
    proxy_ = nullptr;
  }
  static caf::strong_actor_ptr strong(const caf::actor& actor) { return caf::actor_cast<caf::strong_actor_ptr>(actor); }
  caf::event_based_actor& local() { return static_cast<caf::event_based_actor&>(*strong(local_)->get()); }
  void tell(const caf::strong_actor_ptr& to, caf::message message) {
    to->enqueue(strong(local_), caf::make_message_id(), std::move(message), nullptr);
  }
  /// Sends a request as `local_` would and returns what came back.
  caf::message ask(caf::message message) {
    struct Answer {
      caf::message content;
    };
    auto answer = std::make_shared<Answer>();
    class Asker final : public caf::event_based_actor {
     public:
      Asker(caf::actor_config& config, caf::strong_actor_ptr to, caf::message what, std::shared_ptr<Answer> answer)
          : caf::event_based_actor(config), to_(std::move(to)), what_(std::move(what)), answer_(std::move(answer)) {}
      caf::behavior make_behavior() override {
        request(caf::actor_cast<caf::actor>(to_), caf::infinite, what_)
            .then([this](const Ping& pong) { answer_->content = caf::make_message(pong); },
                  [this](const caf::error& error) { answer_->content = caf::make_message(error); });
        return {};
      }

     private:
      caf::strong_actor_ptr to_;
      caf::message what_;
      std::shared_ptr<Answer> answer_;
    };
    near_->host.spawn<Asker>(proxy_, std::move(message), answer);
    executor_.run();
    return answer->content;
  }
  Errc error_of(const caf::message& answer) {
    if (!answer.match_elements<caf::error>()) return Errc::ok;
    return from_caf(answer.get_as<caf::error>(0), near_->host.system()).code();
  }
  void lose() {
    near_->session->abort(Error(Errc::peer_down, "lost"));
    executor_.run();
  }

  transport::SteppedExecutor executor_{GetParam()};
  std::shared_ptr<Notes> local_notes_ = std::make_shared<Notes>();
  std::shared_ptr<Notes> remote_notes_ = std::make_shared<Notes>();
  std::unique_ptr<ExchangeSide> near_;
  std::unique_ptr<ExchangeSide> far_;
  caf::actor remote_;
  caf::actor local_;
  caf::strong_actor_ptr proxy_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Exchange, ::testing::Range<std::uint64_t>(1, 11));

TEST(Messages, ATypeAndANameAreRegisteredOnce) {
  MessageRegistry registry;
  registry.add<Ping>("ping");
  EXPECT_THROW(registry.add<Ping>("another name"), std::logic_error);
  EXPECT_THROW(registry.add<Introduction>("ping"), std::logic_error);
}

TEST_P(Exchange, AMessageThatEndsInTheIdOfItsTypeIsCutOff) {
  const std::uint64_t id = MessageRegistry::id_of("ping");
  wire::Bytes ping(sizeof id);
  std::memcpy(ping.data(), &id, sizeof id);
  wire::append(ping, wire::encode(Ping{7}).value());
  InAttachment nothing;
  ActorExchange& exchange = ActorExchange::of(*near_->session);
  EXPECT_TRUE(near_->messages.decode(ping, nothing, exchange));
  for (std::size_t size = 0; size < sizeof id; ++size) {
    const auto read = near_->messages.decode(wire::ByteView(ping).first(size), nothing, exchange);
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().text(), "a message is cut off") << size;
  }
}

TEST_P(Exchange, MessagesArriveInOrder) {
  for (int i = 0; i < 50; ++i) tell(proxy_, caf::make_message(Ping{100 + i}));
  executor_.run();
  ASSERT_EQ(remote_notes_->pings.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(remote_notes_->pings[static_cast<std::size_t>(i)], 100 + i);
}

TEST_P(Exchange, WI18_ARequestGetsTheReplyTheErrorOrABrokenPromise) {
  const caf::message pong = ask(caf::make_message(Ping{1}));
  ASSERT_TRUE(pong.match_elements<Ping>());
  EXPECT_EQ(pong.get_as<Ping>(0).number, 2);
  EXPECT_EQ(error_of(ask(caf::make_message(Ping{13}))), Errc::bad_arguments);
  EXPECT_EQ(error_of(ask(caf::make_message(Ping{99}))), Errc::broken_promise);
  EXPECT_EQ(error_of(ask(caf::make_message(NotRegistered()))), Errc::unsupported);
  EXPECT_EQ(near_->session->requests().size(), 0U);
}

TEST_P(Exchange, ARequestEndsWithTheSession) {
  lose();
  EXPECT_EQ(error_of(ask(caf::make_message(Ping{1}))), Errc::peer_down);
}

TEST_P(Exchange, AHandleInAMessageReachesBack) {
  tell(proxy_, caf::make_message(Introduction{local_}));
  executor_.run();
  EXPECT_EQ(local_notes_->pings, std::vector{7});
  ASSERT_EQ(remote_notes_->met.size(), 1U);
  // When the far side sends a handle of that actor back, the address says `returned`: it is one of our own actors, not
  // a proxy of a proxy.
  EXPECT_EQ(ActorExchange::of(*far_->session).export_actor(strong(remote_notes_->met[0])).kind, AddressKind::returned);
}

TEST_P(Exchange, WI17_OneProxyPerAddressAndNoneIsKeptWithoutAUser) {
  ActorExchange& exchange = ActorExchange::of(*near_->session);
  EXPECT_EQ(exchange.proxy(Address::root()), proxy_);
  EXPECT_EQ(exchange.proxies(), 1U);
  EXPECT_EQ(ActorExchange::session_of(proxy_).get(), near_->session.get());
  EXPECT_EQ(ActorExchange::session_of(strong(local_)), nullptr);
  proxy_ = nullptr;
  EXPECT_EQ(exchange.proxies(), 0U);
}

TEST_P(Exchange, AMonitorIsNotifiedOnceWhenTheActorEnds) {
  local().monitor(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  EXPECT_TRUE(local_notes_->downs.empty());
  caf::anon_send_exit(remote_, caf::exit_reason::kill);
  executor_.run();
  EXPECT_EQ(local_notes_->downs.size(), 1U);
  lose();
  EXPECT_EQ(local_notes_->downs.size(), 1U);
}

TEST_P(Exchange, RR3_AMonitorOfNothingIsDown) {
  const auto nothing = ActorExchange::of(*near_->session).proxy(Address::exported(12345));
  local().monitor(caf::actor_cast<caf::actor>(nothing));
  executor_.run();
  ASSERT_EQ(local_notes_->downs.size(), 1U);
  EXPECT_EQ(local_notes_->downs[0].code(), Errc::rref_deleted);
}

TEST_P(Exchange, WI13_RR12_TheLossOfTheSessionIsADownForEveryProxy) {
  std::vector<caf::strong_actor_ptr> watched;
  for (std::uint64_t i = 0; i < 200; ++i) {
    // A proxy of a fork is monitored without a frame to the peer, because a fork announces its end unasked (RR-4).
    watched.push_back(
        ActorExchange::of(*near_->session).proxy(Address::of(ForkId{WorkerId{1}, Incarnation{2}, i + 1})));
    local().monitor(caf::actor_cast<caf::actor>(watched.back()));
  }
  executor_.run();
  EXPECT_TRUE(local_notes_->downs.empty());
  lose();
  ASSERT_EQ(local_notes_->downs.size(), 200U);
  EXPECT_EQ(local_notes_->downs[0].code(), Errc::peer_down);
  EXPECT_EQ(near_->handler.ends.size(), 1U);
}

TEST_P(Exchange, WI16_AProxyMadeAfterTheEndIsDownAlready) {
  lose();
  const auto late = ActorExchange::of(*near_->session).proxy(Address::exported(1));
  ASSERT_TRUE(late);
  local().monitor(caf::actor_cast<caf::actor>(late));
  executor_.run();
  EXPECT_EQ(local_notes_->downs.size(), 1U);
}

TEST_P(Exchange, LinkedActorsShareTheirFateBothWays) {
  local().link_to(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  if (GetParam() % 2 == 0) {
    caf::anon_send_exit(remote_, caf::exit_reason::user_shutdown);
  } else {
    caf::anon_send_exit(local_, caf::exit_reason::user_shutdown);
  }
  executor_.run();
  EXPECT_TRUE(local_notes_->ended);
  EXPECT_TRUE(remote_notes_->ended);
}

TEST_P(Exchange, UnlinkedActorsDoNot) {
  local().link_to(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  local().unlink_from(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  if (GetParam() % 2 == 0) {
    caf::anon_send_exit(remote_, caf::exit_reason::user_shutdown);
  } else {
    caf::anon_send_exit(local_, caf::exit_reason::user_shutdown);
  }
  executor_.run();
  EXPECT_EQ(remote_notes_->ended, GetParam() % 2 == 0);
  EXPECT_EQ(local_notes_->ended, GetParam() % 2 == 1);
}

TEST_P(Exchange, M3_AnUnlinkedActorOutlivesTheSession) {
  local().link_to(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  local().unlink_from(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  lose();
  EXPECT_FALSE(local_notes_->ended);
  EXPECT_FALSE(remote_notes_->ended) << "the unlink did not reach its side";
}

TEST_P(Exchange, ALinkEndsWithTheSession) {
  local().link_to(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  lose();
  EXPECT_TRUE(local_notes_->ended);
  EXPECT_TRUE(remote_notes_->ended);
}

TEST_P(Exchange, WI12_AFrameAboutAnActorThatCannotBeReadEndsTheSession) {
  auto [ours, theirs] = transport::make_loopback_pair(executor_);
  transport::BytePeer peer(std::move(theirs));
  const ExchangeSide side(executor_, WorkerId{0}, WorkerId{1}, std::move(ours), transport::SessionOptions(),
                          messages());
  side.session->start();
  peer.write(wire::make_frame(wire::header_of(wire::FrameKind::monitor), {}, wire::Bytes(2)));
  executor_.run();
  ASSERT_EQ(side.handler.ends.size(), 1U);
  EXPECT_EQ(side.handler.ends[0].code(), Errc::malformed_payload);
}

}  // namespace
}  // namespace caftan::remote::actor_exchange_test

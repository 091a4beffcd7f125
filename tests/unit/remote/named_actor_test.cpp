// Actors with names of their own, and messages with something beside their bytes.
#include <gtest/gtest.h>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <cstring>

#include "caftan/remote/internal/actor_exchange.hpp"
#include "exchange_side.hpp"

namespace caftan::remote {
/// A number in the bytes and a block beside them.
struct Parcel {
  int number = 0;
  std::vector<std::byte> beside;
};
}  // namespace caftan::remote

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::remote::Parcel)

template <>
struct caftan::wire::Codec<caftan::remote::Parcel> {
  static void save(OutArchive& to, const remote::Parcel& parcel) {
    to << parcel.number;
    auto* out = to.companion<remote::OutAttachment>();
    auto bytes = std::make_shared<std::vector<std::byte>>(parcel.beside);
    out->segments.push_back({bytes->data(), bytes->size(), bytes});
    out->table.assign(3, std::byte{42});
  }
  static void load(InArchive& from, remote::Parcel& parcel) {
    from >> parcel.number;
    auto* in = from.companion<remote::InAttachment>();
    if (in->table.size() != 3 || in->segments.size() != 1) throw DecodeError("no parcel");
    const Block& block = in->segments[0];
    parcel.beside.assign(block.data(), block.data() + block.size());
  }
};

namespace caftan::remote::named_actor_test {
namespace {

constexpr ContextId kContext{WorkerId{1}, Incarnation{2}, 7};

/// Has a name, keeps what it gets, and answers the sender with the same parcel and the next number.
class Named final : public caf::event_based_actor, public NamedActor {
 public:
  Named(caf::actor_config& config, std::vector<Parcel>& got, std::vector<caf::strong_actor_ptr>& senders, bool answers)
      : caf::event_based_actor(config), got_(got), senders_(senders), answers_(answers) {
    set_down_handler([this](const caf::down_msg&) { got_.push_back({-1, {}}); });
  }
  Address wire_name() const noexcept override { return Address::of(kContext); }
  caf::behavior make_behavior() override {
    return {[this](const Parcel& parcel) {
      got_.push_back(parcel);
      senders_.push_back(current_sender());
      if (answers_) send(caf::actor_cast<caf::actor>(current_sender()), Parcel{parcel.number + 1, parcel.beside});
    }};
  }

 private:
  std::vector<Parcel>& got_;
  std::vector<caf::strong_actor_ptr>& senders_;
  const bool answers_;
};

class OneName final : public NamedActors {
 public:
  caf::actor actor;
  caf::strong_actor_ptr find_named(const transport::Session&, const Address& name) override {
    return name == Address::of(kContext) ? caf::actor_cast<caf::strong_actor_ptr>(actor) : nullptr;
  }
  caf::strong_actor_ptr stand_in(const Address& name) override {
    return name.kind == AddressKind::send_function ? caf::actor_cast<caf::strong_actor_ptr>(actor) : nullptr;
  }
};

class NamedActorTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static MessageRegistry messages() {
    MessageRegistry registry;
    registry.add<Parcel>("parcel");
    return registry;
  }
  NamedActorTest() {
    auto [a, b] = make_loopback_pair(executor_);
    near_ = std::make_unique<ExchangeSide>(executor_, WorkerId{0}, WorkerId{1}, std::move(a),
                                           transport::SessionOptions(), messages());
    far_ = std::make_unique<ExchangeSide>(executor_, WorkerId{1}, WorkerId{0}, std::move(b),
                                          transport::SessionOptions(), messages());
    near_->host.set_named_actors(&near_names_);
    far_->host.set_named_actors(&far_names_);
    near_names_.actor = near_->host.spawn<Named>(near_got_, senders_, false);
    far_names_.actor = far_->host.spawn<Named>(far_got_, senders_, true);
    near_->session->start();
    far_->session->start();
    proxy_ = ActorExchange::of(*near_->session).proxy(Address::of(kContext));
  }
  ~NamedActorTest() override {
    for (auto* actor : {&near_names_.actor, &far_names_.actor}) {
      caf::anon_send_exit(*actor, caf::exit_reason::kill);
      *actor = nullptr;
    }
    senders_.clear();
    proxy_ = nullptr;
    executor_.run();
  }
  void send(const caf::strong_actor_ptr& to, Parcel parcel) {
    to->enqueue(caf::actor_cast<caf::strong_actor_ptr>(near_names_.actor), caf::make_message_id(),
                caf::make_message(std::move(parcel)), nullptr);
    executor_.run();
  }

  transport::SteppedExecutor executor_{GetParam()};
  OneName near_names_, far_names_;
  std::vector<Parcel> near_got_, far_got_;
  std::vector<caf::strong_actor_ptr> senders_;
  std::unique_ptr<ExchangeSide> near_, far_;
  caf::strong_actor_ptr proxy_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, NamedActorTest, ::testing::Range<std::uint64_t>(1, 9));

TEST_P(NamedActorTest, IsFoundWithoutAnExportAndAnswersByName) {
  send(proxy_, {1, {}});
  ASSERT_EQ(far_got_.size(), 1U);
  ASSERT_EQ(near_got_.size(), 1U);
  EXPECT_EQ(near_got_[0].number, 2);
  EXPECT_EQ(senders_[1], proxy_);  // while a proxy is held, its name always gives the same proxy
  EXPECT_EQ(ActorExchange::session_of(senders_[0]), far_->session);
  EXPECT_EQ(ActorExchange::of(*near_->session).exports(), 0U);
  EXPECT_EQ(ActorExchange::of(*far_->session).exports(), 0U);
}

TEST_P(NamedActorTest, CarriesWhatIsBesideItsBytes) {
  std::vector<std::byte> large(1 << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 31);
  send(proxy_, {1, large});
  ASSERT_EQ(near_got_.size(), 1U);
  EXPECT_EQ(far_got_[0].beside, large);
  EXPECT_EQ(near_got_[0].beside, large);
}

TEST_P(NamedActorTest, AnUnknownNameIsDroppedAndIsDownWhenWatched) {
  const auto nobody = ActorExchange::of(*near_->session).proxy(Address::of(ContextId{WorkerId{1}, Incarnation{2}, 8}));
  send(nobody, {1, {}});
  EXPECT_TRUE(far_got_.empty());
  EXPECT_FALSE(near_->session->ended());
  auto& watcher =
      static_cast<caf::event_based_actor&>(*caf::actor_cast<caf::strong_actor_ptr>(near_names_.actor)->get());
  watcher.monitor(caf::actor_cast<caf::actor>(nobody));
  executor_.run();
  ASSERT_EQ(near_got_.size(), 1U);
  EXPECT_EQ(near_got_[0].number, -1);
}

TEST_P(NamedActorTest, WI23_ANameOfAnUnknownKindIsANameWithoutAnActor) {
  const Address later{AddressKind{200}, WorkerId{1}, Incarnation{2}, 8};
  const auto unknown = ActorExchange::of(*near_->session).proxy(later);
  send(unknown, {1, {}});
  EXPECT_TRUE(far_got_.empty());
  EXPECT_FALSE(near_->session->ended());
  EXPECT_FALSE(far_->session->ended());
}

TEST_P(NamedActorTest, MessagesToANameWithoutAnActorGoToTheStandIn) {
  const auto nobody =
      ActorExchange::of(*near_->session).proxy(Address::send_function({WorkerId{1}, Incarnation{2}, 8}));
  send(nobody, {1, {}});
  EXPECT_EQ(far_got_.size(), 1U);
}

TEST_P(NamedActorTest, ItsEndReachesWhoWatchesItAndLeavesNoExport) {
  auto& watcher =
      static_cast<caf::event_based_actor&>(*caf::actor_cast<caf::strong_actor_ptr>(near_names_.actor)->get());
  watcher.monitor(caf::actor_cast<caf::actor>(proxy_));
  executor_.run();
  caf::anon_send_exit(far_names_.actor, caf::exit_reason::kill);
  far_names_.actor = nullptr;
  executor_.run();
  ASSERT_EQ(near_got_.size(), 1U);
  EXPECT_EQ(near_got_[0].number, -1);
  EXPECT_EQ(ActorExchange::of(*far_->session).exports(), 0U);
}

}  // namespace
}  // namespace caftan::remote::named_actor_test

// Messages between actors, and errors about them, keep the limits of both sides.
#include <gtest/gtest.h>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "address_space.hpp"
#include "exchange_side.hpp"

namespace caftan::remote {
namespace {

struct Note {
  std::string text;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& text;
  }
};

}  // namespace
}  // namespace caftan::remote

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::remote::Note)

namespace caftan::remote::exchange_limits_test {
namespace {

constexpr std::size_t kLongText = 5000;  // more than a message may have

/// Answers each request with an error whose text has kLongText bytes.
class Verbose final : public caf::event_based_actor {
 public:
  using caf::event_based_actor::event_based_actor;
  caf::behavior make_behavior() override {
    return {
        [](const Note&) -> caf::result<Note> { return to_caf(Error(Errc::io_error, std::string(kLongText, 'x'))); }};
  }
};

/// Monitors another actor, sends it a request, and keeps the codes of the errors that the reply and the down message
/// bring.
class Witness final : public caf::event_based_actor {
 public:
  Witness(caf::actor_config& config, caf::strong_actor_ptr other, std::vector<Errc>& seen)
      : caf::event_based_actor(config), other_(std::move(other)), seen_(seen) {}
  caf::behavior make_behavior() override {
    const auto keep = [this](const caf::error& error) { seen_.push_back(from_caf(error, system()).code()); };
    set_down_handler([keep](const caf::down_msg& down) { keep(down.reason); });
    monitor(caf::actor_cast<caf::actor>(other_));
    request(caf::actor_cast<caf::actor>(other_), caf::infinite, Note{"?"}).then([](const Note&) {}, keep);
    return {[](const Note&) {}};
  }
  void on_exit() override { other_ = nullptr; }

 private:
  caf::strong_actor_ptr other_;
  std::vector<Errc>& seen_;
};

class ExchangeLimit : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  ExchangeLimit() {
    net::Limits limits;
    limits.message = 2000;
    limits.tensors = 100'000;
    limits.segments = 16;
    const transport::SessionOptions options{.limits = limits};
    MessageRegistry registry;
    registry.add<Note>("note");
    auto [here, there] = transport::make_loopback_pair(executor_);
    a_ =
        std::make_unique<ExchangeSide>(executor_, WorkerId{0}, WorkerId{1}, std::move(here), options, registry, limits);
    b_ = std::make_unique<ExchangeSide>(executor_, WorkerId{1}, WorkerId{0}, std::move(there), options, registry,
                                        limits);
    a_->session->start();
    b_->session->start();
  }
  void expect_alive() {
    executor_.run();
    EXPECT_TRUE(a_->handler.ends.empty());
    EXPECT_TRUE(b_->handler.ends.empty()) << b_->handler.ends[0].message();
  }

  transport::SteppedExecutor executor_{GetParam()};
  std::unique_ptr<ExchangeSide> a_;
  std::unique_ptr<ExchangeSide> b_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, ExchangeLimit, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(ExchangeLimit, T2_WI20_AnActorMessageThatIsTooLargeIsNotSent) {
  const auto root = ActorExchange::of(*a_->session).proxy(Address::root());
  const auto send = [&](std::size_t size) {
    return ActorExchange::send(root, nullptr, caf::make_message(Note{std::string(size, 'x')}));
  };
  const auto refused = send(2000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
  EXPECT_EQ(refused.error().worker(), "worker1");
  EXPECT_TRUE(send(1000));
  expect_alive();
  EXPECT_EQ(ActorExchange::send(root, nullptr, caf::make_message(1)).error().code(), Errc::unsupported);
}

TEST_P(ExchangeLimit, WI20_ErrorsOfActorsAndOfTheEndAreShortenedToWhatFits) {
  const Error error(Errc::io_error, std::string(kLongText, 'x'));
  caf::actor verbose = b_->host.spawn<Verbose>();
  ActorExchange::of(*b_->session).export_at(Address::root(), caf::actor_cast<caf::strong_actor_ptr>(verbose));
  std::vector<Errc> seen;
  caf::actor witness = a_->host.spawn<Witness>(ActorExchange::of(*a_->session).proxy(Address::root()), seen);
  executor_.run();
  EXPECT_EQ(seen, std::vector{Errc::io_error}) << "the reply";
  caf::anon_send(verbose, caf::exit_msg{verbose.address(), to_caf(error)});
  expect_alive();
  EXPECT_EQ(seen, (std::vector{Errc::io_error, Errc::io_error})) << "down";
  caf::anon_send_exit(witness, caf::exit_reason::kill);
  witness = verbose = nullptr;
  b_->session->writer().close(error);
  executor_.run();
  EXPECT_EQ(a_->session->farewell().code(), Errc::io_error);
}

TEST_P(ExchangeLimit, L4_WI22_AReplyWithoutMemoryForItsTensorsEndsItsRequest) {
  constexpr std::size_t kLarge = std::size_t{32} << 20;
  net::Limits limits;
  limits.tensors = 2 * kLarge;
  const transport::SessionOptions options{.limits = limits};
  MessageRegistry registry;
  registry.add<Note>("note");
  auto [here, there] = transport::make_loopback_pair(executor_);
  ExchangeSide asker(executor_, WorkerId{0}, WorkerId{1}, std::move(here), options, registry, limits);
  transport::SessionSide answerer(executor_, WorkerId{0}, std::move(there), options, limits);
  asker.session->start();
  answerer.session->start();
  std::vector<Errc> seen;
  caf::actor witness = asker.host.spawn<Witness>(ActorExchange::of(*asker.session).proxy(Address::root()), seen);
  executor_.run();
  const auto request = std::ranges::find_if(answerer.actor_frames, [](const wire::InFrame& frame) {
    return frame.header.kind == wire::FrameKind::actor_message && frame.header.call != 0;
  });
  ASSERT_NE(request, answerer.actor_frames.end());
  const auto zeros = std::make_shared<wire::Bytes>(kLarge);
  wire::OutFrame reply;
  reply.header.kind = wire::FrameKind::actor_reply;
  reply.header.call = request->header.call;
  reply.segments.push_back({zeros->data(), kLarge, zeros});
  {
    const test::AddressSpaceLimit limit(kLarge / 2);
    ASSERT_TRUE(answerer.session->writer().send(reply));
    executor_.run();
  }
  EXPECT_EQ(seen, std::vector{Errc::limit_exceeded});
  EXPECT_TRUE(asker.handler.ends.empty());
  caf::anon_send_exit(witness, caf::exit_reason::kill);
  witness = nullptr;
  executor_.run();
}

}  // namespace
}  // namespace caftan::remote::exchange_limits_test

// An authenticated peer that sends forged frames: the victim answers with typed errors, does not crash or hang, and no
// other worker suffers (BI-4).
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "caftan/net/internal/membership.hpp"
#include "caftan/remote/internal/address.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/rpc/internal/rref_manifest.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/wire/archive.hpp"
#include "rref/rref_messages.hpp"
#include "rref_roles.hpp"

namespace caftan::test::hostile_peer_test {
namespace {

using remote::Address;
using remote::AddressKind;
using wire::FrameKind;

/// A type whose values nest as deep as the received bytes say.
struct Tree {
  std::vector<Tree> children;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& children;
  }
};
int leaves(const Tree& tree) {
  int sum = tree.children.empty() ? 1 : 0;
  for (const Tree& child : tree.children) sum += leaves(child);
  return sum;
}
double sum_of(const at::Tensor& tensor) { return tensor.sum().item<double>(); }

Registry make_registry() {
  Registry registry = make_rref_registry();
  registry.add<&leaves>("leaves");
  registry.add<&sum_of>("sum_of");
  return registry;
}

/// A frame as a hostile peer would write it: nothing is checked.
struct Forged {
  FrameKind kind{};
  wire::Bytes body;
  std::uint64_t call = 0;
  wire::Bytes sections;
  std::uint64_t bulk = 0;

  wire::Bytes bytes() const {
    wire::FrameHeader header;
    header.kind = kind;
    header.call = call;
    header.sections_size = static_cast<std::uint32_t>(sections.size());
    header.body_size = static_cast<std::uint32_t>(body.size());
    header.bulk_size = bulk;
    wire::Bytes all(wire::kFrameHeaderSize);
    wire::encode_header(header, all.data());
    wire::append(all, sections);
    wire::append(all, body);
    return all;
  }
};

template <class... T>
wire::Bytes encode(const T&... values) {
  return wire::encode(std::make_tuple(values...)).value();
}

/// worker0 is attacked by worker1, whose own traffic goes on; worker2 is an honest peer of worker0.
class HostilePeer : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void attack(const Forged& frame) { net_.link("worker1", "worker0").inject(frame.bytes()); }
  void attack_and_settle(const Forged& frame) {
    attack(frame);
    cluster_.run_until_idle();
  }

  /// The victim still serves and calls.
  void expect_unharmed() {
    cluster_.run_until_idle();
    EXPECT_EQ(cluster_[2].rpc_sync<&add>("worker0", 1, 2), 3);
    EXPECT_EQ(cluster_[0].rpc_sync<&add>("worker2", 3, 4), 7);
  }
  void expect_ignored() {
    expect_unharmed();
    EXPECT_FALSE(lost_) << lost_->message();
    EXPECT_EQ(cluster_[1].rpc_sync<&add>("worker0", 1, 2), 3);
  }
  void expect_dropped(Errc reason) {
    expect_unharmed();
    ASSERT_TRUE(lost_);
    EXPECT_EQ(lost_->code(), reason) << lost_->message();
    EXPECT_EQ(lost_->worker(), "worker1");
    EXPECT_EQ(cluster_[0].try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::peer_down);
  }
  /// Puts every frame that the hostile worker sends to the victim from now on through `change`.
  void forge(std::function<void(wire::Bytes&)> change) {
    testing::Link& tap = net_.link("worker1", "worker0");
    tap.set_filter([&tap, change = std::move(change)](const testing::Frame& frame) {
      wire::Bytes bytes(frame.bytes.begin(), frame.bytes.end());
      change(bytes);
      tap.inject(bytes);
      return false;
    });
  }

  std::optional<Error> lost_;
  testing::Cluster cluster_{
      GetParam(), {"worker0", "worker1", "worker2"}, make_registry, [this](WorkerOptions& options) {
        options.rpc_timeout = std::chrono::seconds(5);
        if (options.name != "worker0") return;
        options.on_peer_down = [this](const std::string& peer, const Error& reason) {
          if (peer == "worker1") lost_ = reason;
        };
      }};
  testing::Network& net_ = cluster_.network();
};
INSTANTIATE_TEST_SUITE_P(Seeds, HostilePeer, ::testing::Range<std::uint64_t>(1, 6));

// ---- values and tensors

TEST_P(HostilePeer, TenThousandNestedValuesAreBadArguments) {
  forge([](wire::Bytes& frame) {
    wire::FrameHeader header = wire::decode_header(frame.data()).value();
    if (header.kind != FrameKind::call) return;
    // The last byte is the number of children of an empty tree.
    frame.pop_back();
    frame.insert(frame.end(), 10'000, std::byte{1});
    frame.push_back(std::byte{0});
    header.body_size += 10'000;
    wire::encode_header(header, frame.data());
  });
  const auto result = cluster_[1].try_rpc_sync<&leaves>("worker0", Tree());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::bad_arguments) << result.error().message();
  net_.link("worker1", "worker0").set_filter(nullptr);
  expect_ignored();
}

TEST_P(HostilePeer, AnySingleWrongByteOfATensorCallIsTyped) {
  // Each position of the frame once, over the seeds: sizes, kinds, strides, counts, manifest and bulk sections.
  const at::Tensor tensor = at::arange(6).view({2, 3});
  const std::vector<Errc> typed{Errc::malformed_payload, Errc::bad_arguments,     Errc::limit_exceeded,
                                Errc::unknown_function,  Errc::protocol_mismatch, Errc::peer_down,
                                Errc::timeout,           Errc::unsupported};
  std::size_t position = GetParam() - 1;
  std::size_t size = wire::kFrameHeaderSize + 1;
  for (; position < size; position += 5) {
    testing::Cluster cluster(GetParam(), {"worker0", "worker1", "worker2"}, make_registry,
                             [](WorkerOptions& options) { options.rpc_timeout = std::chrono::seconds(5); });
    testing::Link& tap = cluster.network().link("worker1", "worker0");
    for (const int value : {0x00, 0x7f, 0xff}) {
      tap.set_filter([&](const testing::Frame& frame) {
        if (frame.header.kind != FrameKind::call) return true;
        wire::Bytes bytes(frame.bytes.begin(), frame.bytes.end());
        size = bytes.size();
        bytes[std::min(position, size - 1)] = static_cast<std::byte>(value);
        tap.inject(bytes);
        return false;
      });
      // Each call must end: with a value where the changed byte does not matter, otherwise with an error of one of the
      // codes in `typed`.
      const auto result = cluster[1].rpc_async<&sum_of>("worker0", tensor).result();
      if (!result) {
        EXPECT_THAT(typed, ::testing::Contains(result.error().code()))
            << "byte " << position << ": " << result.error().message();
      }
    }
    tap.set_filter(nullptr);
    ASSERT_EQ(cluster[2].rpc_sync<&add>("worker0", 1, 2), 3) << "byte " << position;
  }
}

TEST_P(HostilePeer, SparseIndicesOutOfRangeAreRefused) {
  constexpr std::int64_t kRows = 1'000'003;
  const at::Tensor indices = at::tensor({5, 700'001}, at::kLong).view({1, 2});
  const at::Tensor sparse = at::_sparse_coo_tensor_unsafe(indices, at::ones({2}), {kRows});
  for (const std::int64_t wrong : {kRows, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    forge([wrong](wire::Bytes& frame) {
      if (wire::decode_header(frame.data()).value().kind != FrameKind::chunk) return;
      for (std::size_t at = wire::kFrameHeaderSize; at + 8 <= frame.size(); at += 4) {
        std::int64_t word = 0;
        std::memcpy(&word, frame.data() + at, 8);
        if (word == 700'001) std::memcpy(frame.data() + at, &wrong, 8);
      }
    });
    const auto result = cluster_[1].try_rpc_sync<&sum_of>("worker0", sparse);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Errc::malformed_payload) << result.error().message();
  }
  net_.link("worker1", "worker0").set_filter(nullptr);
  expect_ignored();
}

TEST_P(HostilePeer, WI7_SegmentsThatDoNotAddUpEndTheSession) {
  wire::Bytes sizes(16);
  const std::uint64_t each = 100;
  std::memcpy(sizes.data(), &each, 8);
  std::memcpy(sizes.data() + 8, &each, 8);
  Forged call{FrameKind::call, {}, 77, {}, 150};
  wire::append_section(call.sections, wire::SectionType::bulk, wire::kSectionCritical, sizes);
  attack(call);
  expect_dropped(Errc::malformed_payload);
}

TEST_P(HostilePeer, WI2_MoreThanTheLimitsAllowIsNotAllocated) {
  wire::FrameHeader header;
  header.kind = FrameKind::call;
  header.call = 1;
  header.body_size = 0xffff'ffff;
  wire::Bytes bytes(wire::kFrameHeaderSize);
  wire::encode_header(header, bytes.data());
  net_.link("worker1", "worker0").inject(bytes);
  expect_dropped(Errc::limit_exceeded);
}

// ---- frames in the wrong place

TEST_P(HostilePeer, WI6_AChunkOfNoMessageEndsTheSession) {
  attack({FrameKind::chunk, wire::Bytes(10), 0, {}, 0});
  expect_dropped(Errc::malformed_payload);
}

TEST_P(HostilePeer, WI9_MoreTimeThanThereIsIsNoDeadlineInThePast) {
  forge([](wire::Bytes& frame) {
    wire::FrameHeader header = wire::decode_header(frame.data()).value();
    header.remaining_us = ~std::uint64_t{0};
    wire::encode_header(header, frame.data());
  });
  expect_ignored();
}

TEST_P(HostilePeer, AnythingAfterByeIsNotRead) {
  attack({FrameKind::bye, {}, 0, {}, 0});
  attack({FrameKind::call, {}, 5, {}, 0});
  expect_unharmed();
  EXPECT_TRUE(lost_);
}

TEST_P(HostilePeer, WI3_AnUnknownCriticalSectionIsAMismatchOfProtocols) {
  Forged call{FrameKind::call, {}, 5, {}, 0};
  wire::append_section(call.sections, static_cast<wire::SectionType>(900), wire::kSectionCritical, {});
  attack(call);
  expect_dropped(Errc::protocol_mismatch);
}

TEST_P(HostilePeer, WI8_LateAndInventedRepliesAndCancelsFindNoRequest) {
  for (std::uint64_t call : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    attack({FrameKind::response, encode(1), call + 1000, {}, 0});
    attack({FrameKind::cancel, {}, call, {}, 0});
    attack({FrameKind::actor_reply, encode(1), call, {}, 0});
  }
  expect_ignored();
}

TEST_P(HostilePeer, WI12_RandomBytesEndOnlyThatSession) {
  std::mt19937_64 random(GetParam());
  wire::Bytes noise(4096);
  for (auto& byte : noise) byte = static_cast<std::byte>(random());
  net_.link("worker1", "worker0").inject(noise);
  expect_dropped(Errc::malformed_payload);
}

// ---- actors and references

TEST_P(HostilePeer, WI14_MessagesForActorsThatWereNeverExportedGoNowhere) {
  const std::uint64_t id = remote::MessageRegistry::id_of("rref.accept");
  for (const Address& to : {Address::exported(99), Address{AddressKind::returned, {}, {}, 3},
                            Address{AddressKind::owner_rref, {}, {}, 1}, Address()}) {
    wire::Bytes body = encode(to, Address());
    wire::append(body, encode(id, actors::ForkAccepted{}));
    attack({FrameKind::actor_message, body, 0, {}, 0});
    attack({FrameKind::actor_message, body, 4242, {}, 0});
  }
  expect_ignored();
  EXPECT_GE(net_.link("worker0", "worker1").count(FrameKind::actor_reply), 4U);
}

TEST_P(HostilePeer, AMessageThatDoesNotDecodeEndsTheSession) {
  wire::Bytes body = encode(Address::root(), Address());
  wire::append(body, encode(std::uint64_t{123}));
  attack({FrameKind::actor_message, body, 0, {}, 0});
  expect_dropped(Errc::unknown_function);
}

TEST_P(HostilePeer, WI15_WatchingWhatIsNotThereIsAnsweredDown) {
  for (std::uint64_t i = 0; i < 1000; ++i) attack({FrameKind::monitor, encode(Address::exported(i)), 0, {}, 0});
  cluster_.run_until_idle();
  EXPECT_EQ(net_.link("worker0", "worker1").count(FrameKind::down), 1000U);
  for (int i = 0; i < 1000; ++i) attack({FrameKind::monitor, encode(Address::root()), 0, {}, 0});
  attack({FrameKind::link, encode(Address::exported(5), Address::exported(6)), 0, {}, 0});
  cluster_.run_until_idle();
  EXPECT_EQ(net_.link("worker0", "worker1").count(FrameKind::exit), 1U);
  expect_ignored();
}

TEST_P(HostilePeer, AWatchThatWasGivenUpIsNotAnswered) {
  testing::Link& answers = net_.link("worker0", "worker1");
  for (const bool again : {false, true}) {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 1);
    EXPECT_EQ(r.to_here(), 2);
    cluster_.run_until_idle();
    const wire::Bytes fork = encode(Address::of(r.handle()->fork()));
    const std::size_t before = answers.count(FrameKind::down);
    attack({FrameKind::demonitor, fork, 0, {}, 0});
    for (int i = 0; again && i < 3; ++i) {
      attack({FrameKind::monitor, fork, 0, {}, 0});
      attack({FrameKind::demonitor, fork, 0, {}, 0});
      attack({FrameKind::monitor, fork, 0, {}, 0});
    }
    cluster_.run_until_idle();
    r = {};
    cluster_.run_until_idle();
    EXPECT_EQ(answers.count(FrameKind::down), before + (again ? 1 : 0));
  }
  expect_ignored();
}

TEST_P(HostilePeer, ForgedDownsAndExitsEndNothingOfOthers) {
  RRef<int> honest = cluster_[2].remote<&add>("worker0", 1, 1);
  RRef<int> own = cluster_[0].remote<&add>("worker2", 2, 2);
  EXPECT_EQ(honest.to_here() + own.to_here(), 6);
  cluster_.run_until_idle();
  const Error reason(Errc::peer_down, "worker2", "forged");
  const std::vector<Address> targets{Address::root(),
                                     Address::of(honest.handle()->fork()),
                                     Address::of(own.handle()->fork()),
                                     Address::of(honest.id()),
                                     Address::of(own.id()),
                                     Address::exported(1),
                                     Address()};
  for (const Address& target : targets) {
    attack({FrameKind::down, encode(target, reason), 0, {}, 0});
    for (const Address& from : targets) {
      attack({FrameKind::link, encode(target, from), 0, {}, 0});
      attack({FrameKind::exit, encode(target, from, reason), 0, {}, 0});
      attack({FrameKind::unlink, encode(target, from), 0, {}, 0});
    }
  }
  expect_ignored();
  EXPECT_EQ(honest.to_here() + own.to_here(), 6);
  EXPECT_EQ(cluster_[0].counters().owner_rrefs, 1U);
}

TEST_P(HostilePeer, T4_ALinkItsExitAndTheLinkAgainHangNoWorker) {
  // An exit frame takes the proxy out of the table. The second link frame then drops the last handle of that proxy.
  for (int i = 0; i < 3; ++i) {
    attack_and_settle({FrameKind::link, encode(Address::root(), Address::exported(1)), 0, {}, 0});
    attack_and_settle(
        {FrameKind::exit, encode(Address::root(), Address::exported(1), Error(Errc::peer_down, "x")), 0, {}, 0});
  }
  expect_ignored();
}

TEST_P(HostilePeer, ALinkFollowedByACutEndsNoOtherActor) {
  RRef<int> shared = cluster_[1].rpc_sync<&make_here>("worker0", 5);
  RRef<int> mine = cluster_[0].rpc_sync<&make_here>("worker1", 6);
  EXPECT_EQ(shared.to_here(), 5);
  RRef<Shelf> kept = cluster_[2].remote<Shelf>("worker0");
  EXPECT_EQ(kept.rpc_sync<&Shelf::read_all>(), 0);
  for (const Address& target : {Address::root(), Address::of(mine.handle()->fork())}) {
    attack({FrameKind::link, encode(target, Address::exported(1)), 0, {}, 0});
    attack({FrameKind::link, encode(target, Address::root()), 0, {}, 0});
  }
  cluster_.run_until_idle();
  net_.break_off("worker0", "worker1");
  expect_unharmed();
  EXPECT_EQ(mine.try_to_here().error().code(), Errc::peer_down);
  kept.rpc_sync<&Shelf::clear>();
  cluster_.run_until_idle();
  // Only the shelf is left: the value to which only worker1 referred is gone.
  EXPECT_EQ(cluster_[0].counters().owner_rrefs, 1U);
}

TEST_P(HostilePeer, ReferencesToNothingAreDeleted) {
  const RRefId nothing{WorkerId{0}, Incarnation{1}, 17};
  Forged fetch{FrameKind::fetch, {}, 31, {}, 0};
  wire::append_section(fetch.sections, wire::SectionType::target, wire::kSectionCritical,
                       wire::encode(nothing).value());
  attack(fetch);
  attack({FrameKind::fetch, {}, 32, {}, 0});
  attack({FrameKind::create, {}, 33, {}, 0});
  attack({FrameKind::method, encode(1), 34, {}, 0});
  cluster_.run_until_idle();
  EXPECT_EQ(net_.link("worker0", "worker1").count(FrameKind::response), 4U);
  expect_ignored();
}

TEST_P(HostilePeer, RR1_AManifestThatItsSenderCannotHaveMadeEndsTheSession) {
  Gate gate;
  RRef<int> honest = cluster_[2].remote<&wait_for_gate>("worker0", 2);
  cluster_.run_until_idle();
  rpc::Manifest manifest;
  if (GetParam() % 2 == 0) {
    // A creation under an id that worker2 has made.
    manifest.creation = rpc::Creation{honest.id(), {}, {}};
  } else {
    rpc::SharedRRef shared;
    shared.rref = {WorkerId{2}, Incarnation{5}, 1};
    shared.fork = honest.handle()->fork();
    shared.owner.id = WorkerId{2};
    manifest.shared.push_back(shared);
  }
  Forged create{FrameKind::create, {}, 41, {}, 0};
  wire::append_section(create.sections, wire::SectionType::rrefs, wire::kSectionCritical,
                       wire::encode(manifest).value());
  attack(create);
  expect_dropped(Errc::malformed_payload);
  gate.open();
  EXPECT_EQ(honest.to_here(), 2) << "the end of the refused frame sets no value";
}

TEST_P(HostilePeer, OnlyTheCoordinatorSaysWhereTheOthersAre) {
  net::View view;
  view.revision = 1000;
  wire::Bytes body = encode(Address::root(), Address::root());
  wire::append(body, encode(remote::MessageRegistry::id_of("membership.view"), view));
  attack({FrameKind::actor_message, body, 0, {}, 0});
  expect_ignored();
}

}  // namespace
}  // namespace caftan::test::hostile_peer_test

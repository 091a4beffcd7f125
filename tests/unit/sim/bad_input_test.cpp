// What users and peers do wrong: each is a typed error that names the process and the event, and none is a hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "caftan/sim/internal/partition.hpp"
#include "caftan/sim/sequential.hpp"

namespace caftan::sim::bad_input_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Ping {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};
struct Unknown {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};
struct Big {
  std::vector<int> numbers{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& numbers;
  }
};
struct Node {
  using Events = sim::Events<Ping, Big>;
  std::function<void(LpContext&)> at_start = [](LpContext&) {};
  std::function<void(LpContext&)> at_ping = [](LpContext&) {};
  void start(LpContext& lp) { at_start(lp); }
  void on(const Ping&, LpContext& lp) { at_ping(lp); }
  void on(const Big&, LpContext&) {}
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

constexpr double kLookahead = 1;

/// Two processes, each a group. The first does at its start what the test says.
std::function<void(Builder&)> model(std::function<void(LpContext&)> at_start,
                                    std::function<void(LpContext&)> at_ping = {}, double lookahead = kLookahead) {
  return [=](Builder& builder) {
    if (lookahead != 0) builder.lookahead(lookahead);
    builder.add<Node>(2, [&](LpId id) {
      Node node;
      if (id.value == 0) node.at_start = at_start;
      if (at_ping) node.at_ping = at_ping;
      return node;
    });
  };
}

Error error_of(const std::function<void(Builder&)>& build, const KernelOptions& options = {},
               std::uint32_t partitions = 1) {
  struct Drop final : EventSink {
    void on_event(std::uint32_t, const Event&, wire::ByteView) override { ++events; }
    int events = 0;
  } sink;
  auto kernel = make_kernel(build, options, 0, partitions);
  if (!kernel) return kernel.error();
  (*kernel)->send_to(sink);
  Result<void> done = (*kernel)->start();
  if (done) done = (*kernel)->run_until(Time{100 * kTicksPerUnit});
  EXPECT_EQ(sink.events, 0);
  return done ? Error() : done.error();
}

TEST(BadInput, SM3_ADelayBelowTheLookaheadIsTheSameInEveryPlacement) {
  const auto build = model([](LpContext& lp) { lp.schedule(0.5, Ping{}, LpId(1)); });
  const Error together = error_of(build, {}, 1);
  EXPECT_EQ(together.code(), Errc::lookahead_violation);
  EXPECT_THAT(together.text(), AllOf(HasSubstr("LP 0"), HasSubstr("Node"), HasSubstr("Ping"), HasSubstr("LP 1"),
                                     HasSubstr("0.5"), HasSubstr("lookahead of 1")));
  EXPECT_EQ(error_of(build, {}, 2).message(), together.message());
}

TEST(BadInput, SM3_GroupsWithoutALookaheadNeverSendToEachOther) {
  const Error error = error_of(model([](LpContext& lp) { lp.schedule(5, Ping{}, LpId(1)); }, {}, 0));
  EXPECT_EQ(error.code(), Errc::lookahead_violation);
  EXPECT_THAT(error.text(), HasSubstr("has no lookahead"));
}

TEST(BadInput, SM3_AViolationThatAHandlerCatchesEndsTheRunAllTheSame) {
  const auto build = model([](LpContext& lp) {
    try {
      lp.schedule(0, Ping{}, LpId(1));
    } catch (const RpcException&) {
    }
  });
  EXPECT_EQ(error_of(build).code(), Errc::lookahead_violation);
}

TEST(BadInput, SM17_DelaysThatNoDelayHasNameProcessAndEvent) {
  for (const double delay : {-1.0, std::nan(""), 1e300, static_cast<double>(INFINITY)}) {
    const Error error = error_of(model([=](LpContext& lp) { lp.schedule(delay, Ping{}); }));
    EXPECT_EQ(error.code(), Errc::bad_arguments);
    EXPECT_THAT(error.text(), AllOf(HasSubstr("LP 0"), HasSubstr("Ping")));
  }
  const Error ticks = error_of(model([](LpContext& lp) { lp.schedule(Time{-1}, Ping{}); }));
  EXPECT_THAT(ticks.text(), HasSubstr("is negative"));
  const Error sum = error_of(model([](LpContext& lp) { lp.schedule(1, Ping{}); },
                                   [](LpContext& lp) { lp.schedule(Time{kNever.ticks - 5}, Ping{}); }));
  EXPECT_THAT(sum.text(), HasSubstr("beyond 2^63 ticks"));
}

TEST(BadInput, SM17_AHandlerThatSchedulesWithoutDelayForEverEnds) {
  const auto ping = [](LpContext& lp) { lp.schedule(0, Ping{}); };
  const Error error = error_of(model(ping, ping), {.same_time = 1000});
  EXPECT_EQ(error.code(), Errc::limit_exceeded);
  EXPECT_THAT(error.text(),
              AllOf(HasSubstr("LP 0"), HasSubstr("Ping"), HasSubstr("more than 1000 events at this time")));
}

TEST(BadInput, SM17_ManyEventsOfManyGroupsAtOneTimeAreFine) {
  const auto build = [](Builder& builder) {
    builder.add<Node>(3000, [](LpId) {
      Node node;
      node.at_start = [](LpContext& lp) { lp.schedule(1, Ping{}); };
      return node;
    });
  };
  EXPECT_EQ(error_of(build, {.same_time = 1000}).code(), Errc::ok);
}

TEST(BadInput, SM17_AFloodOfEventsNamesTheKey) {
  const auto ping = [](LpContext& lp) { lp.schedule(1, Ping{}), lp.schedule(1, Ping{}); };
  const Error error = error_of(model(ping, ping), {.events = 1000});
  EXPECT_EQ(error.code(), Errc::limit_exceeded);
  EXPECT_THAT(error.text(), AllOf(HasSubstr("more than 1000 events are pending"), HasSubstr("`events`")));
}

TEST(BadInput, AnUnknownProcessEventOrPriorityIsNamed) {
  EXPECT_THAT(error_of(model([](LpContext& lp) { lp.schedule(1, Ping{}, LpId(2)); })).text(),
              HasSubstr("there is no such LP; the model has 2"));
  EXPECT_THAT(error_of(model([](LpContext& lp) { lp.schedule(1, Ping{}, LpId(-1)); })).text(),
              HasSubstr("there is no such LP"));
  EXPECT_THAT(error_of(model([](LpContext& lp) { lp.schedule(1, Unknown{}, LpId(1)); })).text(),
              AllOf(HasSubstr("Unknown"), HasSubstr("does not handle this event")));
  EXPECT_THAT(error_of(model([](LpContext& lp) { lp.schedule(1, Ping{}, {.priority = 128}); })).text(),
              HasSubstr("priority 128"));
}

TEST(BadInput, AnEventOverTheLimitOfMessagesIsNamed) {
  const Error error =
      error_of(model([](LpContext& lp) { lp.schedule(1, Big{std::vector<int>(1000)}); }), {.largest_event = 1000});
  EXPECT_EQ(error.code(), Errc::limit_exceeded);
  EXPECT_THAT(error.text(), AllOf(HasSubstr("Big"), HasSubstr("limits.message")));
}

TEST(BadInput, AHandlerThatThrowsNamesProcessEventAndTime) {
  const Error error = error_of(model([](LpContext& lp) { lp.schedule(1.5, Ping{}); },
                                     [](LpContext&) { throw std::out_of_range("no such shelf"); }));
  EXPECT_EQ(error.code(), Errc::user_error);
  EXPECT_THAT(error.text(),
              AllOf(HasSubstr("LP 0"), HasSubstr("Ping at 1.5"), HasSubstr("std::out_of_range: no such shelf")));
}

TEST(BadInput, SM8_FinishWithoutALookaheadIsRefusedInAModelOfSeveralGroups) {
  EXPECT_THAT(error_of(model([](LpContext& lp) { lp.finish(); }, {}, 0)).text(),
              HasSubstr("several groups and no lookahead"));
}

TEST(BadInput, ALookaheadIsMoreThanZero) {
  for (const double least : {-1.0, std::nan(""), 1e-12}) {
    const Error error = error_of(model([](LpContext&) {}, {}, least));
    EXPECT_EQ(error.code(), Errc::invalid_config);
    EXPECT_THAT(error.text(), HasSubstr("lookahead"));
  }
}

TEST(BadInput, AModelThatAddsNothingOrThrowsOrChangesIsNamed) {
  EXPECT_THAT(error_of([](Builder&) {}).text(), HasSubstr("no processes"));
  EXPECT_THAT(error_of([](Builder&) { throw std::runtime_error("no map"); }).text(), HasSubstr("no map"));
  int calls = 0;
  const auto changes = [&calls](Builder& builder) {
    builder.add<Node>(++calls == 1 ? 2 : 3, [](LpId) { return Node{}; });
  };
  EXPECT_THAT(error_of(changes).text(), HasSubstr("at its second call"));
}

TEST(BadInput, MorePartitionsThanGroupsIsAWarning) {
  const auto kernel = make_kernel(model([](LpContext&) {}), {}, 0, 5).value();
  ASSERT_EQ(kernel->layout().warnings().size(), 1);
  EXPECT_THAT(kernel->layout().warnings()[0], HasSubstr("only 2 groups"));
}

TEST(BadInput, SM15_ACheckpointOfAnotherModelOrSeedIsRefused) {
  const auto kernel = make_kernel(model([](LpContext&) {}), {.seed = 1}).value();
  const auto file = kernel->save().value();
  const auto seed = make_kernel(model([](LpContext&) {}), {.seed = 2}).value()->load(file);
  EXPECT_THAT(seed.error().text(), HasSubstr("another seed: 1, not 2"));
  const auto other = make_kernel(model([](LpContext&) {}, {}, 7), {.seed = 1}).value()->load(file);
  EXPECT_THAT(other.error().text(), HasSubstr("another model"));
  EXPECT_EQ(make_kernel(model([](LpContext&) {}), {.seed = 1}).value()->loaded().error().code(),
            Errc::malformed_payload);
}

TEST(BadInput, SM15_ACheckpointWithMoreScheduledEventsThanThereCanBeIsRefused) {
  auto file = make_kernel(model([](LpContext&) {}), {.seed = 1}).value()->save().value();
  const auto processes =
      std::find_if(file.records.begin(), file.records.end(), [](const auto& each) { return each.name == "processes"; });
  processes->bytes[6] = std::byte{1};  // of the first process's sequence: 2^48
  const auto loaded = make_kernel(model([](LpContext&) {}), {.seed = 1}).value()->load(file);
  EXPECT_EQ(loaded.error().code(), Errc::malformed_payload);
  EXPECT_THAT(loaded.error().text(), HasSubstr("more events than there can be"));
}

TEST(BadInput, TheEndOfARunIsATimeAfterZero) {
  for (const double end : {0.0, -1.0, std::nan(""), 1e300}) {
    const auto run = run_sequential(model([](LpContext&) {}), {.end_time = end});
    EXPECT_EQ(run.error().code(), Errc::invalid_config);
    EXPECT_THAT(run.error().text(), HasSubstr("end_time"));
  }
}

/// A partition that nothing has been sent to, and frames for it.
struct Peer final : FrameSink {
  explicit Peer(Sync sync = Sync::window) {
    auto kernel = make_kernel(model([](LpContext&) {}), {}, 0, 2);
    partition = std::make_unique<Partition>(7, std::move(kernel).value(), sync, *this);
    partition->start().value();
    partition->grant(Time{50}).value();
    partition->advance().value();
  }
  void send(std::uint32_t, wire::Bytes) override { ++sent; }
  FrameHead head(std::uint64_t round = 0) const {
    return {.simulation = 7, .sender = 1, .round = round, .is_last = true, .sent = {kNever, kNever}};
  }
  Error refused(const FrameHead& head, FrameWriter writer = {}) {
    return partition->on_frame(writer.finish(head)).error();
  }
  std::unique_ptr<Partition> partition;
  int sent = 0;
};

FrameWriter with_event(Event event) {
  FrameWriter writer;
  event.priority = 128;
  writer.add(event, {});
  return writer;
}

TEST(BadInput, SM5_AFrameOfAnotherSimulationSenderRuleOrRoundEndsTheRun) {
  const auto changed = [](void (*change)(FrameHead&)) {
    Peer peer;
    FrameHead head = peer.head();
    change(head);
    const Error error = peer.refused(head);
    EXPECT_EQ(error.code(), Errc::malformed_payload);
    EXPECT_EQ(peer.partition->advance().error().code(), Errc::malformed_payload);
    return error.text();
  };
  EXPECT_THAT(changed([](FrameHead& head) { head.simulation = 8; }), HasSubstr("another simulation"));
  EXPECT_THAT(changed([](FrameHead& head) { head.sender = 0; }), HasSubstr("not of another partition"));
  EXPECT_THAT(changed([](FrameHead& head) { head.sender = 2; }), HasSubstr("not of another partition"));
  EXPECT_THAT(changed([](FrameHead& head) { head.kind = FrameKind::promise; }), HasSubstr("`sync` differs"));
  EXPECT_THAT(changed([](FrameHead& head) { head.round = 1; }), HasSubstr("part 0 of round 1"));
  EXPECT_THAT(changed([](FrameHead& head) { head.part = 1; }), HasSubstr("part 1 of round 0"));
  EXPECT_THAT(changed([](FrameHead& head) { head.sent.pop_back(); }), HasSubstr("one time for each partition"));
}

TEST(BadInput, SM5_AFrameMoreThanOneRoundAheadEndsTheRun) {
  Peer peer;
  // The partition has not begun round 1, so the peer cannot have ended it.
  ASSERT_TRUE(peer.partition->on_frame(FrameWriter().finish(peer.head(0))));
  ASSERT_TRUE(peer.partition->on_frame(FrameWriter().finish(peer.head(1))));
  EXPECT_THAT(peer.refused(peer.head(2)).text(), HasSubstr("more than one ahead"));
}

TEST(BadInput, SM2_AnEventBelowTheBoundIsAnErrorOfCaftansOwn) {
  Peer peer;
  FrameHead first = peer.head();
  first.next = Time{40};
  ASSERT_TRUE(peer.partition->on_frame(FrameWriter().finish(first)));
  ASSERT_TRUE(peer.partition->advance());
  const Error error = peer.refused(peer.head(1), with_event({.time = 10, .source = 1, .to = 0}));
  EXPECT_THAT(error.text(), AllOf(HasSubstr("LP 1"), HasSubstr("(SM-2)")));
}

TEST(BadInput, SM2_AnEventForAnotherPartitionOrOfNoKnownTypeIsRefused) {
  EXPECT_THAT(Peer().refused(Peer().head(), with_event({.time = 90, .source = 1, .to = 1})).text(),
              HasSubstr("not in this partition"));
  EXPECT_THAT(Peer().refused(Peer().head(), with_event({.time = 90, .source = 0, .to = 0})).text(),
              HasSubstr("of another partition"));
  EXPECT_THAT(Peer().refused(Peer().head(), with_event({.time = 90, .source = 9, .to = 0})).text(),
              HasSubstr("of another partition"));
  Event unknown{.time = 90, .source = 1, .to = 0};
  unknown.type = 77;
  EXPECT_THAT(Peer().refused(Peer().head(), with_event(unknown)).text(), HasSubstr("does not handle"));
}

TEST(BadInput, SM7_APromiseThatFallsEndsTheRun) {
  Peer peer(Sync::null_message);
  FrameHead head = peer.head();
  head.kind = FrameKind::promise;
  head.sent.clear();
  head.next = Time{30};
  ASSERT_TRUE(peer.partition->on_frame(FrameWriter().finish(head)));
  head.round = 1;
  head.next = Time{29};
  EXPECT_THAT(peer.refused(head).text(), HasSubstr("(SM-7)"));
}

TEST(BadInput, SM14_WithoutTheFramesOfALostPartitionNoneGoesOn) {
  Peer peer;
  ASSERT_TRUE(peer.partition->advance());
  EXPECT_FALSE(peer.partition->is_at_border());
  EXPECT_THAT(peer.partition->waits_for(), testing::ElementsAre(1));
  EXPECT_EQ(peer.partition->kernel().bound(), Time{});
}

TEST(BadInput, AnEventWithBytesThatDoNotDecodeNamesProcessAndEvent) {
  Peer peer;
  FrameWriter writer;
  Event event{.time = 10, .source = 1, .to = 0};
  event.type = 1;  // Big
  const std::byte absurd[] = {std::byte{0xff}, std::byte{0x01}};
  writer.add(event, absurd);
  ASSERT_TRUE(peer.partition->on_frame(writer.finish(peer.head())));
  const Error error = peer.partition->advance().error();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_THAT(error.text(), AllOf(HasSubstr("LP 0"), HasSubstr("Big")));
}

}  // namespace
}  // namespace caftan::sim::bad_input_test

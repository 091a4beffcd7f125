// DA-10 at each named point of a pass: home, initiator and participant die before, while and after they send each of
// their messages, and before they read it. Typed errors at all others, within a second of the cluster's clock.
#include <ATen/ops/full.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "autograd_roles.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "pass_frames.hpp"

namespace caftan::test::autograd_points_test {
namespace {

using autograd::Context;
using autograd::ContextView;

/// Which worker dies, and when. The home is worker0, the participant worker1; the initiator is worker2, or the home.
struct Point {
  std::string initiator;
  std::string victim;
  std::string when;
  std::string message;
};

std::vector<Point> points() {
  std::vector<Point> all;
  const auto add = [&all](const Point& who, std::initializer_list<const char*> sent,
                          std::initializer_list<const char*> read) {
    const auto point = [&](const char* when, const char* message) {
      all.push_back({who.initiator, who.victim, when, message});
    };
    for (const char* message : sent) {
      point("Before", message);
      if (std::string(message) == "Grad") point("During", message);
      point("After", message);
    }
    for (const char* message : read) point("Unread", message);
  };
  add({"worker0", "Home", "", ""}, {"Mark", "Grad", "End"}, {"Mark", "Report", "Grad", "Done"});
  add({"worker0", "Participant", "", ""}, {"Mark", "Report", "Grad", "Done"}, {"Mark", "Grad", "End"});
  add({"worker2", "Home", "", ""}, {"Granted", "Mark", "Report", "Grad", "Done", "Decided"},
      {"PassOpen", "Mark", "Grad", "Decide"});
  add({"worker2", "Initiator", "", ""}, {"PassOpen", "Mark", "Grad", "Decide", "End"},
      {"Granted", "Report", "Done", "Decided"});
  add({"worker2", "Participant", "", ""}, {"Mark", "Report", "Grad", "Done"}, {"Mark", "Grad", "End"});
  return all;
}

/// The context and root from which worker2 starts the pass when the initiator is not the home.
struct Kept {
  ContextView context;
  at::Tensor y;
};
std::optional<Kept> kept;  // set by `keep`; reset at the end of the test that called `keep`
void keep(Worker& worker, const at::Tensor& y) { kept = Kept{Context::current(worker), y}; }

Registry make_points_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&keep>("keep");
  return registry;
}

class ProtocolPoints : public ::testing::TestWithParam<std::tuple<Point, std::uint64_t>> {
 protected:
  ~ProtocolPoints() override { kept.reset(); }

  const Point& point() const { return std::get<0>(GetParam()); }
  std::uint64_t seed() const { return std::get<1>(GetParam()); }
  std::string victim() const {
    if (point().victim == "Home") return "worker0";
    return point().victim == "Initiator" ? "worker2" : "worker1";
  }
  /// Returns the number of elements of a gradient: 3, where the connection is cut in the frame's body, or 40,000, where
  /// it is cut in the tensors behind the frame, or before any of these is read if the frame lends them.
  std::int64_t elements() const { return seed() % 2 == 0 ? 3 : 40'000; }

  void set_trap() {
    for (const std::string& from : names_) {
      for (const std::string& to : names_) {
        if (from == to) continue;
        testing::Link& tap = net_.link(from, to);
        tap.set_filter([this, &tap](const testing::Frame& frame) { return leaves(tap, frame); });
      }
    }
  }
  bool leaves(testing::Link& tap, const testing::Frame& frame) {
    const bool by_victim = tap.from() == victim();
    if (reached_) return !by_victim;
    if (half_ && by_victim && frame.header.kind == wire::FrameKind::chunk) return cut_short(tap, frame);
    const auto message = pass_message(frame);
    if (half_ || !message || name_of(*message) != point().message) return true;
    if (point().when == "Unread") {
      reached_ = tap.to() == victim();
      return true;
    }
    if (!by_victim) return true;
    if (point().when == "During") {
      if (elements() == 3) return cut_short(tap, frame);
      // Tensors that are lent do not follow the frame: they are cut off before the peer has read them.
      reached_ = lends(frame);
      half_ = !reached_;
      return true;
    }
    reached_ = true;
    return point().when == "After";
  }
  static bool lends(const testing::Frame& frame) {
    wire::SectionReader sections(frame.payload().first(frame.header.sections_size));
    while (const auto section = sections.next().value()) {
      if (section->type == wire::SectionType::places) return true;
    }
    return false;
  }
  /// Ends the connection in the middle of a frame: sends the first half of the frame and drops the rest.
  bool cut_short(testing::Link& tap, const testing::Frame& frame) {
    reached_ = true;
    tap.inject(frame.bytes.first(frame.bytes.size() / 2));
    return false;
  }
  void kill() {
    for (const std::string& other : names_) {
      if (other == victim()) continue;
      // What a process has written before it is killed may arrive, or be lost with the host.
      if (seed() % 4 < 2) {
        net_.cut(victim(), other);
      } else {
        net_.break_off(victim(), other);
      }
    }
    cluster_.run_until_idle();
  }

  /// Returns the gradient of the weight that a worker's Scale has; empty if there is none.
  static std::vector<double> weight(const RRef<Scale>& scale) { return scale.rpc_sync<&Scale::gradient>(); }
  void expect_no_contexts() {
    cluster_.run_until_idle();
    for (std::size_t i = 0; i < names_.size(); ++i) EXPECT_TRUE(cluster_[i].autograd_contexts().empty()) << names_[i];
  }

  const std::vector<std::string> names_{"worker0", "worker1", "worker2", "worker3"};
  testing::Cluster cluster_{seed(), names_, &make_points_registry};
  testing::Network& net_ = cluster_.network();
  bool reached_ = false;
  bool half_ = false;  // the frame of a gradient has been sent, its tensors have not
};
INSTANTIATE_TEST_SUITE_P(Points, ProtocolPoints,
                         ::testing::Combine(::testing::ValuesIn(points()), ::testing::Range<std::uint64_t>(0, 4)),
                         [](const auto& info) {
                           const Point& point = std::get<0>(info.param);
                           return std::string(point.initiator == "worker0" ? "HomeInitiates" : "OtherInitiates") + "_" +
                                  point.victim + "Dies" + point.when + point.message + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(ProtocolPoints, DA10_EveryPassEndsEverywhereWithinASecond) {
  Worker& home = cluster_[0];
  const auto n = static_cast<double>(elements());
  const at::Tensor x = at::full({elements()}, 1.0, at::kDouble).requires_grad_();
  RRef<Scale> near = home.remote<Scale>("worker1", 2.0);
  RRef<Scale> far = home.remote<Scale>("worker3", 3.0);
  std::optional<Context> context(std::in_place, home);
  at::Tensor y = far.rpc_sync<&Scale::forward>(near.rpc_sync<&Scale::forward>(x));
  y = home.rpc_sync<&relay>("worker1", std::vector<std::string>{"worker3"}, y);
  kept = Kept{*context, y};
  if (point().initiator == "worker2") home.rpc_sync<&keep>("worker2", y);
  cluster_.run_until_idle();

  set_trap();
  const base::TimePoint begun = cluster_.executor().clock().now();
  Future<void> pass = kept->context.backward_async({kept->y.sum()});
  while (!reached_ && cluster_.executor().step()) {
  }
  ASSERT_TRUE(reached_);
  kill();
  if (!pass.ready()) cluster_.executor().advance(std::chrono::seconds(1));
  EXPECT_LE(cluster_.executor().clock().now() - begun, std::chrono::seconds(1));
  ASSERT_TRUE(pass.ready());
  const Result<void> outcome = std::move(pass).result();
  if (!outcome && point().victim != "Initiator" && point().initiator != victim()) {
    EXPECT_EQ(outcome.error().code(), Errc::peer_down) << outcome.error().message();
    EXPECT_EQ(outcome.error().worker(), victim()) << outcome.error().message();
  }

  if (point().victim == "Home") {
    for (std::size_t i = 1; i < names_.size(); ++i) EXPECT_TRUE(cluster_[i].autograd_contexts().empty()) << names_[i];
  } else {
    // Either all workers that survive have the gradients of the pass, or none has.
    const bool ok = context->gradients().of(x).defined();
    if (point().victim == "Participant") {
      EXPECT_EQ(ok, outcome.has_value());
    } else {
      EXPECT_EQ(weight(near), ok ? std::vector<double>{108 * n} : std::vector<double>());
    }
    EXPECT_EQ(weight(far), ok ? std::vector<double>{72 * n} : std::vector<double>());
    // The context is usable for a pass over the workers that survive.
    context->backward({home.rpc_sync<&square>("worker3", x).sum()});
    EXPECT_EQ(values(context->gradients().of(x))[0], ok ? 218 : 2);
  }
  kept.reset();
  context.reset();
  expect_no_contexts();
}

}  // namespace
}  // namespace caftan::test::autograd_points_test

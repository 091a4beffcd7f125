// A trainer of a shared module dies at each named point of its step, in each mode: the other one goes on as the mode
// says (CM-5, CM-7, CM-13, CM-15), and a replay of the log gives the same bits.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "shared_roles.hpp"

namespace caftan::test::shared_points_test {
namespace {

using nn::ConsistencyMode;
using wire::FrameKind;

enum class Phase { forward, backward, step };

/// Where trainer 0 dies: at the nth frame of one kind, from the begin of a phase on, that it writes to the owner or
/// that the owner writes to it.
struct Point {
  std::string name;
  Phase phase;
  FrameKind kind;
  bool by_trainer;
  int nth;
  bool leaves;     // that frame is still written
  bool delivered;  // its gradient may have been delivered
};

const std::vector<Point>& points() {
  static const std::vector<Point> all{
      {"BeforeItAsksToRead", Phase::forward, FrameKind::method, true, 1, false, false},
      {"AfterItHasAskedToRead", Phase::forward, FrameKind::method, true, 1, true, false},
      {"ItsVersionUnread", Phase::forward, FrameKind::response, false, 1, true, false},
      {"BeforeForward", Phase::forward, FrameKind::method, true, 2, false, false},
      {"ForwardUnread", Phase::forward, FrameKind::method, true, 2, true, false},
      {"ForwardUnanswered", Phase::forward, FrameKind::response, false, 2, false, false},
      {"BeforeItsMarks", Phase::backward, FrameKind::actor_message, true, 1, false, false},
      {"MarksUnread", Phase::backward, FrameKind::actor_message, true, 1, true, false},
      {"InBackward", Phase::backward, FrameKind::actor_message, true, 2, true, false},
      {"BackwardUnanswered", Phase::backward, FrameKind::actor_message, false, 1, true, false},
      {"BeforeStep", Phase::step, FrameKind::method, true, 1, false, false},
      {"StepUnread", Phase::step, FrameKind::method, true, 1, true, true},
      {"StepUnanswered", Phase::step, FrameKind::response, false, 1, false, true},
      {"StepAnswered", Phase::step, FrameKind::response, false, 1, true, true},
  };
  return all;
}
constexpr std::uint64_t kModes = 3;
constexpr std::uint64_t kSeeds = 2;

class SharedPoints : public SharedCluster, public ::testing::TestWithParam<std::uint64_t> {
 protected:
  SharedPoints() : SharedCluster(GetParam() % kSeeds + 1) {}
  static const Point& point() { return points()[GetParam() / kSeeds / kModes]; }
  static ConsistencyMode mode() { return static_cast<ConsistencyMode>(GetParam() / kSeeds % kModes); }

  void set_trap() {
    const std::string from = point().by_trainer ? "t0" : "ps", to = point().by_trainer ? "ps" : "t0";
    cluster_.network().link(from, to).set_filter([this](const testing::Frame& frame) {
      if (reached_ || phase_ != point().phase || frame.header.kind != point().kind) return !reached_;
      reached_ = ++seen_ == point().nth;
      return !reached_ || point().leaves;
    });
  }

  template <class T>
  bool comes(const Future<T>& result) {
    while (!reached_ && cluster_.executor().step()) {
    }
    return !reached_ && result.ready();
  }
  void train_until_the_trap(ByHandTrainer& trainer) {
    trainer.begin();
    Future<at::Tensor> y = trainer.forward(1);
    if (!comes(y)) return;
    phase_ = Phase::backward;
    Future<void> pass = trainer.backward_async(y.get(), 1);
    if (!comes(pass)) return;
    phase_ = Phase::step;
    const Future<nn::StepResult> step = trainer.step(1);
    comes(step);
  }
  void kill() {
    for (const char* other : {"maker", "ps", "t1", "t2", "t3"}) {
      if (GetParam() % kSeeds == 0) {
        cluster_.network().cut("t0", other);
      } else {
        cluster_.network().break_off("t0", other);
      }
    }
    cluster_.run_until_idle();
  }

  Phase phase_ = Phase::forward;
  bool reached_ = false;
  int seen_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Points, SharedPoints, ::testing::Range<std::uint64_t>(0, points().size() * kModes * kSeeds),
                         [](const auto& info) {
                           return points()[info.param / kSeeds / kModes].name + "_" +
                                  std::string(to_string(static_cast<ConsistencyMode>(info.param / kSeeds % kModes))) +
                                  "_" + std::to_string(info.param % kSeeds);
                         });

TEST_P(SharedPoints, CM15_TheOthersGoOn) {
  const auto net = make({.mode = mode()}, 2);
  const auto lost = trainer(0, net), other = trainer(1, net);
  std::optional<Future<nn::StepResult>> first;
  if (mode() == ConsistencyMode::sync) {  // the round waits for trainer 0
    other->compute(500);
    first = other->step(500);
  }
  cluster_.run_until_idle();
  set_trap();
  train_until_the_trap(*lost);
  ASSERT_TRUE(reached_);
  const base::TimePoint begun = cluster_.now();
  kill();
  if (!first) {
    other->compute(500);
    first = other->step(500);
  }
  EXPECT_TRUE(first->result());
  other->end();
  for (std::uint64_t batch = 501; batch < 503; ++batch) {
    other->compute(batch);
    EXPECT_TRUE(other->step(batch).result());
    other->end();
  }
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_.now(), begun) << "nothing waits for a time-out";
  const nn::SharedStatus status = net.status();
  EXPECT_EQ(status.gone, (std::vector<nn::TrainerNumber>{{0}}));
  EXPECT_EQ(status.open_contexts, 0U);
  const nn::StepLog log = nn::read_step_log(log_path()).value();
  EXPECT_EQ(log.last(), status.version);
  std::size_t by_lost = 0, by_other = 0;
  for (const nn::StepRecord& step : log.steps) {
    for (const nn::Contribution& c : step.contributions) ++(c.trainer.value == 0 ? by_lost : by_other);
  }
  EXPECT_EQ(by_other, 3U);
  EXPECT_LE(by_lost, point().delivered ? 1U : 0U);
  if (point().name == "StepAnswered") {
    EXPECT_EQ(by_lost, 1U) << "CM-5";
  }
  expect_replay(net);
}

TEST_P(SharedPoints, CM29_TheOwnerEndsWithoutWaitingForTheLostTrainer) {
  const auto net = make({.mode = mode()}, 2);
  const auto lost = trainer(0, net), other = trainer(1, net);
  cluster_.run_until_idle();
  set_trap();
  train_until_the_trap(*lost);
  const bool waits_for_the_round =
      mode() == ConsistencyMode::sync && point().phase == Phase::step && point().kind == FrameKind::response;
  ASSERT_NE(reached_, waits_for_the_round);
  kill();
  const base::TimePoint begun = cluster_.now();
  EXPECT_EQ(cluster_["ps"].stop().served_calls, 0U);
  EXPECT_LT(cluster_.now() - begun, WorkerOptions().stop_timeout);
}

}  // namespace
}  // namespace caftan::test::shared_points_test

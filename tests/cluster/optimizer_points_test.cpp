// OP-8 and OP-9 at each named point of a step in two phases: an owner or the step coordinator dies before and after its
// messages about Prepare and Commit. No owner makes half a step, no owner makes a step that was given up, and nothing
// hangs.
#include <map>
#include <optional>

#include "caftan/optim/clipping.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "optimizer_roles.hpp"

namespace caftan::test::optimizer_points_test {
namespace {

using autograd::Context;
using optim::DistributedOptimizer;
using optim::SGD;
using wire::FrameKind;

/// Where a worker dies: at the nth frame of one kind that `victim` writes, or that another worker writes to `victim`.
struct Point {
  std::string name;
  std::string victim;
  FrameKind kind;
  bool by_victim;
  int nth;
  bool leaves;     // that frame is still written
  bool committed;  // the order to commit may have reached one of the owners
};

const std::vector<Point>& points() {
  static const std::vector<Point> all{
      {"OwnerDiesPrepareUnread", "worker2", FrameKind::method, false, 1, true, false},
      {"OwnerDiesBeforeItAnswersPrepare", "worker2", FrameKind::response, true, 1, false, false},
      {"OwnerDiesAfterItAnsweredPrepare", "worker2", FrameKind::response, true, 1, true, true},
      {"OwnerDiesCommitUnread", "worker2", FrameKind::method, false, 2, true, true},
      {"OwnerDiesBeforeItAnswersCommit", "worker2", FrameKind::response, true, 2, false, true},
      {"OwnerDiesAfterItAnsweredCommit", "worker2", FrameKind::response, true, 2, true, true},
      {"CoordinatorDiesAfterTheFirstPrepare", "worker0", FrameKind::method, true, 1, true, false},
      {"CoordinatorDiesAfterTheLastPrepare", "worker0", FrameKind::method, true, 2, true, false},
      {"CoordinatorDiesAnswersUnread", "worker0", FrameKind::response, false, 2, true, false},
      {"CoordinatorDiesBeforeTheFirstCommit", "worker0", FrameKind::method, true, 3, false, false},
      {"CoordinatorDiesAfterTheFirstCommit", "worker0", FrameKind::method, true, 3, true, true},
      {"CoordinatorDiesAfterTheLastCommit", "worker0", FrameKind::method, true, 4, true, true},
  };
  return all;
}
constexpr std::uint64_t kSeeds = 6;

/// The parameters of layers, by worker: they are read when no owner can be asked any more.
std::map<std::string, std::vector<at::Tensor>> shown;
void show_parameters(Worker& worker, const RRef<Layer>& layer) {
  shown[worker.name()] = layer.local_value()->tensors();
}

Registry make_points_registry() {
  Registry registry = make_optimizer_registry();
  registry.add<&show_parameters>("show_parameters");
  return registry;
}

class StepPoints : public OptimizerCluster {
 protected:
  StepPoints() : OptimizerCluster(make_points_registry) {
    const std::vector<std::string> owners{"worker1", "worker2", "worker0"};
    for (std::size_t i = 0; i < owners.size(); ++i) here().rpc_sync<&show_parameters>(owners[i], layers_[i]);
    const LocalModel model;
    auto local = optim::LocalOptimizer::make({{model.parameters(), SGD{.lr = 1}}}).value();
    const std::vector<at::Tensor> gradients = model.gradients(0);
    double squared = 0;
    for (std::size_t i = 0; i < gradients.size(); i += 2) {
      squared += optim::squared_norm(std::vector<at::Tensor>{gradients[i], gradients[i + 1]});
    }
    local.step(optim::scaled(gradients, optim::clip_scale(squared, 1))).value();
    for (std::size_t i = 0; i < owners.size(); ++i) {
      before_[owners[i]] = LocalModel().layers[i].values();
      after_[owners[i]] = model.layers[i].values();
    }
  }
  ~StepPoints() override { shown.clear(); }

  static const Point& point() { return points()[GetParam() / kSeeds]; }

  void set_trap() {
    for (const std::string& from : names_) {
      for (const std::string& to : names_) {
        if (from == to) continue;
        net_.link(from, to).set_filter([this, from, to](const testing::Frame& frame) {
          if (reached_) return from != point().victim;
          if (frame.header.kind != point().kind || (point().by_victim ? from : to) != point().victim) return true;
          reached_ = ++seen_ == point().nth;
          return !reached_ || point().leaves;
        });
      }
    }
  }
  void kill() {
    for (const std::string& other : names_) {
      if (other == point().victim) continue;
      if (GetParam() % 2 == 0) {
        net_.cut(point().victim, other);
      } else {
        net_.break_off(point().victim, other);
      }
    }
    cluster_.run_until_idle();
  }
  /// Whether a worker has stepped. Half a step is a failure.
  bool has_stepped(const std::string& worker) {
    const bool stepped = same_values(shown.at(worker), after_.at(worker));
    EXPECT_TRUE(stepped || same_values(shown.at(worker), before_.at(worker))) << worker << " is half stepped";
    return stepped;
  }

  const std::vector<std::string> names_{"worker0", "worker1", "worker2"};
  std::map<std::string, std::vector<at::Tensor>> before_;
  std::map<std::string, std::vector<at::Tensor>> after_;
  bool reached_ = false;
  int seen_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Points, StepPoints, ::testing::Range<std::uint64_t>(0, points().size() * kSeeds),
                         [](const auto& info) {
                           return points()[info.param / kSeeds].name + "_" + std::to_string(info.param % kSeeds);
                         });

TEST_P(StepPoints, OP8_NoOwnerIsHalfSteppedAndAllHear) {
  std::optional<DistributedOptimizer> optimizer(std::in_place, here(), all_parameters(), SGD{.lr = 1},
                                                optim::StepOptions{.clip_norm = 1});
  std::optional<Context> context(std::in_place, here());
  context->backward({forward(make_input(0)).sum()});
  cluster_.run_until_idle();
  set_trap();
  const base::TimePoint begun = cluster_.executor().clock().now();
  auto step = optimizer->step_async(*context);
  while (!reached_ && cluster_.executor().step()) {
  }
  ASSERT_TRUE(reached_);
  kill();
  if (!step.ready()) cluster_.executor().advance(std::chrono::seconds(1));
  EXPECT_LE(cluster_.executor().clock().now() - begun, std::chrono::seconds(1));
  ASSERT_TRUE(step.ready());
  const auto outcome = std::move(step).result();
  if (point().victim == "worker2") {
    if (!outcome) {
      EXPECT_EQ(outcome.error().code(), Errc::peer_down) << outcome.error().message();
      EXPECT_THAT(outcome.error().message(), ::testing::HasSubstr("worker2"));
    }
    const bool stepped = has_stepped("worker1");
    EXPECT_EQ(has_stepped("worker0"), stepped);
    EXPECT_TRUE(point().committed || !stepped);
    EXPECT_TRUE(stepped || !outcome) << "success is reported of a step that was given up";
    // At this point all owners have answered Commit. With an even seed the connection is cut, so that the last reply is
    // still read; otherwise the reply is lost.
    const bool answered = point().name == "OwnerDiesAfterItAnsweredCommit";
    EXPECT_EQ(outcome.has_value(), answered && GetParam() % 2 == 0);
    EXPECT_TRUE(stepped || !answered);
    // Training goes on with the owners that survive.
    context.reset();
    DistributedOptimizer next(here(), layers_[0].rpc_sync<&Layer::parameters>(), SGD{.lr = 1});
    const Context again(here());
    again.backward({layers_[0].rpc_sync<&Layer::forward>(make_input(1)).sum()});
    next.step(again);
  } else {
    for (const char* owner : {"worker1", "worker2"}) EXPECT_TRUE(point().committed || !has_stepped(owner)) << owner;
    // The owners have dropped the references of the dead step coordinator, and with them its optimizers.
    for (std::size_t i : {1U, 2U}) {
      EXPECT_EQ(cluster_[i].counters().owner_rrefs, 0U);
      EXPECT_TRUE(cluster_[i].autograd_contexts().empty());
    }
    // No request of the dead step coordinator is left: the end of an owner does not wait for one.
    for (std::size_t i : {1U, 2U}) {
      const base::TimePoint ends = cluster_.now();
      EXPECT_EQ(cluster_[i].stop().served_calls, 0U);
      EXPECT_LT(cluster_.now() - ends, WorkerOptions().stop_timeout);
    }
  }
}

}  // namespace
}  // namespace caftan::test::optimizer_points_test

// When the start of a job is over: once each member has a session with every other (SE-27 to SE-29); and at which
// addresses the members find each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>

#include "caftan/testing/network.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "worker/worker_core.hpp"

namespace caftan::meeting_test {
namespace {

using ::testing::HasSubstr;

int depth(Worker& worker, const std::vector<std::string>& through) {
  if (through.empty()) return 0;
  return 1 + worker.rpc_sync<&depth>(through.front(), std::vector<std::string>(through.begin() + 1, through.end()));
}

Registry make_registry() {
  Registry registry;
  registry.add<&depth>("depth");
  return registry;
}

/// Three members over connections that hold everything until a test releases them.
class SteppedMeeting : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    for (const std::string name : {"w0", "w1", "w2"}) {
      WorkerOptions options;
      options.name = name;
      options.world = {{"w0", ""}, {"w1", ""}, {"w2", ""}};
      options.executor = executor_;
      options.network = network_.local();
      options.on_peer_down = [this, name](const std::string& peer, const Error& reason) {
        lost_.push_back(name + " lost " + peer + ": " + std::string(to_string(reason.code())));
      };
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    }
  }
  void release(const std::string& from, const std::string& to) { network_.link(from, to).release(); }
  void release_all_but(const std::string& from, const std::string& to) {
    for (const std::string one : {"w0", "w1", "w2"}) {
      for (const std::string other : {"w0", "w1", "w2"}) {
        if (one != other && std::pair(one, other) != std::pair(from, to)) release(one, other);
      }
    }
  }
  bool is_over(std::size_t worker) { return actors::WorkerCore::of(*workers_[worker]).start_is_over(); }

  std::shared_ptr<transport::SteppedExecutor> executor_ = std::make_shared<transport::SteppedExecutor>(GetParam());
  testing::Network network_{[](testing::Link& link) { link.hold(); }};
  std::vector<std::string> lost_;
  std::vector<std::unique_ptr<Worker>> workers_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, SteppedMeeting, ::testing::Range<std::uint64_t>(1, 21));

TEST_P(SteppedMeeting, SE27_NoWorkerIsReadyBeforeAllHaveSaidSo) {
  release_all_but("w2", "w0");
  executor_->run();
  EXPECT_FALSE(is_over(0) || is_over(1) || is_over(2));
  release("w2", "w0");
  executor_->run();
  for (const auto& worker : workers_) EXPECT_TRUE(worker->wait_until_ready());
}

TEST_P(SteppedMeeting, SE26_TheCoordinatorNamesWhoHasNotMetAll) {
  release_all_but("w2", "w0");
  std::optional<Result<void>> ready;
  executor_->post([&] { ready = workers_[0]->wait_until_ready(); });
  executor_->run();
  executor_->advance(WorkerOptions().start_timeout);
  ASSERT_TRUE(ready);
  ASSERT_FALSE(*ready);
  EXPECT_EQ(ready->error().code(), Errc::timeout);
  EXPECT_THAT(ready->error().text(), HasSubstr("w2 has not met all others within"));
}

TEST_P(SteppedMeeting, SE28_AWorkerThatLeavesAtOnceLeavesNoOtherWaiting) {
  release_all_but("", "");
  workers_[0]->wait_until_ready().value();
  workers_[0]->stop();
  for (std::size_t i : {1, 2}) EXPECT_TRUE(workers_[i]->wait_until_ready()) << i;
  executor_->run();
  EXPECT_THAT(lost_, ::testing::UnorderedElementsAre("w1 lost w0: shut_down", "w2 lost w0: shut_down"));
  EXPECT_EQ(workers_[1]->rpc_sync<&depth>("w2", std::vector<std::string>{"w1", "w2"}), 2);
}

TEST_P(SteppedMeeting, SE29_ACallBeforeItsCalleeHasComeIsNoLoss) {
  WorkerOptions options;
  options.name = "a";
  options.world = {{"a", ""}, {"b", ""}};
  options.executor = executor_;
  options.network = std::make_shared<LocalNetwork>();
  const auto early = Worker::launch(options, make_registry()).value();
  const auto result = early->try_rpc_sync<&depth>("b", std::vector<std::string>{});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::peer_unreachable) << result.error().message();
  EXPECT_THAT(result.error().text(), HasSubstr("b has not come yet"));
}

TEST_P(SteppedMeeting, T9_SE24_ALifeIsUpUntilTheLastOfItsSessionsHasEnded) {
  for (const bool newest_ends : {false, true}) {
    WorkerOptions options;
    options.name = "a";
    options.world = {{"a", ""}, {"b", ""}, {"c", ""}};
    options.executor = executor_;
    options.network = std::make_shared<LocalNetwork>();
    const auto a = Worker::launch(std::move(options), make_registry()).value();
    std::vector<std::shared_ptr<transport::Channel>> far;
    for (const std::uint64_t connection : {10, 11}) {
      auto [near, other] = transport::make_loopback_pair(*executor_);
      actors::WorkerCore::of(*a).joiner().add_local_session({{WorkerId{1}, Incarnation{77}}, "b", {}}, connection,
                                                            std::move(near));
      far.push_back(std::move(other));
    }
    executor_->run();
    far[newest_ends ? 1 : 0]->close();
    executor_->run();
    EXPECT_EQ(a->channel_kind("b"), "loopback") << "calls go over the other one";
    std::optional<Result<void>> ready;
    executor_->post([&] { ready = a->wait_until_ready(); });
    executor_->run();
    executor_->advance(WorkerOptions().start_timeout);
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->error().text(), "c has not come within 10s; 2 of 3 are here");
    far[newest_ends ? 0 : 1]->close();
    executor_->run();
    EXPECT_EQ(a->channel_kind("b"), "");
  }
}

TEST(Dialling, T13_SE33_OneThatStaysAwayIsDialledSeldom) {
  const test::Folder folder;  // no worker listens in this folder: each attempt fails at once, without a wait
  const auto executor = std::make_shared<transport::SteppedExecutor>(1);
  WorkerOptions options;
  options.name = "w1";
  options.world = {{"w0", "unix:" + (folder / "w0")}, {"w1", ""}};
  options.executor = executor;
  const auto w1 = Worker::launch(std::move(options), make_registry()).value();
  executor->run();
  // A worker that has no session has one timer: that of its next attempt.
  const base::TimePoint first = executor->clock().now();
  int attempts = 1;
  for (; executor->advance_to_next_timer() && executor->clock().now() - first < std::chrono::seconds(60); ++attempts) {
    executor->run();
  }
  EXPECT_LE(attempts, 150);  // each 20 ms: 3000
  EXPECT_GE(attempts, 50);
}

/// Three members with sockets and threads of their own.
class Meeting : public ::testing::Test {
 protected:
  Worker& launch(const std::string& name, std::vector<WorkerAddress> world) {
    WorkerOptions options;
    options.name = name;
    options.world = std::move(world);
    options.secret = "shared by this test";
    options.executor =
        std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
    options.log = [this, name](std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_ += name + ": " + std::string(line) + "\n";
      logged_.notify_all();
    };
    workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    return *workers_.back();
  }
  void wait_for_log(const std::string& line, int times = 1) {
    std::unique_lock lock(mutex_);
    logged_.wait(lock, [&] {
      int found = 0;
      for (auto at = log_.find(line); at != std::string::npos; at = log_.find(line, at + 1)) ++found;
      return found >= times;
    });
  }

  test::Folder folder_;
  std::mutex mutex_;
  std::condition_variable logged_;
  std::string log_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(Meeting, SE27_TheCoordinatorWaitsUntilTheOthersHaveMet) {
  const auto at = [&](const std::string& name) { return "unix:" + (folder_ / name); };
  Worker& w0 = launch("w0", {{"w0", at("w0")}, {"w1", at("w1")}, {"w2", at("w2")}});
  launch("w1", {{"w0", at("w0")}, {"w1", at("w1")}, {"w2", at("w2")}});
  // w2 dials w1 at the address "later", where no worker listens yet.
  launch("w2", {{"w0", at("w0")}, {"w1", at("later")}, {"w2", at("w2")}});
  auto ready = std::async(std::launch::async, [&] { return w0.wait_until_ready(); });
  wait_for_log("w0: connected with w1");
  wait_for_log("w0: connected with w2");
  wait_for_log("w1: connected with w0");
  wait_for_log("w2: connected with w0");
  EXPECT_FALSE(actors::WorkerCore::of(w0).start_is_over());
  std::filesystem::create_symlink(folder_ / "w1", folder_ / "later");
  ASSERT_TRUE(ready.get());
  EXPECT_EQ(w0.rpc_sync<&depth>("w1", std::vector<std::string>{"w2", "w1", "w2"}), 3);
  for (const auto& worker : workers_) EXPECT_TRUE(worker->wait_until_ready());
}

TEST_F(Meeting, APortThatTheSystemChoosesIsLearntFromTheCoordinator) {
  const std::string any = "tcp:127.0.0.1:0";
  Worker& w0 = launch("w0", {{"w0", any}, {"w1", any}, {"w2", any}});
  for (const std::string name : {"w1", "w2"}) launch(name, {{"w0", w0.address()}, {"w1", any}, {"w2", any}});
  ASSERT_TRUE(w0.wait_until_ready());
  EXPECT_EQ(w0.rpc_sync<&depth>("w1", std::vector<std::string>{"w2", "w1"}), 2);
}

TEST_F(Meeting, K7_SE34_AMemberThatIsStartedAnewDuringAStartIsFoundAtItsNewAddress) {
  const std::string any = "tcp:127.0.0.1:0";
  Worker& w0 = launch("w0", {{"w0", any}, {"w1", any}, {"w2", any}});
  const std::vector<WorkerAddress> world{{"w0", w0.address()}, {"w1", any}, {"w2", any}};
  Worker& first = launch("w1", world);
  wait_for_log("w1: connected with w0");
  wait_for_log("w0: connected with w1");
  first.stop();
  Worker& again = launch("w1", world);
  wait_for_log("w1: connected with w0", 2);
  launch("w2", world);
  ASSERT_TRUE(w0.wait_until_ready());
  EXPECT_TRUE(again.wait_until_ready());
  EXPECT_EQ(w0.rpc_sync<&depth>("w2", std::vector<std::string>{"w1", "w2"}), 2);
}

TEST_F(Meeting, K7_SE34_OneThatComesBackAfterAllWereThereIsMetByAll) {
  // w2 has an address of w1 where no worker listens before the end of the test, so the start is under way until then.
  const auto at = [&](const std::string& name) { return "unix:" + (folder_ / name); };
  const std::string any = "tcp:127.0.0.1:0";
  Worker& w0 = launch("w0", {{"w0", at("w0")}, {"w1", any}, {"w2", at("w2")}, {"w3", at("w3")}});
  const std::vector<WorkerAddress> world{{"w0", at("w0")}, {"w1", any}, {"w2", at("w2")}, {"w3", at("w3")}};
  Worker& w1 = launch("w1", world);
  launch("w2", world);
  launch("w3", {{"w0", at("w0")}, {"w1", any}, {"w2", at("later")}, {"w3", at("w3")}});
  wait_for_log("w2: connected with w1");
  wait_for_log("w3: connected with w1");
  w1.stop();
  Worker& again = launch("w1", world);
  wait_for_log("w2: connected with w1", 2);
  wait_for_log("w3: connected with w1", 2);
  EXPECT_FALSE(actors::WorkerCore::of(w0).start_is_over());
  std::filesystem::create_symlink(folder_ / "w2", folder_ / "later");
  ASSERT_TRUE(w0.wait_until_ready());
  EXPECT_TRUE(again.wait_until_ready());
  EXPECT_EQ(w0.rpc_sync<&depth>("w2", std::vector<std::string>{"w1", "w3", "w1"}), 3);
}

TEST_F(Meeting, K7_SE34_OneThatComesBackAfterTheStartIsMetByAll) {
  const std::string any = "tcp:127.0.0.1:0";
  Worker& w0 = launch("w0", {{"w0", any}, {"w1", any}, {"w2", any}, {"w3", any}});
  const std::vector<WorkerAddress> world{{"w0", w0.address()}, {"w1", any}, {"w2", any}, {"w3", any}};
  Worker& w1 = launch("w1", world);
  Worker& w2 = launch("w2", world);
  launch("w3", world);
  for (const auto& worker : workers_) ASSERT_TRUE(worker->wait_until_ready());
  w1.stop();
  EXPECT_EQ(w2.try_rpc_sync<&depth>("w1", std::vector<std::string>{}).error().code(), Errc::peer_down);
  Worker& again = launch("w1", world);
  ASSERT_TRUE(again.wait_until_ready());
  // The new life of w1 has a session with every member; the members may make their ends of these sessions a moment
  // later.
  for (const std::string name : {"w0", "w2", "w3"}) wait_for_log(name + ": connected with w1", 2);
  EXPECT_EQ(w2.rpc_sync<&depth>("w1", std::vector<std::string>{"w3", "w1", "w0", "w1"}), 4);
}

TEST_F(Meeting, K7_SE34_SoIsOneThatComesBackToTheAddressOfItsEarlierLife) {
  std::vector<WorkerAddress> world;
  for (const std::string name : {"w0", "w1", "w2"}) world.push_back({name, "unix:" + (folder_ / name)});
  Worker& w0 = launch("w0", world);
  Worker& w1 = launch("w1", world);
  Worker& w2 = launch("w2", world);
  for (const auto& worker : workers_) ASSERT_TRUE(worker->wait_until_ready());
  w1.stop();
  wait_for_log("w0: w1 has left");
  wait_for_log("w2: w1 has left");
  Worker& again = launch("w1", world);
  ASSERT_TRUE(again.wait_until_ready());
  for (const std::string name : {"w0", "w2"}) wait_for_log(name + ": connected with w1", 2);
  EXPECT_EQ(w2.rpc_sync<&depth>("w1", std::vector<std::string>{"w2", "w0", "w1"}), 3);
  EXPECT_EQ(w0.rpc_sync<&depth>("w1", std::vector<std::string>{"w2"}), 1);
}

TEST_F(Meeting, K7_SE34_ANewLifeIsMetByOneThatLosesTheOldOneLater) {
  const std::string any = "tcp:127.0.0.1:0";
  Worker& w0 = launch("w0", {{"w0", any}, {"w1", any}, {"w2", any}});
  const std::vector<WorkerAddress> world{{"w0", w0.address()}, {"w1", any}, {"w2", any}};
  Worker& w1 = launch("w1", world);
  Worker& w2 = launch("w2", world);
  for (const auto& worker : workers_) ASSERT_TRUE(worker->wait_until_ready());
  // The coordinator loses its session with the old life before the other members do.
  actors::WorkerCore::of(w0).session_with(actors::WorkerCore::of(w1).life())->abort(Error(Errc::peer_down, "cut"));
  wait_for_log("w0: lost w1");
  Worker& again = launch("w1", world);
  wait_for_log("w0: connected with w1", 2);
  EXPECT_EQ(w0.rpc_sync<&depth>("w2", std::vector<std::string>{"w0", "w2"}), 2) << "w2 has read the coordinator's view";
  w1.stop();
  ASSERT_TRUE(again.wait_until_ready());
  wait_for_log("w2: connected with w1", 2);
  EXPECT_EQ(w2.rpc_sync<&depth>("w1", std::vector<std::string>{"w2", "w1"}), 2);
}

Error refusal(const std::string& name, std::vector<WorkerAddress> world) {
  WorkerOptions options;
  options.name = name;
  options.world = std::move(world);
  const auto launched = Worker::launch(std::move(options), {});
  return launched ? Error() : launched.error();
}

TEST(Addresses, ACoordinatorThatCannotBeDialledIsRefused) {
  for (const std::string at : {"", "tcp:127.0.0.1:0"}) {
    const Error error = refusal("b", {{"a", at}, {"b", ""}});
    EXPECT_EQ(error.code(), Errc::invalid_config);
    EXPECT_THAT(error.text(), HasSubstr("cannot dial 'a', the first in its list of members, at '" + at + "'"));
  }
}

TEST(Addresses, APortThatIsNoneIsNamedBeforeAnythingListens) {
  for (const std::string port : {"65536", "99999", "-1", "", "http", "80x"}) {
    const std::string bad = "tcp:127.0.0.1:" + port;
    for (const auto& world : {std::vector<WorkerAddress>{{"a", bad}, {"b", ""}},
                              std::vector<WorkerAddress>{{"a", "tcp:127.0.0.1:0"}, {"b", bad}}}) {
      const Error error = refusal("a", world);
      EXPECT_EQ(error.code(), Errc::invalid_config) << bad << error.message();
      EXPECT_THAT(error.text(), HasSubstr("'" + bad + "'"));
    }
  }
}

}  // namespace
}  // namespace caftan::meeting_test

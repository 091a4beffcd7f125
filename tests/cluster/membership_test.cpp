// Who may join, and what both sides report when a peer may not (BI-2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>

#include "by_hand.hpp"
#include "caftan/actors/worker.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"

namespace caftan::membership_test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// Two members "a" and "b"; a listens, b dials.
class Membership : public ::testing::TestWithParam<const char*> {
 protected:
  WorkerOptions options_of(const std::string& name) {
    WorkerOptions options;
    options.name = name;
    options.world = world_;
    options.secret = "shared by this test";
    options.executor = executor_;
    options.log = [this, name](std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_ += name + ": " + std::string(line) + "\n";
      logged_.notify_all();
    };
    return options;
  }
  std::unique_ptr<Worker> launch(WorkerOptions options) { return Worker::launch(std::move(options), {}).value(); }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  void wait_for_log(const std::string& line, int times) {
    std::unique_lock lock(mutex_);
    logged_.wait(lock, [&] {
      int found = 0;
      for (auto at = log_.find(line); at != std::string::npos; at = log_.find(line, at + 1)) ++found;
      return found >= times;
    });
  }
  /// Starts a, then b with `change`; a waits only until b has had its reply.
  Error refusal_of_b(const std::function<void(WorkerOptions&)>& change) {
    auto a_options = options_of("a");
    a_options.start_timeout = milliseconds(100);
    auto a = launch(a_options);
    world_[0].address = a->address();
    auto b_options = options_of("b");
    change(b_options);
    auto b = launch(b_options);
    const auto b_ready = b->wait_until_ready();
    EXPECT_FALSE(b_ready);
    const auto a_ready = a->wait_until_ready();
    EXPECT_FALSE(a_ready);
    if (!a_ready) {
      EXPECT_EQ(a_ready.error().code(), Errc::timeout);
      EXPECT_NE(a_ready.error().text().find("b has not come"), std::string::npos) << a_ready.error().message();
    }
    return b_ready ? Error() : b_ready.error();
  }

  test::Folder folder_;
  std::vector<WorkerAddress> world_{
      {"a", GetParam() == std::string("unix") ? "unix:" + (folder_ / "a") : "tcp:127.0.0.1:0"}, {"b", ""}};
  std::shared_ptr<transport::PollingExecutor> executor_ = std::make_shared<transport::ThreadedExecutor>();
  std::mutex mutex_;
  std::condition_variable logged_;
  std::string log_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, Membership, ::testing::Values("unix", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Membership, BI2_AWrongSecretIsNamedAtBothSides) {
  const Error refusal = refusal_of_b([](WorkerOptions& options) { options.secret = "guessed"; });
  EXPECT_EQ(refusal.code(), Errc::not_authenticated) << refusal.message();
  EXPECT_EQ(refusal.worker(), "a");
  EXPECT_NE(log().find("a: a connection was refused: not_authenticated"), std::string::npos) << log();
}

TEST_P(Membership, BI2_AMissingSecretIsRefused) {
  const Error refusal = refusal_of_b([](WorkerOptions& options) { options.secret.clear(); });
  EXPECT_EQ(refusal.code(), Errc::not_authenticated) << refusal.message();
}

TEST_P(Membership, BI2_AnotherClusterIsNamedAtBothSides) {
  const Error refusal = refusal_of_b([](WorkerOptions& options) { options.cluster = "other"; });
  EXPECT_EQ(refusal.code(), Errc::wrong_cluster) << refusal.message();
  EXPECT_NE(log().find("a: a connection was refused: wrong_cluster"), std::string::npos) << log();
}

TEST_P(Membership, HS12_OtherSettingsEndBothStartsAndNameTheTables) {
  auto a_options = options_of("a");
  a_options.settings = "run=01 roles.agent=02";
  auto a = launch(a_options);
  world_[0].address = a->address();
  auto b_options = options_of("b");
  b_options.settings = "run=01 roles.agent=03";
  auto b = launch(b_options);
  for (Worker* worker : {b.get(), a.get()}) {
    const auto ready = worker->wait_until_ready();
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().code(), Errc::invalid_config) << ready.error().message();
    EXPECT_THAT(ready.error().text(), HasSubstr("other settings in [roles.agent]: worker 'b'"));
  }
}

TEST_P(Membership, HS12_WhoSaysNothingOfItsSettingsMayJoin) {
  auto a_options = options_of("a");
  a_options.settings = "run=01";
  auto a = launch(a_options);
  world_[0].address = a->address();
  auto b = launch(options_of("b"));
  EXPECT_TRUE(b->wait_until_ready());
  EXPECT_TRUE(a->wait_until_ready());
}

TEST_P(Membership, AtMostEightRefusalsAreReported) {
  std::atomic<int> reported = 0;
  auto a_options = options_of("a");
  a_options.on_refused = [&reported](const Error& reason) {
    EXPECT_EQ(reason.code(), Errc::not_authenticated);
    ++reported;
  };
  auto a = launch(a_options);
  world_[0].address = a->address();
  for (int i = 0; i < 9; ++i) {
    auto options = options_of("b");
    options.secret = "guessed";
    EXPECT_FALSE(launch(options)->wait_until_ready());
    wait_for_log("a: a connection was refused: not_authenticated", i + 1);
  }
  a->stop();
  EXPECT_EQ(reported, 8);
}

TEST_P(Membership, BI2_AnAddressInUseIsNamed) {
  auto a = launch(options_of("a"));
  world_[0].address = a->address();
  const auto again = Worker::launch(options_of("a"), {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::io_error);
  EXPECT_NE(again.error().text().find(a->address()), std::string::npos) << again.error().message();
  EXPECT_EQ(again.error().worker(), "a");
}

TEST_P(Membership, BI2_WhoDoesNotComeIsNamed) {
  auto options = options_of("a");
  options.start_timeout = milliseconds(1);
  const auto started = Worker::start(options, {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), Errc::timeout);
  EXPECT_EQ(started.error().text(), "b has not come within 1ms; 1 of 2 are here");
}

TEST_P(Membership, BI2_WhoIsNotListeningIsNamedByWhoDials) {
  if (GetParam() == std::string("tcp")) world_[0].address = "tcp:127.0.0.1:1";
  auto options = options_of("b");
  options.start_timeout = milliseconds(1);
  const auto started = Worker::start(options, {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), Errc::timeout);
  EXPECT_NE(started.error().text().find("a has not come"), std::string::npos) << started.error().message();
}

TEST_P(Membership, K7b_SE23_ASecondWorkerOfThatNameIsADuplicateAndHearsOfItAtOnce) {
  auto a = launch(options_of("a"));
  world_[0].address = a->address();
  auto b = launch(options_of("b"));
  a->wait_until_ready().value();
  b->wait_until_ready().value();
  const bool is_unix = GetParam() == std::string("unix");
  const std::string refusal = "refused by the server: another worker \"b\" is connected (" +
                              (is_unix ? "process " + std::to_string(::getpid()) + ")" : "127.0.0.1:");
  std::promise<Error> reported;
  {
    auto options = options_of("b");
    options.start_timeout = std::chrono::hours(1);
    options.on_duplicate = [&](const Error& reason) { reported.set_value(reason); };  // a second time would throw
    auto second = launch(options);
    const Error reason = reported.get_future().get();
    EXPECT_EQ(reason.code(), Errc::duplicate_worker);
    EXPECT_EQ(reason.worker(), "a");
    EXPECT_THAT(reason.text(), ::testing::StartsWith(refusal));
    wait_for_log("a: a connection was refused: duplicate_worker", 3);
  }
  auto options = options_of("b");
  options.start_timeout = milliseconds(200);
  auto third = launch(options);
  const auto ready = third->wait_until_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code(), Errc::duplicate_worker);
  EXPECT_THAT(ready.error().text(), ::testing::StartsWith("still refused after 200ms: a: " + refusal));
  EXPECT_EQ(a->channel_kind("b"), GetParam());
}

TEST_P(Membership, T18_K7b_SE33_ANewLifeIsAdmittedOnceTheOldOneHasEnded) {
  auto a = launch(options_of("a"));
  world_[0].address = a->address();
  auto b = launch(options_of("b"));
  a->wait_until_ready().value();
  b->wait_until_ready().value();
  auto second = launch(options_of("b"));
  wait_for_log("a: a connection was refused: duplicate_worker", 2);
  EXPECT_EQ(a->channel_kind("b"), GetParam());
  b->stop();
  EXPECT_TRUE(second->wait_until_ready());
  wait_for_log("a: connected with b", 2);
}

TEST_P(Membership, T9_SE24_AConnectionNumberThatIsOpenIsRefused) {
  auto a = launch(options_of("a"));
  test::ByHand b(a->address());
  const auto first = b.connect(10).value();
  wait_for_log("a: connected with b", 1);
  const auto second = b.connect(10);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::duplicate_worker);
  EXPECT_THAT(second.error().text(), HasSubstr("connection 10 of this life of b is open already"));
  EXPECT_EQ(a->channel_kind("b"), GetParam());
  first.channel->close();
}

TEST_P(Membership, StoppingIsNoticedByThePeer) {
  std::promise<std::string> lost;
  auto options = options_of("a");
  options.on_peer_down = [&](const std::string& peer, const Error& reason) {
    lost.set_value(peer + ": " + reason.text());
  };
  auto a = launch(options);
  world_[0].address = a->address();
  auto b = launch(options_of("b"));
  a->wait_until_ready().value();
  b->wait_until_ready().value();
  b->stop();
  EXPECT_EQ(lost.get_future().get(), "b: b has left");
}

TEST(MembershipOptions, H9_TwoWorkersOfOneNameAreNamed) {
  WorkerOptions options;
  options.name = "a";
  options.world = {{"a", ""}, {"twin", ""}, {"b", ""}, {"twin", ""}};
  const auto launched = Worker::launch(options, {});
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().text(), "two workers have the same name, \"twin\": ids 1 and 3");
}

TEST(MembershipOptions, AStrangerInItsOwnWorldIsRefused) {
  WorkerOptions options;
  options.name = "c";
  options.world = {{"a", ""}, {"b", ""}};
  EXPECT_EQ(Worker::launch(options, {}).error().code(), Errc::invalid_config);
}

TEST(MembershipOptions, ListeningBeyondThisHostNeedsASecret) {
  WorkerOptions options;
  options.name = "a";
  options.world = {{"a", "tcp:0.0.0.0:0"}, {"b", ""}};
  const auto launched = Worker::launch(options, {});
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code(), Errc::invalid_config);
  EXPECT_NE(launched.error().text().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace caftan::membership_test

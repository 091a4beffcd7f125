// Limits of a session as calls meet them: what a sender cannot know never ends the session.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "caftan/tensor/operators.hpp"
#include "channel_tap.hpp"
#include "cluster.hpp"

namespace caftan::test {
namespace {

int add(int a, int b) { return a + b; }
std::int64_t count_all(const std::vector<at::Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  return elements;
}
std::vector<at::Tensor> make_many(int count) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(at::ones({1024}));
  return tensors;
}
int throw_long() { throw std::runtime_error(std::string(4096, 'x')); }
int call_throw_long(Worker& worker, const std::string& peer) { return worker.rpc_sync<&throw_long>(peer); }
at::Tensor make_mib(std::int64_t mib) { return at::zeros({mib << 18}); }

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&count_all>("count_all");
  registry.add<&make_many>("make_many");
  registry.add<&make_mib>("make_mib");
  registry.add<&throw_long>("throw_long");
  registry.add<&call_throw_long>("call_throw_long");
  return registry;
}

TEST(Limits, T2_ThousandsOfTensorsTravelInOneCallAndInOneResult) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  EXPECT_EQ(cluster[0].rpc_sync<&count_all>("b", make_many(4200)), 4200 * 1024);
  EXPECT_EQ(cluster[0].rpc_sync<&make_many>("b", 4200).size(), 4200U);
}

TEST(Limits, T2_WI20_MoreTensorsThanThePeerTakesAreRefusedBeforeTheyAreSent) {
  Cluster cluster(1, {"a", "b"}, make_registry, [](WorkerOptions& options) {
    if (options.name == "b") options.limits.tensors = 100;
  });
  const auto refused = cluster[0].try_rpc_sync<&count_all>("b", make_many(101));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
  EXPECT_EQ(refused.error().worker(), "b");
  EXPECT_NE(refused.error().text().find("WorkerLimits::tensors is 100"), std::string::npos) << refused.error().text();
  EXPECT_EQ(cluster[0].rpc_sync<&count_all>("b", make_many(100)), 100 * 1024);
  // b sends no more than it takes itself: the result is the error, the session goes on.
  const auto result = cluster[0].try_rpc_sync<&make_many>("b", 101);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::limit_exceeded) << result.error().message();
  EXPECT_EQ(cluster[0].rpc_sync<&add>("b", 1, 2), 3);
}

/// 1 KiB is the least that an application file may say.
TEST(Limits, WI20_AnErrorIsShortenedToWhatItsReceiverTakes) {
  for (const char* const small : {"a", "b"}) {
    Cluster cluster(1, {"a", "b"}, make_registry, [small](WorkerOptions& options) {
      if (options.name == small) options.limits.message = 1024;
    });
    const auto thrown = cluster[0].try_rpc_sync<&throw_long>("b");
    ASSERT_FALSE(thrown);
    EXPECT_EQ(thrown.error().code(), Errc::remote_exception) << small << thrown.error().message();
    EXPECT_NE(thrown.error().text().find("xxx"), std::string::npos);
    const auto nested = cluster[0].try_rpc_sync<&call_throw_long>("b", "a");
    ASSERT_FALSE(nested);
    EXPECT_EQ(nested.error().code(), Errc::remote_exception) << nested.error().message();
    EXPECT_EQ(cluster[0].rpc_sync<&add>("b", 1, 2), 3);
  }
}

TEST(Limits, T2_A2_LargeResultsThatComeAtOnceAllArrive) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  std::vector<Future<std::int64_t>> sizes;
  for (int i = 0; i < 3; ++i) {
    // Each tensor goes as soon as it has come: what counts is what is on its way.
    sizes.push_back(
        cluster[0].rpc_async<&make_mib>("b", 400).then([](const Result<at::Tensor>& tensor) -> Result<std::int64_t> {
          if (!tensor) return tensor.error();
          return tensor->numel();
        }));
  }
  for (auto& size : sizes) EXPECT_EQ(std::move(size).result().value(), std::int64_t{400} << 18);
  EXPECT_EQ(cluster[0].rpc_sync<&add>("b", 1, 2), 3);
}

TEST(Limits, T2_AMessageLimitThatAFrameCannotCountIsRefusedAtTheStart) {
  WorkerOptions options;
  options.name = "a";
  options.world = {{"a", ""}};
  options.limits.message = std::uint64_t{4} << 30;
  const auto refused = Worker::launch(std::move(options), make_registry());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::invalid_config);
}

}  // namespace
}  // namespace caftan::test

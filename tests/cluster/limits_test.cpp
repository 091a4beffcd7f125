// Limits of a session as calls meet them: a message beyond a limit fails alone, and the session goes on.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "address_space.hpp"
#include "autograd_roles.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test::limits_test {
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

constexpr std::int64_t kLarge = 8 << 20;  // elements of 4 bytes
at::Tensor kept;                          // made while the process has memory for a large tensor
at::Tensor give_kept() { return kept; }
std::int64_t count_one(const at::Tensor& tensor) { return tensor.numel(); }
at::Tensor same(const at::Tensor& tensor) { return tensor; }
at::Tensor expanded(const at::Tensor& number) { return number.expand({1000}); }

/// Returns the sum of `count` squares, each computed by a call of its own.
at::Tensor many_squares(Worker& worker, const std::string& where, int count, const at::Tensor& x) {
  at::Tensor sum = worker.rpc_sync<&square>(where, x);
  for (int i = 1; i < count; ++i) sum = sum + worker.rpc_sync<&square>(where, x);
  return sum;
}

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&count_all>("count_all");
  registry.add<&make_many>("make_many");
  registry.add<&make_mib>("make_mib");
  registry.add<&throw_long>("throw_long");
  registry.add<&call_throw_long>("call_throw_long");
  registry.add<&give_kept>("give_kept");
  registry.add<&count_one>("count_one");
  registry.add<&same>("same");
  registry.add<&expanded>("expanded");
  registry.add<&square>("square");
  registry.add<&many_squares>("many_squares");
  return registry;
}

/// Puts workers on plain connections: links never fill, so all tensors that are on their way would lie in them.
testing::Cluster::Change on_plain_connections() {
  return [network = std::make_shared<LocalNetwork>()](WorkerOptions& options) { options.network = network; };
}

TEST(Limits, T2_ThousandsOfTensorsTravelInOneCallAndInOneResult) {
  testing::Cluster cluster(1, {"a", "b"}, make_registry);
  EXPECT_EQ(cluster[0].rpc_sync<&count_all>("b", make_many(4200)), 4200 * 1024);
  EXPECT_EQ(cluster[0].rpc_sync<&make_many>("b", 4200).size(), 4200U);
}

TEST(Limits, T2_WI20_MoreTensorsThanThePeerTakesAreRefusedBeforeTheyAreSent) {
  testing::Cluster cluster(1, {"a", "b"}, make_registry, [](WorkerOptions& options) {
    if (options.name == "b") options.limits.segments = 100;
  });
  const auto refused = cluster[0].try_rpc_sync<&count_all>("b", make_many(101));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
  EXPECT_EQ(refused.error().worker(), "b");
  EXPECT_NE(refused.error().text().find("Limits::segments is 100"), std::string::npos) << refused.error().text();
  EXPECT_EQ(cluster[0].rpc_sync<&count_all>("b", make_many(100)), 100 * 1024);
  // b may not send more segments than it takes itself: the call ends with an error, and the session goes on.
  const auto result = cluster[0].try_rpc_sync<&make_many>("b", 101);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::limit_exceeded) << result.error().message();
  EXPECT_EQ(cluster[0].rpc_sync<&add>("b", 1, 2), 3);
}

/// 1 KiB is the least that an application file may say.
TEST(Limits, WI20_AnErrorIsShortenedToWhatItsReceiverTakes) {
  for (const char* const small : {"a", "b"}) {
    testing::Cluster cluster(1, {"a", "b"}, make_registry, [small](WorkerOptions& options) {
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
  testing::Cluster cluster(1, {"a", "b"}, make_registry, on_plain_connections());
  std::vector<Future<std::int64_t>> sizes;
  for (int i = 0; i < 3; ++i) {
    // The continuation drops each tensor as soon as it has come: the limit counts only the bytes that are under way.
    sizes.push_back(
        cluster[0].rpc_async<&make_mib>("b", 400).then([](const Result<at::Tensor>& tensor) -> Result<std::int64_t> {
          if (!tensor) return tensor.error();
          return tensor->numel();
        }));
  }
  for (auto& size : sizes) EXPECT_EQ(std::move(size).result().value(), std::int64_t{400} << 18);
  EXPECT_EQ(cluster[0].rpc_sync<&add>("b", 1, 2), 3);
}

TEST(Limits, T2_WI22_WithoutMemoryForItsTensorsOneCallFailsAndTheSessionGoesOn) {
  testing::Cluster cluster(1, {"a", "b"}, make_registry, on_plain_connections());
  const at::Tensor large = at::empty({kLarge});
  kept = at::empty({kLarge});
  {
    const AddressSpaceLimit limit(2 * kLarge);
    const auto argument = cluster[0].try_rpc_sync<&count_one>("b", large);
    ASSERT_FALSE(argument);
    EXPECT_EQ(argument.error().code(), Errc::limit_exceeded) << argument.error().message();
    EXPECT_EQ(argument.error().worker(), "b");
    EXPECT_THAT(argument.error().text(), ::testing::HasSubstr("the tensors could not be received"));
    const auto result = cluster[0].try_rpc_sync<&give_kept>("b");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Errc::limit_exceeded) << result.error().message();
    const auto created = cluster[0].remote<&count_one>("b", large).try_to_here();
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().code(), Errc::limit_exceeded) << created.error().message();
  }
  EXPECT_EQ(cluster[0].rpc_sync<&count_one>("b", large), kLarge);
  EXPECT_EQ(cluster[0].rpc_sync<&give_kept>("b").numel(), kLarge);
  kept.reset();
}

TEST(Limits, T2_WI22_WithoutMemoryForAGradientThePassFailsAndTheSessionGoesOn) {
  testing::Cluster cluster(1, {"a", "b"}, make_registry, on_plain_connections());
  const at::Tensor x = at::empty({kLarge}).requires_grad_();
  const at::Tensor gradient = at::empty({kLarge});
  autograd::Context context(cluster[0]);
  const at::Tensor y = cluster[0].rpc_sync<&same>("b", x);
  {
    const AddressSpaceLimit limit(2 * kLarge);
    const auto pass = context.try_backward({y}, {.retain_graph = true, .gradients = {gradient}});
    ASSERT_FALSE(pass);
    EXPECT_EQ(pass.error().code(), Errc::limit_exceeded) << pass.error().message();
    EXPECT_THAT(pass.error().message(), ::testing::HasSubstr(": the tensors could not be received"));
  }
  EXPECT_TRUE(context.try_backward({y}, {.gradients = {gradient}}));
  EXPECT_EQ(context.gradients().of(x).numel(), kLarge);
}

TEST(Limits, T2_DA24_AGradientBeyondALimitFailsThePassAndNamesTheLimit) {
  testing::Cluster cluster(1, {"a", "b"}, make_registry, [](WorkerOptions& options) { options.limits.tensors = 1000; });
  const at::Tensor x = at::ones({1}).requires_grad_();
  autograd::Context context(cluster[0]);
  const at::Tensor y = cluster[0].rpc_sync<&expanded>("b", x);  // travels as one number
  const auto pass = context.try_backward({y}, {.gradients = {at::ones({1000})}});
  ASSERT_FALSE(pass);
  EXPECT_EQ(pass.error().code(), Errc::limit_exceeded) << pass.error().message();
  EXPECT_THAT(pass.error().message(),
              ::testing::ContainsRegex("the gradients of message .*4000 bytes of tensors, limits.tensors is 1000"));
  EXPECT_TRUE(context.try_backward({cluster[0].rpc_sync<&same>("b", x).sum()}));
}

TEST(Limits, T2_DA24_APassThatReachesTooManyMessagesForOneFrameNamesTheLimit) {
  constexpr int kCalls = 400;  // so many that a mark or report of all messages has 8,000 bytes
  testing::Cluster cluster(1, {"a", "b", "c"}, make_registry,
                           [](WorkerOptions& options) { options.limits.message = 4096; });
  const at::Tensor x = leaf({1, 2});
  for (const bool elsewhere : {false, true}) {
    autograd::Context context(cluster[0]);
    const at::Tensor y = elsewhere ? cluster[0].rpc_sync<&many_squares>("b", std::string("c"), kCalls, x)
                                   : many_squares(cluster[0], "b", kCalls, x);
    const auto pass = context.try_backward({y.sum()});
    ASSERT_FALSE(pass);
    EXPECT_EQ(pass.error().code(), Errc::limit_exceeded) << pass.error().message();
    EXPECT_THAT(pass.error().message(), ::testing::HasSubstr("limits.message is 4096"));
    // No worker was lost, and the next pass over as many workers succeeds.
    const at::Tensor few = many_squares(cluster[0], "b", 2, x);
    EXPECT_TRUE(context.try_backward({few.sum()}));
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{4, 8}));
  }
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
}  // namespace caftan::test::limits_test

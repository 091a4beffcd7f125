// Group 13 of PyTorch's own suite: functions of TorchScript as targets of calls, and calls from inside of scripts.
// Tests here are of the rows whose target is a script. A script of Caftan makes no calls and holds no references
// (SC-5), so the rows of calls, references, contexts and backward passes inside of a script have no counterpart:
//   13.01 to 13.07, 13.20  references in a script, script classes and interfaces: RRef<T> has the same in C++
//   13.26 to 13.28  profiles of calls: there are none yet; a script that opens a named scope is refused
//   13.29  a script function marked as asynchronous that returns no future: there is no such mark
//   13.31, 13.32  gradients and backward passes asked for by a script: autograd::Context does that in C++
//   13.33, 13.34  calls from forked tasks, and after a script has waited: a context follows continuations of futures
//                 (rows of group 06 and autograd_waits_test.cpp); what a script forks is recorded: SC13 below
//   13.19  a module sent by value: modules stay where they are; its other half, methods by reference, is
//          RemoteModule<ScriptModule> (script_module_test.cpp), as is row 13.18
//   13.37  a reference as the argument of a script function: no argument of a script is one, so this does not compile
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "script_files.hpp"

namespace caftan::test::script_rows_test {
namespace {

using namespace std::chrono_literals;
using autograd::Context;
using rpc::kwarg;
using ::testing::HasSubstr;

constexpr const char* kCode = R"(
def doubled(self, x):
    return x + x
def with_defaults(self, x : Tensor, by : int = 2, plus : float = 0.5):
    return x * by + plus
def mixed(self, x : Tensor, s : str, n : int, y : Tensor, t : str = "t", m : int = 1):
    return x + y, s + t, n + m
def none_needed(self, by : int = 3):
    return torch.ones([2]) * by
def boom(self, x):
    assert x.numel() > 100, "expected error"
    return x
def with_forks(self, x, n : int):
    futures = [fork(self.doubled, x)]
    for i in range(n - 1):
        futures.append(fork(self.doubled, x * (i + 2)))
    total = torch.zeros_like(x)
    for future in futures:
        total = total + torch.wait(future)
    return total
def boom_in_fork(self, x):
    return torch.wait(fork(self.boom, x))
def weighted(self, x):
    return torch.wait(fork(self.doubled, x * self.w)) * x
)";

class ScriptRows : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Registry make_registry() {
    Registry registry;
    registry.add_script("net", file_);
    return registry;
  }
  Worker& here() { return cluster_[0]; }
  void expect_all_ways(const char* function, double value) {
    for (const char* to : {"worker1", "worker0"}) {
      const at::Tensor expected = one_ * value;
      EXPECT_TRUE(here().rpc_script(to, function, one_).equal(expected)) << to;
      EXPECT_TRUE(std::get<at::Tensor>(here().rpc_script_async(to, function, one_).get().at(0)).equal(expected)) << to;
      EXPECT_TRUE(here().remote_script(to, function, one_).to_here().equal(expected)) << to;
    }
  }
  Error error_of(const char* function) { return here().try_rpc_script("worker1", function, one_).error(); }

  const ScriptFolder folder_;
  const at::Tensor one_ = at::ones({2});
  const std::filesystem::path file_ =
      folder_.save("net.pt", {.code = kCode, .parameters = {{"w", at::ones({2}).mul(3).requires_grad_()}}});
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, [this] { return make_registry(); }};
};
INSTANTIATE_TEST_SUITE_P(Seeds, ScriptRows, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(ScriptRows, Row13_08_AllKeywordsHaveTheirDefaults) { expect_all_ways("net.with_defaults", 2.5); }

TEST_P(ScriptRows, Row13_09_SomeKeywordsHaveTheirDefaults) {
  EXPECT_TRUE(here().rpc_script("worker1", "net.with_defaults", one_, kwarg("plus", 1.0)).equal(one_ * 3));
}

TEST_P(ScriptRows, Row13_10_NoKeywordHasItsDefault) {
  const auto all = [&](auto call) {
    return call("worker1", "net.with_defaults", one_, kwarg("plus", 1.0), kwarg("by", 4));
  };
  EXPECT_TRUE(all([&](auto&&... a) { return here().rpc_script(a...); }).equal(one_ * 5));
  EXPECT_TRUE(all([&](auto&&... a) { return here().remote_script(a...).to_here(); }).equal(one_ * 5));
}

TEST_P(ScriptRows, Row13_11_ArgumentsAndKeywordsOfDifferentTypes) {
  const auto results =
      here()
          .rpc_script_async("worker1", "net.mixed", one_, "a", 1, kwarg("y", one_), kwarg("t", "b"), kwarg("m", 2))
          .get();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(std::get<at::Tensor>(results[0]).equal(one_ * 2));
  EXPECT_EQ(std::get<std::string>(results[1]), "ab");
  EXPECT_EQ(std::get<std::int64_t>(results[2]), 3);
}

// And row 13.13: here a call without arguments has one form.
TEST_P(ScriptRows, Row13_12_NeitherArgumentsNorKeywords) {
  EXPECT_TRUE(here().rpc_script("worker1", "net.none_needed").equal(one_ * 3));
}

TEST_P(ScriptRows, Row13_14_MoreArgumentsThanThereAre) {
  const Error error = here().try_rpc_script("worker1", "net.none_needed", 1, 2).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("at most 1 argument(s) for operator 'none_needed', but received 2"));
}

TEST_P(ScriptRows, Row13_15_WhatTheScriptRaisesArrives) {
  EXPECT_EQ(error_of("net.boom").code(), Errc::remote_exception);
  EXPECT_THAT(error_of("net.boom").text(), HasSubstr("expected error"));
}

TEST_P(ScriptRows, Row13_16_AScriptThatTheCalleeDoesNotHave) {
  EXPECT_EQ(error_of("net.no_such").code(), Errc::unknown_function);
  EXPECT_THAT(error_of("net.no_such").text(), HasSubstr("\"net.no_such\""));
}

TEST_P(ScriptRows, Row13_17_InAllWaysAndToItself) { expect_all_ways("net.doubled", 2); }

TEST_P(ScriptRows, Row13_21_WhatARemoteScriptRaisesArrivesWithTheFetch) {
  const RRef<at::Tensor> there = here().remote_script("worker1", "net.boom", one_);
  EXPECT_THAT(there.try_to_here().error().text(), HasSubstr("expected error"));
}

TEST_P(ScriptRows, Row13_22_AScriptThatForks) {
  EXPECT_TRUE(here().remote_script("worker1", "net.with_forks", one_, 3).to_here().equal(one_ * 12));
}

TEST_P(ScriptRows, Row13_23_AContinuationOfACall) {
  auto tripled = here().rpc_script_async("worker1", "net.doubled", one_).then([](Result<rpc::OperatorValues> sum) {
    return std::get<at::Tensor>(sum.value().at(0)) * 3;
  });
  EXPECT_TRUE(tripled.get().equal(one_ * 6));
}

TEST_P(ScriptRows, Row13_24_AContinuationThatReturnsNothing) {
  std::optional<double> sum;
  here()
      .rpc_script_async("worker1", "net.doubled", one_)
      .then([&sum](Result<rpc::OperatorValues> result) {
        sum = std::get<at::Tensor>(result.value().at(0)).sum().item<double>();
      })
      .forget();
  cluster_.run_until_idle();
  EXPECT_EQ(sum, 4);
}

TEST_P(ScriptRows, Row13_25_WhatAForkRaisesArrives) {
  EXPECT_THAT(error_of("net.boom_in_fork").text(), HasSubstr("expected error"));
}

TEST_P(ScriptRows, Row13_30_TwentyAtOnceStayThere) {
  std::vector<RRef<at::Tensor>> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(here().remote_script("worker1", "net.with_forks", one_ * i, 2));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(sums[i].to_here().equal(one_ * (6.0 * i)));
}

TEST_P(ScriptRows, Row13_35_TimeOutsOfACallThatIsDelayed) {
  cluster_.network().link("worker0", "worker1").set_delay(1500ms);
  const auto outcome = [&](base::Duration timeout) {
    return here().with({.timeout = timeout}).try_rpc_script("worker1", "net.doubled", one_);
  };
  EXPECT_EQ(outcome(500ms).error().code(), Errc::timeout);
  EXPECT_EQ(outcome(1ms).error().code(), Errc::timeout);
  EXPECT_TRUE(here().set_rpc_timeout(1ms));
  EXPECT_EQ(error_of("net.doubled").code(), Errc::timeout);
  EXPECT_TRUE(outcome(0ms));
}

TEST_P(ScriptRows, Row13_36_TimeOutsOfAFetchThatIsDelayed) {
  const RRef<at::Tensor> there = here().remote_script("worker1", "net.doubled", one_);
  EXPECT_TRUE(there.to_here().equal(one_ * 2));
  cluster_.network().link("worker0", "worker1").set_delay(1s);
  EXPECT_EQ(there.with({.timeout = 10ms}).try_to_here().error().code(), Errc::timeout);
  EXPECT_TRUE(there.with({.timeout = 100s}).to_here().equal(one_ * 2));
}

TEST_P(ScriptRows, SC13_WhatAScriptForksIsRecorded) {
  const at::Tensor x = at::ones({2}).mul(2).requires_grad_();
  Context context(here());
  context.backward({here().rpc_script("worker1", "net.weighted", x).sum()});  // 2 * x * w * x, w = 3
  EXPECT_TRUE(context.gradients().of(x).equal(at::ones({2}) * 24));
}

}  // namespace
}  // namespace caftan::test::script_rows_test

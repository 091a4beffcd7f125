// The pictures of docs/protocols/dist_autograd.md, compared with what these runs send. A test fails when the page has
// another picture, and prints the picture that the page should have.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "autograd_roles.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "message_chart.hpp"

namespace caftan::test::autograd_charts_test {
namespace {

using autograd::Context;
using Names = std::vector<std::string>;

/// Messages that no rule orders stand in the order of this seed, which is easy to read.
constexpr std::uint64_t kSeed = 41;

class Charts : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const kind = std::getenv("CAFTAN_TEST_CHANNEL");
    if (kind && std::string(kind) == "tcp") GTEST_SKIP() << "the kernel orders what comes over several TCP connections";
  }
  /// @param title  the line before the picture
  static void expect_in_page(const std::string& title, const MessageChart& chart) {
    std::ifstream file(CAFTAN_DOCS "/protocols/dist_autograd.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = page.find(title + "\n\n```mermaid\n");
    ASSERT_NE(at, std::string::npos) << "no picture: " << title << "\n\n" << chart.markdown();
    const std::size_t begin = at + title.size() + 2;
    const std::size_t end = page.find("```\n", begin + 3) + 4;
    EXPECT_EQ(page.substr(begin, end - begin), chart.markdown());
  }
};

TEST_F(Charts, OneHop) {
  const Names names{"worker0", "worker1"};
  testing::Cluster cluster(kSeed, names, &make_autograd_registry);
  MessageChart chart(cluster.network(), names);
  const at::Tensor x = leaf({1, 2});
  {
    const Context context(cluster[0]);
    const at::Tensor y = cluster[0].rpc_sync<&square>("worker1", x);
    chart.note(0, "backward");
    context.backward({y.sum()});
    chart.note(0, "backward returns, the context ends");
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4}));
  }
  cluster.run_until_idle();
  expect_in_page("One call:", chart);
}

TEST_F(Charts, AChainOfThreeCalls) {
  const Names names{"worker0", "worker1", "worker2", "worker3"};
  testing::Cluster cluster(kSeed, names, &make_autograd_registry);
  MessageChart chart(cluster.network(), names);
  const at::Tensor x = leaf({1, 2});
  {
    const Context context(cluster[0]);
    const at::Tensor y = cluster[0].rpc_sync<&relay>("worker1", Names{"worker2", "worker3"}, x);
    chart.note(0, "backward");
    context.backward({y.sum()});
    chart.note(0, "backward returns, the context ends");
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{18, 36}));
  }
  cluster.run_until_idle();
  expect_in_page("A chain of three calls, each made by the one before:", chart);
}

TEST_F(Charts, AFanOutWithAnUnusedBranch) {
  const Names names{"worker0", "worker1", "worker2"};
  testing::Cluster cluster(kSeed, names, &make_autograd_registry);
  MessageChart chart(cluster.network(), names);
  const at::Tensor x = leaf({1, 2});
  {
    const Context context(cluster[0]);
    const at::Tensor y = cluster[0].rpc_sync<&square>("worker1", x);
    const at::Tensor z = cluster[0].rpc_sync<&square>("worker2", x);
    const at::Tensor unused = cluster[0].rpc_sync<&square>("worker2", z);
    EXPECT_TRUE(unused.requires_grad());
    chart.note(0, "backward from m2 and m4, not m6");
    context.backward({(y + z).sum()});
    chart.note(0, "backward returns, the context ends");
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{4, 8}));
  }
  cluster.run_until_idle();
  expect_in_page("Two workers at once, and a third call whose result is never used:", chart);
}

}  // namespace
}  // namespace caftan::test::autograd_charts_test

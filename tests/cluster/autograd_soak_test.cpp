// Thousands of contexts over two workers and a socket: each is made, used for one recorded call and one backward pass,
// and released. Neither worker may keep anything of a released context.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "autograd/autograd_host.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "channel_kind.hpp"
#include "folder.hpp"
#include "soak_size.hpp"
#include "worker/worker_core.hpp"

namespace caftan::test::autograd_soak_test {
namespace {

const std::size_t kContexts = soak_size("CAFTAN_CONTEXTS", 2000);
// After this many contexts, buffers, pools and the allocator have taken what they keep.
const std::size_t kFirst = kContexts / 10;
// Bytes for each context; memory that grows once weighs more on fewer contexts.
const double kMayGrow = kContexts >= 100'000 ? 20 : 64;
constexpr int kMostCalls = 10'000;  // until the ends of contexts have been carried out

/// A module with one weight.
class Scale {
 public:
  at::Tensor forward(const at::Tensor& x) const { return weight_ * x; }

 private:
  at::Tensor weight_ = at::ones({16}).requires_grad_();
};

Registry make_registry() {
  Registry registry;
  registry.add<Scale>("Scale").constructor<>().method<&Scale::forward>("forward");
  return registry;
}

/// What one worker holds.
struct Held {
  actors::AutogradCounts contexts;
  std::size_t exports = 0, proxies = 0;
  std::size_t owned = 0, used = 0;  // references
  bool operator==(const Held&) const = default;
  friend void PrintTo(const Held& held, std::ostream* out) {
    const auto& c = held.contexts;
    *out << c.contexts << " contexts, " << c.open << " open, " << c.remembered << " remembered, " << c.places
         << " places, " << c.functions << " function actors, " << c.jobs << " jobs, " << held.exports << " exports, "
         << held.proxies << " proxies, " << held.owned << " owned and " << held.used << " used references";
  }
};

class ContextSoak : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string name : {"a", "b"}) {
      WorkerOptions options;
      options.name = name;
      options.world = {{"a", test::path_scheme() + (folder_ / "a")}, {"b", test::path_scheme() + (folder_ / "b")}};
      options.secret = "shared by this test";
      options.executor =
          std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
    scale_ = workers_[0]->remote<Scale>("b");
  }

  actors::WorkerCore& core(std::size_t worker) { return actors::WorkerCore::of(*workers_[worker]); }

  Held held(std::size_t worker) {
    Held held;
    held.contexts = core(worker).autograd_host().counts();
    const Peer other = core(worker).find_peer(WorkerId{static_cast<std::uint32_t>(1 - worker)}).value();
    const auto session = static_cast<const actors::PeerState&>(*other.record()).session();
    held.exports = remote::ActorExchange::of(*session).exports();
    held.proxies = remote::ActorExchange::of(*session).proxies();
    const WorkerCounters counters = workers_[worker]->counters();
    held.owned = counters.owner_rrefs;
    held.used = counters.user_rrefs;
    return held;
  }

  void watch(std::weak_ptr<const void> object) { alive_.push_back(std::move(object)); }
  void watch(const std::shared_ptr<autograd::ContextRecord>& record) {
    watch(std::weak_ptr<const void>(record));
    for (const AutogradMessageId& message : record->sends()) watch(record->send_function(message));
  }
  std::size_t alive() {
    std::erase_if(alive_, [](const auto& object) { return object.expired(); });
    return alive_.size();
  }

  void use_one_context() {
    const autograd::Context context(*workers_[0]);
    const at::Tensor y = scale_.rpc_sync<&Scale::forward>(x_);
    watch(context.record());
    watch(y.grad_fn());
    const Peer creator = core(1).find_peer(workers_[0]->id()).value();
    watch(core(1).autograd_host().enter(context.id(), creator).value());
    context.backward({y.sum()});
    ASSERT_TRUE(context.gradients().of(x_).defined());
  }

  /// Waits until all contexts are released at both workers. A Release gets no reply, so this worker makes calls until
  /// both show the counts of `expected`.
  void expect_soon(const std::vector<Held>& expected) {
    for (int call = 0; call < kMostCalls; ++call) {
      if (alive() == 0 && held(0) == expected[0] && held(1) == expected[1]) return;
      scale_.rpc_sync<&Scale::forward>(x_);
    }
    EXPECT_EQ(alive(), 0U);
    EXPECT_EQ(held(0), expected[0]);
    EXPECT_EQ(held(1), expected[1]);
  }

  const Folder folder_;
  std::vector<std::unique_ptr<Worker>> workers_;
  RRef<Scale> scale_;
  const at::Tensor x_ = at::ones({16}).requires_grad_();
  std::vector<std::weak_ptr<const void>> alive_;  // the records of contexts that were alive at the last look
};

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double live_bytes() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

TEST_F(ContextSoak, DA13_NothingIsLeftOfReleasedContexts) {
  use_one_context();  // from now on each worker keeps one watermark for the life of the creator
  // A Release gets no reply: calls are made until both workers have carried it out.
  for (int call = 0; call < kMostCalls && alive() != 0; ++call) scale_.rpc_sync<&Scale::forward>(x_);
  for (int call = 0; call < 100; ++call) scale_.rpc_sync<&Scale::forward>(x_);
  ASSERT_EQ(alive(), 0U);
  const std::vector<Held> start = {held(0), held(1)};
  EXPECT_EQ(start[0].contexts.contexts + start[1].contexts.contexts, 0U);
  double resident = 0, live = 0;
  for (std::size_t i = 0; i < kContexts; ++i) {
    if (i == kFirst) {
      expect_soon(start);
      resident = resident_bytes();
      live = live_bytes();
    }
    use_one_context();
    if (i % 64 == 0) alive();
  }
  expect_soon(start);
  const auto later = static_cast<double>(kContexts - kFirst);
  resident = (resident_bytes() - resident) / later;
  live = (live_bytes() - live) / later;
  std::printf("%zu contexts: growth of each after the first %zu: %.2f B resident, %.2f B allocated\n", kContexts,
              kFirst, resident, live);
#ifndef __SANITIZE_ADDRESS__  // whose allocator has neither figure
  EXPECT_LE(live, kMayGrow);
  if (kContexts >= 100'000) {
    EXPECT_LE(resident, kMayGrow);  // resident memory is counted in pages, too coarse for fewer contexts
  }
#endif
}

}  // namespace
}  // namespace caftan::test::autograd_soak_test

// Grad mode travels with a call (CALL-17): between workers, on their frames, and to peers that do not know the section.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "autograd_roles.hpp"
#include "by_hand.hpp"
#include "caftan/autograd/rref_backward.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"

namespace caftan::test::grad_mode_test {
namespace {

using autograd::Context;
using wire::FrameKind;
using wire::SectionType;

using Modes = std::vector<int>;

bool records() { return at::GradMode::is_enabled(); }
bool records_briefly() { return at::GradMode::is_enabled(); }
at::Tensor weighted(const at::Tensor& x) { return x * leaf({2, 3}); }
/// Returns the grad mode at this worker before a call to `whom`, in the called function, and at this worker after the
/// call.
Modes look_around(Worker& worker, const std::string& whom) {
  const bool before = records();
  const bool there = worker.rpc_sync<&records>(whom);
  return {before, there, records()};
}

class Part {
 public:
  Part() : made_recording_(records()) {}
  bool made_recording() const { return made_recording_; }
  Modes look(Worker& worker, const std::string& whom) const { return look_around(worker, whom); }
  bool is_recording() const { return records(); }
  at::Tensor forward(const at::Tensor& x) const { return weight_ * x; }
  at::Tensor weight() const { return weight_; }
  Future<at::Tensor> forward_later(Worker& worker, const std::string& whom, const at::Tensor& x) const {
    return worker.rpc_async<&square>(whom, x).then([this](Result<at::Tensor> y) { return weight_ * *y; });
  }
  Future<at::Tensor> weight_later(Worker& worker, const std::string& whom) const {
    return worker.rpc_async<&records>(whom).then([this](Result<bool>) { return weight_; });
  }

 private:
  const bool made_recording_;
  const at::Tensor weight_ = leaf({2, 3});
};

Registry make_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&records>("records");
  registry.add<&records_briefly>("records_briefly", brief);
  registry.add<&weighted>("weighted");
  registry.add<&look_around>("look_around");
  registry.add<Part>("Part")
      .constructor<>()
      .method<&Part::made_recording>("made_recording")
      .method<&Part::look>("look")
      .concurrent<&Part::is_recording>("is_recording")
      .method<&Part::forward>("forward_part")
      .method<&Part::weight>("weight_of_part")
      .method<&Part::forward_later>("forward_later")
      .method<&Part::weight_later>("weight_later");
  return registry;
}

class GradMode : public AutogradCluster {
 protected:
  GradMode() : AutogradCluster({"worker0", "worker1", "worker2"}, make_registry) {}
  Worker& here_ = (*this)[0];
};
INSTANTIATE_TEST_SUITE_P(Seeds, GradMode, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(GradMode, CALL17_AFunctionRunsInThatOfItsCaller) {
  const at::Tensor x = at::ones({2}, at::kDouble);
  for (const std::string to : {"worker1", "worker0"}) {
    EXPECT_TRUE(here_.rpc_sync<&records>(to));
    EXPECT_TRUE(here_.rpc_sync<&records_briefly>(to));
    EXPECT_TRUE(here_.rpc_sync<&weighted>(to, x).requires_grad());
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(here_.rpc_sync<&records>(to));
    EXPECT_FALSE(here_.rpc_sync<&records_briefly>(to));
    EXPECT_FALSE(here_.rpc_sync<&weighted>(to, x).requires_grad());
  }
  EXPECT_TRUE(here_.rpc_sync<&records>("worker1"));
}

TEST_P(GradMode, CALL17_NestedCallsInheritItAndCallsBesideThemDoNot) {
  std::vector<Future<Modes>> off, on;
  for (int i = 0; i < 5; ++i) {
    on.push_back(here_.rpc_async<&look_around>("worker1", "worker2"));
    const at::NoGradGuard no_grad;
    off.push_back(here_.rpc_async<&look_around>("worker1", "worker2"));
    off.push_back(here_.rpc_async<&look_around>("worker1", "worker1"));
  }
  for (Future<Modes>& modes : off) EXPECT_EQ(modes.get(), (Modes{0, 0, 0}));
  for (Future<Modes>& modes : on) EXPECT_EQ(modes.get(), (Modes{1, 1, 1}));
}

TEST_P(GradMode, CALL17_MethodsOfOneObjectHaveEachTheirOwn) {
  const RRef<Part> part = here_.remote<Part>("worker1");
  std::vector<Future<Modes>> off, on;
  std::vector<Future<bool>> beside;
  for (int i = 0; i < 5; ++i) {
    on.push_back(part.rpc_async<&Part::look>("worker2"));
    beside.push_back(part.rpc_async<&Part::is_recording>());
    const at::NoGradGuard no_grad;
    off.push_back(part.rpc_async<&Part::look>("worker2"));
  }
  for (Future<Modes>& modes : off) EXPECT_EQ(modes.get(), (Modes{0, 0, 0}));
  for (Future<Modes>& modes : on) EXPECT_EQ(modes.get(), (Modes{1, 1, 1}));
  for (Future<bool>& is_recording : beside) EXPECT_TRUE(is_recording.get());
}

TEST_P(GradMode, CALL17_WhatIsCreatedRunsInItAndFetchesAreTheSameInEither) {
  const at::Tensor x = leaf({1, 1});
  const RRef<Part> recording = here_.remote<Part>("worker1");
  EXPECT_TRUE(recording.rpc_sync<&Part::made_recording>());
  const at::NoGradGuard no_grad;
  const RRef<Part> part = here_.remote<Part>("worker1");
  EXPECT_FALSE(part.rpc_sync<&Part::made_recording>());
  EXPECT_FALSE(here_.remote<&weighted>("worker1", x).to_here().requires_grad());
  EXPECT_FALSE(part.remote<&Part::forward>(x).to_here().requires_grad());
  EXPECT_FALSE(here_.rpc_op("worker1", "aten::neg", x).requires_grad());
  EXPECT_FALSE(here_.remote_op("worker1", "aten::neg", x).to_here().requires_grad());
  const Context context(here_);
  const RRef<at::Tensor> weight = part.remote<&Part::weight>();
  EXPECT_TRUE(weight.to_here().requires_grad());
  EXPECT_EQ((*this)[1].autograd_contexts().at(0).sent, 1U);
}

TEST_P(GradMode, CALL17_DA18_InAContextNothingIsRecordedAtEitherSide) {
  const at::Tensor x = leaf({1, 1});
  const RRef<Part> part = here_.remote<Part>("worker1");
  const auto call_all = [&] {
    return std::vector<at::Tensor>{part.rpc_sync<&Part::forward>(x), part.rpc_sync<&Part::weight>(),
                                   part.rpc_sync<&Part::forward_later>("worker2", x),
                                   part.rpc_sync<&Part::weight_later>("worker2"),
                                   here_.rpc_sync<&weighted>("worker1", x)};
  };
  {
    const Context context(here_);
    const at::NoGradGuard no_grad;
    for (const at::Tensor& result : call_all()) EXPECT_FALSE(result.requires_grad());
    for (std::size_t worker = 0; worker < 3; ++worker) {
      const auto contexts = (*this)[worker].autograd_contexts();
      ASSERT_EQ(contexts.size(), 1U) << "the calls belong to the context all the same";
      EXPECT_EQ(contexts[0].sent + contexts[0].received, 0U) << "worker" << worker;
    }
  }
  expect_no_contexts();
  const Context context(here_);
  for (const at::Tensor& result : call_all()) EXPECT_TRUE(result.requires_grad());
  EXPECT_EQ((*this)[1].autograd_contexts().at(0).sent, 6U) << "five results, and what forward_later asks for";
}

TEST_P(GradMode, CALL17_APassAndWhatItNeedsAreTheSameInEither) {
  const at::Tensor x = leaf({1, 1});
  const Context context(here_);
  const at::Tensor loss = here_.rpc_sync<&square>("worker1", x).sum();
  const RRef<at::Tensor> there = here_.remote<&square>("worker1", x * 2);
  const RRef<at::Tensor> root = here_.remote<&add_tensors>("worker1", there.to_here().sum(), loss);
  const at::NoGradGuard no_grad;
  autograd::backward(context, root);
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{10, 10}));
}

// ---- on the wire

/// Returns the types of the sections of a frame.
std::vector<SectionType> types_of(wire::ByteView sections) {
  std::vector<SectionType> types;
  wire::SectionReader reader(sections);
  for (auto section = reader.next().value(); section; section = reader.next().value()) types.push_back(section->type);
  return types;
}

TEST_P(GradMode, CALL17_ADR8_OnlyACallUnderNoGradSaysSo) {
  wire::Bytes sections;
  net_.link("worker0", "worker1").set_filter([&](const testing::Frame& frame) {
    const auto of_frame = frame.payload().first(frame.header.sections_size);
    if (frame.header.kind == FrameKind::call) sections.assign(of_frame.begin(), of_frame.end());
    return true;
  });
  here_.rpc_sync<&records>("worker1");
  EXPECT_TRUE(sections.empty());
  const at::NoGradGuard no_grad;
  here_.rpc_sync<&records>("worker1");
  const wire::Bytes golden{std::byte{8}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1},
                           std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}};
  EXPECT_EQ(sections, golden);
}

TEST_P(GradMode, CALL17_AFetchSaysNothing) {
  std::vector<SectionType> types;
  net_.link("worker0", "worker1").set_filter([&](const testing::Frame& frame) {
    if (frame.header.kind == FrameKind::fetch) types = types_of(frame.payload().first(frame.header.sections_size));
    return true;
  });
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(here_.remote<&records>("worker1").to_here());
  EXPECT_EQ(types, (std::vector<SectionType>{SectionType::target}));
}

TEST_P(GradMode, CALL17_AnythingButOffIsMalformed) {
  testing::Link& tap = net_.link("worker0", "worker1");
  for (const std::vector<int>& content : {std::vector<int>{}, {1}, {0, 0}, {255}}) {
    tap.set_filter([&](const testing::Frame& frame) {
      if (frame.header.kind != FrameKind::call && frame.header.kind != FrameKind::create) return true;
      wire::FrameHeader header = frame.header;
      wire::Bytes payload(frame.payload().begin(), frame.payload().end());
      wire::Bytes sections(payload.begin(), payload.begin() + header.sections_size);
      wire::Bytes bytes;
      for (const int byte : content) bytes.push_back(static_cast<std::byte>(byte));
      wire::append_section(sections, SectionType::grad_mode, 0, bytes);
      wire::Bytes changed(wire::kFrameHeaderSize);
      wire::append(changed, sections);
      wire::append(changed, wire::ByteView(payload).subspan(header.sections_size));
      header.sections_size = static_cast<std::uint32_t>(sections.size());
      wire::encode_header(header, changed.data());
      tap.inject(changed);
      return false;
    });
    EXPECT_EQ(here_.try_rpc_sync<&records>("worker1").error().code(), Errc::malformed_payload);
    EXPECT_EQ(here_.try_rpc_sync<&records_briefly>("worker1").error().code(), Errc::malformed_payload);
    EXPECT_EQ(here_.remote<&records>("worker1").try_to_here().error().code(), Errc::malformed_payload);
    tap.set_filter(nullptr);
    EXPECT_TRUE(here_.rpc_sync<&records>("worker1")) << "the session goes on";
  }
}

/// Makes a nested call under no_grad to a peer whose hello has these features, and returns the types of the call's
/// sections.
std::vector<SectionType> sections_for(std::uint64_t features) {
  const Folder folder;
  std::mutex mutex;
  std::condition_variable logged;
  bool connected = false;
  WorkerOptions options;
  options.name = "a";
  options.world = {{"a", "unix:" + (folder / "a")}, {"b", ""}};
  options.secret = "shared by this test";
  options.log = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    connected = connected || line.starts_with("connected with b");
    logged.notify_all();
  };
  const auto a = Worker::launch(std::move(options), make_registry()).value();
  ByHand b(a->address(), features);
  transport::Accepted session = b.connect(1).value();
  {
    std::unique_lock lock(mutex);
    logged.wait(lock, [&] { return connected; });
  }
  Ambient deep;
  deep.depth = 2;
  const AmbientSwap swap(&deep);
  const at::NoGradGuard no_grad;
  Future<bool> answer = a->rpc_async<&records>("b");
  const wire::Bytes sections = read_sections(session, FrameKind::call);
  answer.forget();
  session.channel->close();
  return types_of(sections);
}

TEST(GradModeOfPeers, CALL17_ADR8_WhoDoesNotKnowASectionIsCalledWithoutIt) {
  using Types = std::vector<SectionType>;
  EXPECT_EQ(sections_for(0), Types{});
  EXPECT_EQ(sections_for(net::kKnowsErrorKinds), Types{});
  EXPECT_EQ(sections_for(net::kKnowsGradMode), Types{SectionType::grad_mode});
  EXPECT_EQ(sections_for(net::kKnowsDepth), Types{SectionType::depth});
  EXPECT_EQ(sections_for(net::kKnowsGradMode | net::kKnowsDepth), (Types{SectionType::depth, SectionType::grad_mode}));
}

// ---- on threads

TEST(GradModeOnThreads, CALL17_OneRunnerServesCallsOfEither) {
  const auto executor =
      std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
  const auto network = std::make_shared<LocalNetwork>();
  std::vector<std::unique_ptr<Worker>> workers;
  for (const char* name : {"worker0", "worker1", "worker2"}) {
    WorkerOptions options;
    options.name = name;
    options.world = {{"worker0", ""}, {"worker1", ""}, {"worker2", ""}};
    options.executor = executor;
    options.network = network;
    workers.push_back(Worker::launch(std::move(options), make_registry()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  const RRef<Part> part = workers[0]->remote<Part>("worker1");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (const bool on : {true, false, true, false}) {
    threads.emplace_back([&, on] {
      const at::AutoGradMode mode(on);
      const Modes expected{on, on, on};
      for (int i = 0; i < 100; ++i) {
        if (workers[0]->rpc_sync<&look_around>("worker1", "worker2") != expected) ++wrong;
        if (part.rpc_sync<&Part::look>("worker0") != expected) ++wrong;
        if (workers[0]->rpc_sync<&records_briefly>("worker1") != on) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace caftan::test::grad_mode_test

// The scenarios of `./caftan bench scale` with two processes over a Unix socket: many references, open calls and
// autograd contexts between a worker that makes them, the user, and a worker that serves, the owner.
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>

#include <memory>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/tensor/tensor.hpp"
#include "folder.hpp"
#include "peer_process.hpp"
#include "scale.hpp"
#include "sent_messages.hpp"

namespace caftan::bench {
namespace {

constexpr auto kPoll = std::chrono::milliseconds{5};
constexpr const char* kUser = "user";
constexpr const char* kOwner = "owner";

struct Usage {
  Memory memory;
  std::uint64_t messages = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& memory& messages;
  }
};

Usage usage_of(Worker& worker) { return {memory_here(), sent_messages(worker)}; }
std::uint64_t owned_by(Worker& worker) { return worker.counters().owner_rrefs; }
std::uint64_t contexts_of(Worker& worker) { return worker.autograd_contexts().size(); }
int one() { return 1; }
Tensor echo(Tensor tensor) { return tensor; }

/// Keeps calls open.
class Holder {
 public:
  Future<int> hold() { return open_.emplace_back().future(); }
  std::uint64_t held() const { return open_.size(); }
  void reply_to_all() {
    for (Promise<int>& one : std::exchange(open_, {})) one.set(1);
  }

 private:
  std::vector<Promise<int>> open_;
};

Registry make_registry() {
  Registry registry;
  registry.add<&usage_of>("scale.usage");
  registry.add<&owned_by>("scale.owned");
  registry.add<&contexts_of>("scale.contexts");
  registry.add<&one>("scale.one");
  registry.add<&echo>("scale.echo");
  registry.add<Holder>("scale.holder")
      .constructor<>()
      .method<&Holder::hold>("hold")
      .method<&Holder::held>("held")
      .method<&Holder::reply_to_all>("reply_to_all");
  return registry;
}

/// The two workers: the user in this process, the owner in one that is forked.
class Pair {
 public:
  explicit Pair(net::Limits limits = {})
      : limits_(limits),
        owner_([this](const ParentLink& parent) {
          const auto worker = start(kOwner);
          parent.wait_for_end();
          worker->stop();
          return 0;
        }),
        user_(start(kUser)),
        rig_("", {owner_.pid()}),
        meter({kUser, kOwner}, [this] { return read(); }) {}
  ~Pair() { user_->stop(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  Worker& user() { return *user_; }
  /// Asks the owner something that is no part of what is measured.
  template <auto F>
  auto ask() {
    meter.leave_out(2);
    return user_->rpc_sync<F>(kOwner);
  }

 private:
  std::unique_ptr<Worker> start(const char* name) const {
    WorkerOptions options;
    options.name = name;
    for (const char* member : {kUser, kOwner}) options.world.push_back({member, "unix:" + (folder_ / member)});
    options.secret = "benchmark";
    options.limits = limits_;
    options.rpc_timeout = std::chrono::minutes(10);
    return value_or_fail(Worker::start(std::move(options), make_registry()), name);
  }

  Reading read() {
    Reading reading;
    const std::uint64_t sent_here = sent_messages(*user_);
    const auto there = user_->rpc_sync<&usage_of>(kOwner);
    // Each reading before this one was a call and its reply.
    reading.messages = sent_here + there.messages - 2 * readings_++;
    reading.memory = {memory_here(), there.memory};
    const CpuTimes cpu = rig_.cpu_times();
    reading.cpu = cpu.own + cpu.peer;
    reading.time = std::chrono::steady_clock::now();
    return reading;
  }

  const net::Limits limits_;
  const test::Folder folder_;
  PeerProcess owner_;  // forked before this process has threads
  const std::unique_ptr<Worker> user_;
  const Rig rig_;
  std::uint64_t readings_ = 0;

 public:
  Meter meter;
};

/// Calls `use` with up to `count` places that are spread evenly over `size`.
template <class Use>
std::size_t for_some(std::size_t size, std::size_t count, const Use& use) {
  count = std::min(size, count);
  for (std::size_t i = 0; i < count; ++i) use(i * size / count);
  return count;
}

}  // namespace

void scale_references(std::size_t references) {
  constexpr std::size_t kFetches = 2000;
  Pair pair;
  std::vector<RRef<int>> held;
  held.reserve(references);
  pair.meter.part("a reference made and confirmed", references, {}, [&] {
    Progress progress("references made", references);
    while (held.size() < references) {
      held.push_back(pair.user().remote<&one>(kOwner));
      progress.at(held.size());
    }
    std::size_t confirmed = 0;
    wait_until("the owner's confirmation of all references", [&] {
      while (confirmed < references && held[confirmed].confirmed_by_owner()) ++confirmed;
      return confirmed == references;
    });
  });
  pair.meter.part("a fetch beside them", std::min(references, kFetches), {.memory = false},
                  [&] { for_some(references, kFetches, [&](std::size_t i) { held[i].to_here(); }); });
  pair.meter.part("its end", references, {.memory = false}, [&] {
    held.clear();
    wait_until(
        "the end of all references",
        [&] { return pair.user().counters().user_rrefs == 0 && pair.ask<&owned_by>() == 0; }, kPoll);
  });
}

void scale_calls(std::size_t open_calls) {
  constexpr std::size_t kSmallCalls = 2000;
  constexpr std::size_t kCancelled = 1000;
  net::Limits limits;
  limits.pending_calls = open_calls + kCancelled + 100;
  limits.send_queue = std::uint64_t{limits.pending_calls} * 8192;  // each takes 4 KiB for its reply, and its own bytes
  Pair pair(limits);
  const auto holder = pair.user().remote<Holder>(kOwner);
  holder.rpc_sync<&Holder::held>();
  // A call may overtake the last ones.
  const auto wait_for_owner = [&](std::uint64_t calls) {
    wait_until(
        "the calls' way to the owner",
        [&] {
          pair.meter.leave_out(2);
          return holder.rpc_sync<&Holder::held>() == calls;
        },
        kPoll);
  };
  std::vector<Future<int>> open;
  open.reserve(open_calls);
  pair.meter.part("a call opened", open_calls, {}, [&] {
    Progress progress("calls opened", open_calls);
    while (open.size() < open_calls) {
      open.push_back(holder.rpc_async<&Holder::hold>());
      progress.at(open.size());
    }
    wait_for_owner(open_calls);
  });
  pair.meter.part("a small call beside them", kSmallCalls, {.memory = false}, [&] {
    for (std::size_t i = 0; i < kSmallCalls; ++i) pair.user().rpc_sync<&one>(kOwner);
  });
  pair.meter.part("one more opened and given up", kCancelled, {.memory = false}, [&] {
    for (std::size_t i = 0; i < kCancelled; ++i) holder.rpc_async<&Holder::hold>().cancel();
    pair.meter.leave_out(2);
    holder.rpc_sync<&Holder::held>();
  });
  pair.meter.part("its reply", open_calls, {.memory = false}, [&] {
    pair.meter.leave_out(2);
    holder.rpc_sync<&Holder::reply_to_all>();
    wait_all(std::move(open));
  });
}

void scale_contexts(std::size_t contexts) {
  constexpr std::size_t kPasses = 500;
  struct Open {
    autograd::Context context;
    Tensor result;
  };
  Pair pair;
  const Tensor leaf = at::ones({4}).requires_grad_();
  std::vector<Open> open;
  open.reserve(contexts);
  // Contexts of one thread do not nest: each is made in an Ambient of its own, as by the functions of many calls.
  const auto enter = [&](const auto& use) {
    Ambient ambient;
    const AmbientSwap swap(&ambient);
    use(autograd::Context(pair.user()));
  };
  pair.meter.part("a context with one recorded call", contexts, {}, [&] {
    Progress progress("contexts made", contexts);
    while (open.size() < contexts) {
      enter([&](autograd::Context context) {
        Tensor result = pair.user().rpc_sync<&echo>(kOwner, leaf);
        open.push_back({std::move(context), std::move(result)});
      });
      progress.at(open.size());
    }
  });
  pair.meter.part("a hop, forward and backward, beside them", kPasses, {.memory = false}, [&] {
    for (std::size_t i = 0; i < kPasses; ++i) {
      enter(
          [&](const autograd::Context& context) { context.backward(pair.user().rpc_sync<&echo>(kOwner, leaf).sum()); });
    }
  });
  pair.meter.part("its release", contexts, {.memory = false}, [&] {
    open.clear();
    // A list of many contexts is dear: it is made only once no more messages are sent.
    std::uint64_t before = 0;
    wait_until(
        "the release of all contexts",
        [&] {
          const std::uint64_t sent = sent_messages(pair.user());
          const bool is_quiet = std::exchange(before, sent) == sent;
          return is_quiet && pair.user().autograd_contexts().empty() && pair.ask<&contexts_of>() == 0;
        },
        kPoll);
  });
}

}  // namespace caftan::bench

// Caftan through its public API with default settings: a worker that calls and a worker that serves, in two processes
// over a socket, or in one process over loopback.
//
//   caftan_bench shm | unix | tcp | tcp+tls | ucx | loopback
//   caftan_bench shm off    cluster.spin = "off": threads that wait sleep
//   caftan_bench tcp ADDRESS NAMESPACE   to a network namespace from which this one is reached at ADDRESS (distant.py)
#include <ATen/ops/ones.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/tensor/tensor.hpp"
#include "caftan/transport/internal/spin_budget.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "measure.hpp"
#include "peer_process.hpp"

/// callgrind begins a new profile where this function is entered (instructions.py), so it is not inlined.
extern "C" __attribute__((noinline)) void caftan_bench_mark() { asm volatile(""); }

namespace caftan::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

Tensor echo(Tensor tensor) { return tensor; }
Tensor echo_brief(Tensor tensor) { return tensor; }
Tensor add_one(const Tensor& tensor) { return tensor + 1; }
int echo_int(int value) { return value; }
std::atomic<std::uint64_t> noted{0};  // calls of note_int at this worker
void note_int(int) { noted.fetch_add(1, std::memory_order_relaxed); }
std::uint64_t read_noted() { return noted.load(); }
void mark() { caftan_bench_mark(); }

/// An object at the serving worker.
class Echoer {
 public:
  Tensor echo(Tensor tensor) { return tensor; }
  /// Returns a future that gets no value: it stays open as long as this object lives.
  Future<int> hold() { return held_.emplace_back().future(); }

 private:
  std::vector<Promise<int>> held_;
};

Registry make_registry() {
  Registry registry;
  registry.add<&echo>("bench.echo");
  registry.add<&echo_brief>("bench.echo_brief", brief);
  registry.add<&add_one>("bench.add_one");
  registry.add<&echo_int>("bench.echo_int");
  registry.add<&note_int>("bench.note_int");
  registry.add<&read_noted>("bench.read_noted");
  registry.add<&mark>("bench.mark");
  registry.add<&live_bytes>("bench.live_bytes");
  registry.add<&resident_bytes>("bench.resident_bytes");
  registry.add<Echoer>("bench.echoer").constructor<>().method<&Echoer::echo>("echo").method<&Echoer::hold>("hold");
  return registry;
}

template <class T>
T value_or_exit(Result<T> result, const char* what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "caftan_bench: %s: %s\n", what, result.error().message().c_str());
  std::exit(1);
}

using Executor = std::shared_ptr<transport::ThreadedExecutor>;

/// An executor as that of a worker that two of this host have, one that counts its spins.
Executor make_executor(bool spins) {
  transport::SpinOptions spin;
  if (spins) spin = transport::spin_budget(transport::read_cores(), 2).options;
  return std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.spin = spin});
}

/// @param kind  ends in "+tls" where the connection is encrypted
WorkerOptions make_options(const std::string& name, const std::string& kind, const std::string& caller_at,
                           const std::string& echo_at) {
  WorkerOptions options;
  options.tls.mode = kind.ends_with("+tls") ? TlsOptions::Mode::on : TlsOptions::Mode::off;
  options.name = name;
  options.world = {{"caller", caller_at}, {"echo", echo_at}};
  options.secret = "benchmark";
  return options;
}

/// The measures of one calling worker. `peer` is null when the serving worker lives in this process.
class CaftanBench {
 public:
  CaftanBench(Worker& worker, transport::ThreadedExecutor& executor, const Rig& rig, PeerProcess* peer)
      : worker_(worker), executor_(executor), rig_(rig), peer_(peer), object_(worker.remote<Echoer>("echo")) {}

  std::map<std::string, Measure> measures() {
    std::map<std::string, Measure> all;
    all["sync"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return rig_.sync(request, [&] { worker_.rpc_sync<&echo>("echo", tensor); });
    };
    all["sync_brief"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return rig_.sync(request, [&] { worker_.rpc_sync<&echo_brief>("echo", tensor); });
    };
    all["fresh"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return rig_.sync(request, [&] { worker_.rpc_sync<&add_one>("echo", tensor).sum(); });
    };
    all["sync_int"] = [this](const Request& request) {
      return rig_.sync(request, [&] { worker_.rpc_sync<&echo_int>("echo", 1); });
    };
    all["method"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return rig_.sync(request, [&] { object_.rpc_sync<&Echoer::echo>(tensor); });
    };
    all["remote"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return rig_.sync(request, [&] { worker_.remote<&echo>("echo", tensor).to_here(); });
    };
    all["hop"] = [this](const Request& request) {
      const Tensor leaf = make_tensor(request).requires_grad_();
      return rig_.sync(request, [&] { hop(leaf); });
    };
    all["pipelined"] = [this](const Request& request) { return pipelined<&echo>(request, make_tensor(request)); };
    all["pipelined_brief"] = [this](const Request& request) {
      return pipelined<&echo_brief>(request, make_tensor(request));
    };
    all["pipelined_int"] = [this](const Request& request) { return pipelined<&echo_int>(request, 1); };
    all["count_int"] = [this](const Request& request) {
      return counted(request, [&] { worker_.rpc_sync<&echo_int>("echo", 1); });
    };
    all["count_sync"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return counted(request, [&] { worker_.rpc_sync<&echo>("echo", tensor); });
    };
    all["count_method"] = [this](const Request& request) {
      const Tensor tensor = make_tensor(request);
      return counted(request, [&] { object_.rpc_sync<&Echoer::echo>(tensor); });
    };
    all["count_hop"] = [this](const Request& request) {
      const Tensor leaf = make_tensor(request).requires_grad_();
      return counted(request, [&] { hop(leaf); });
    };
    add_one_way(all);
    all["idle"] = [this](const Request& request) { return rig_.idle(request); };
    if (peer_ != nullptr) {
      all["rrefs"] = [this](const Request& request) { return memory_of_references(request); };
      all["killed"] = [this](const Request&) { return killed_peer(); };
    }
    for (auto& [name, measure] : all) {
      measure = [this, inner = std::move(measure)](const Request& request) { return with_spins(request, inner); };
    }
    return all;
  }

 private:
  /// Adds how many of the caller's waits of this measure spun, and how many of these found what they waited for.
  Line with_spins(const Request& request, const Measure& measure) {
    const auto before = executor_.spins();
    Line line = measure(request);
    const auto after = executor_.spins();
    if (after.spins == before.spins) return line;
    return line.add("spins", after.spins - before.spins).add("spins_won", after.won - before.won);
  }

  /// Adds one-way calls, and calls of the same function.
  void add_one_way(std::map<std::string, Measure>& all) {
    all["pipelined_note"] = [this](const Request& request) { return pipelined<&note_int>(request, 1); };
    all["tell_int"] = [this](const Request& request) { return one_way(request); };
  }

  static Tensor make_tensor(const Request& request) { return at::ones({static_cast<std::int64_t>(request.floats)}); }

  void hop(const Tensor& leaf) {
    const autograd::Context context(worker_);
    context.backward({worker_.rpc_sync<&echo>("echo", leaf).sum()});
    if (context.gradients().of(leaf).defined()) return;
    std::fprintf(stderr, "caftan_bench: the backward pass left no gradient\n");
    std::exit(1);
  }

  /// Makes `request.calls` calls between two marks of both processes, after a warm-up. The mark of the peer is a call
  /// of its own: it belongs to the profile that begins there.
  Line counted(const Request& request, const std::function<void()>& call) {
    constexpr std::size_t kWarmUpCalls = 200;
    for (std::size_t i = 0; i < kWarmUpCalls; ++i) call();
    mark_both();
    for (std::size_t i = 0; i < request.calls; ++i) call();
    mark_both();
    return Line().add("side", side()).add("measure", request.measure).add("calls", std::uint64_t{request.calls});
  }

  void mark_both() {
    worker_.rpc_sync<&mark>("echo");
    mark();
  }

  template <auto F, class Argument>
  Line pipelined(const Request& request, const Argument& argument) {
    using Reply = decltype(worker_.rpc_async<F>("echo", argument));
    std::vector<Reply> open(request.window);
    return rig_.pipelined(
        request, [&](std::size_t slot) { open[slot] = worker_.rpc_async<F>("echo", argument); },
        [&](std::size_t slot) { std::move(open[slot]).get(); });
  }

  /// As pipelined, with one-way calls, which wait where there is no room. The time ends when the peer has run them all.
  Line one_way(const Request& request) {
    const std::uint64_t before = worker_.rpc_sync<&read_noted>("echo");
    std::uint64_t sent = 0;
    std::uint64_t ended = 0;
    return rig_.pipelined(
        request,
        [&](std::size_t) {
          worker_.tell<&note_int>("echo", 1);
          ++sent;
        },
        [&](std::size_t) {
          if (++ended < sent) return;
          while (worker_.rpc_sync<&read_noted>("echo") - before < sent) std::this_thread::yield();
        });
  }

  Line memory_of_references(const Request& request) {
    const auto own_live = live_bytes();
    const auto own_resident = resident_bytes();
    const auto peer_live = worker_.rpc_sync<&live_bytes>("echo");
    const auto peer_resident = worker_.rpc_sync<&resident_bytes>("echo");
    const auto start = SteadyClock::now();
    std::vector<RRef<int>> references;
    references.reserve(request.calls);
    while (references.size() < request.calls && SteadyClock::now() - start < request.time) {
      references.push_back(worker_.remote<&echo_int>("echo", 1));
      // Waits after each batch, so that the memory of many creations in flight does not enter the figure.
      if (references.size() % 100 == 0) references.back().to_here();
    }
    for (const auto& reference : references) reference.to_here();
    const auto made = SteadyClock::now();
    const auto count = static_cast<double>(references.size());
    const auto each = [count](std::int64_t before, std::int64_t after) {
      return static_cast<double>(after - before) / count;
    };
    std::uint64_t confirmed = 0;
    for (const auto& reference : references) confirmed += reference.confirmed_by_owner() ? 1 : 0;
    Line line;
    line.add("side", side()).add("measure", request.measure).add("references", std::uint64_t{references.size()});
    line.add("confirmed", confirmed);
    line.add("make_and_fetch_us", std::chrono::duration<double, std::micro>(made - start).count() / count);
    line.add("own_live_bytes", each(own_live, live_bytes()));
    line.add("own_resident_bytes", each(own_resident, resident_bytes()));
    line.add("peer_live_bytes", each(peer_live, worker_.rpc_sync<&live_bytes>("echo")));
    line.add("peer_resident_bytes", each(peer_resident, worker_.rpc_sync<&resident_bytes>("echo")));
    return line;
  }

  /// Kills the peer, so this must be the last measure.
  Line killed_peer() {
    auto held = object_.rpc_async<&Echoer::hold>();
    // the reply to this call comes behind the held call's frame, so the held call has arrived
    worker_.rpc_sync<&echo_int>("echo", 1);
    SteadyClock::time_point closed;
    std::thread watcher([&] {
      peer_->wait_until_closed();
      closed = SteadyClock::now();
    });
    const auto killed = SteadyClock::now();
    ::kill(peer_->pid(), SIGKILL);
    const auto result = std::move(held).result();
    const auto noticed = SteadyClock::now();
    watcher.join();
    peer_->kill();
    using Milliseconds = std::chrono::duration<double, std::milli>;
    Line line;
    line.add("side", side()).add("measure", std::string("killed"));
    line.add("call_ended_with", result ? std::string("a value") : std::string(to_string(result.error().code())));
    line.add("noticed_ms", std::max(Milliseconds(noticed - closed).count(), 0.0));
    return line.add("since_signal_ms", Milliseconds(noticed - killed).count());
  }

  std::string side() const { return "caftan " + worker_.channel_kind("echo"); }

  Worker& worker_;
  transport::ThreadedExecutor& executor_;
  const Rig& rig_;
  PeerProcess* peer_;
  RRef<Echoer> object_;
};

/// How the two workers of a run meet.
struct Meeting {
  std::string kind;
  bool spins = true;
  std::string host = "127.0.0.1";  ///< the caller's, of kind tcp or ucx
  std::string far_namespace{};     ///< the network namespace of the other worker; empty: that of the caller
};

int serve_until_end(const std::string& kind, bool spins, const ParentLink& parent) {
  const std::string caller_at = parent.hear();
  const std::string echo_at = parent.hear();
  if (echo_at.empty()) return 1;
  auto options = make_options("echo", kind, caller_at, echo_at);
  options.executor = make_executor(spins);
  const auto worker = value_or_exit(Worker::start(std::move(options), make_registry()), "start");
  parent.write_line(worker->channel_kind("caller") == kind ? "ready" : worker->channel_kind("caller"));
  parent.wait_for_end();
  worker->stop();
  return 0;
}

int run_two_processes(const Meeting& meeting) {
  const std::string& kind = meeting.kind;
  const bool spins = meeting.spins;
  PeerProcess peer([&](const ParentLink& parent) {
    if (!meeting.far_namespace.empty() && !enter_namespace(meeting.far_namespace)) {
      std::perror("caftan_bench: namespace");
      return 1;
    }
    return serve_until_end(kind, spins, parent);
  });
  const test::Folder folder;
  const bool is_path = kind == "shm" || kind == "unix";
  const std::string scheme = kind.substr(0, kind.find('+')) + ":";
  const std::string caller_at = scheme + (is_path ? folder / "caller" : meeting.host + ":0");
  const std::string echo_at = scheme + (is_path ? folder / "echo" : "127.0.0.1:0");
  // The system chooses the port, so the peer gets the address once this worker listens.
  const auto executor = make_executor(spins);
  auto options = make_options("caller", kind, caller_at, echo_at);
  options.executor = executor;
  const auto worker = value_or_exit(Worker::launch(std::move(options), make_registry()), "launch");
  peer.write_line(worker->address());
  peer.write_line(echo_at);
  if (const auto ready = worker->wait_until_ready(); !ready) {
    std::fprintf(stderr, "caftan_bench: %s\n", ready.error().message().c_str());
    return 1;
  }
  if (const std::string said = peer.hear(); said != "ready") {
    std::fprintf(stderr, "caftan_bench: asked for %s, the workers chose '%s'\n", kind.c_str(), said.c_str());
    return 1;
  }
  const Rig rig("caftan " + kind + (spins ? "" : " off"), {peer.pid()});
  int code = 0;
  {
    CaftanBench bench(*worker, *executor, rig, &peer);
    code = rig.serve(bench.measures());
  }
  worker->stop();
  return code;
}

int run_loopback() {
  const auto network = std::make_shared<LocalNetwork>();
  const auto executor = make_executor(false);
  std::vector<std::unique_ptr<Worker>> workers;
  for (const char* name : {"caller", "echo"}) {
    auto options = make_options(name, "loopback", "", "");
    options.network = network;
    options.executor = executor;
    workers.push_back(value_or_exit(Worker::launch(std::move(options), make_registry()), "launch"));
  }
  for (const auto& worker : workers) {
    if (const auto ready = worker->wait_until_ready(); !ready) {
      std::fprintf(stderr, "caftan_bench: %s\n", ready.error().message().c_str());
      return 1;
    }
  }
  const Rig rig("caftan loopback", {});
  int code = 0;
  {
    CaftanBench bench(*workers.front(), *executor, rig, nullptr);
    code = rig.serve(bench.measures());
  }
  for (const auto& worker : workers) worker->stop();
  return code;
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", 0);  // as Program::main does
  const std::string kind = argc >= 2 ? argv[1] : "";
  const bool off = argc == 3 && std::string(argv[2]) == "off";
  if (argc == 4 && kind == "tcp") {
    return caftan::bench::run_two_processes({.kind = kind, .host = argv[2], .far_namespace = argv[3]});
  }
  const bool is_known = argc == 2 || (off && kind == "shm");
  constexpr std::array kKinds{"shm", "unix", "tcp", "tcp+tls", "ucx"};
  if (is_known && std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end())
    return caftan::bench::run_two_processes({.kind = kind, .spins = !off});
  if (is_known && kind == "loopback") return caftan::bench::run_loopback();
  std::fprintf(stderr, "usage: caftan_bench shm [off] | unix | tcp [ADDRESS NAMESPACE] | tcp+tls | ucx | loopback\n");
  return 2;
}

// The scenarios of `./caftan bench scale` with many workers: in one process, one in each of many processes, and as many
// connections at one worker. Each worker of a job is connected with every other. What a connection costs is what a job
// costs beyond as many workers that are alone, so that the cost of a worker does not hide that of its connections.
#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "peer_process.hpp"
#include "scale.hpp"
#include "sent_messages.hpp"

namespace caftan::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Workers = std::vector<std::unique_ptr<Worker>>;

constexpr Prints kNoMemory{.memory = false};

int get_one() { return 1; }

Registry make_small_registry() {
  Registry registry;
  registry.add<&get_one>("scale.one");
  return registry;
}

std::string name_of(std::size_t member) { return "worker" + std::to_string(member); }

WorkerOptions options_of(std::size_t member) {
  WorkerOptions options;
  options.name = name_of(member);
  options.secret = "benchmark";
  options.start_timeout = std::chrono::minutes(2);
  return options;
}

std::unique_ptr<Worker> launch(WorkerOptions options) {
  const std::string name = options.name;
  return value_or_fail(Worker::launch(std::move(options), make_small_registry()), name);
}

std::size_t pairs_of(std::size_t members) { return members * (members - 1) / 2; }

/// Does once what a process does only once: the first use of OpenSSL, of pages of the program, of allocators. It runs a
/// job of two workers over a socket.
void warm_up() {
  const test::Folder folder;
  const auto executor = std::make_shared<transport::ThreadedExecutor>();
  Workers workers;
  for (std::size_t i = 0; i < 2; ++i) {
    WorkerOptions options = options_of(i);
    for (std::size_t j = 0; j < 2; ++j) options.world.push_back({name_of(j), "unix:" + (folder / name_of(j))});
    options.executor = executor;
    workers.push_back(launch(std::move(options)));
  }
  for (const auto& worker : workers) value_or_fail(worker->wait_until_ready(), "the first job");
  workers[0]->rpc_sync<&get_one>(name_of(1));
  for (const auto& worker : workers) worker->stop();
}

// ---- one process

Workers start_alone(std::size_t count) {
  const auto executor = std::make_shared<transport::ThreadedExecutor>();
  Workers workers;
  for (std::size_t i = 0; i < count; ++i) {
    WorkerOptions options = options_of(i);
    options.world = {{options.name, ""}};
    options.executor = executor;
    workers.push_back(launch(std::move(options)));
  }
  for (const auto& worker : workers) value_or_fail(worker->wait_until_ready(), "the start of a worker that is alone");
  return workers;
}

Workers start_together(std::size_t count) {
  const auto executor = std::make_shared<transport::ThreadedExecutor>();
  const auto network = std::make_shared<LocalNetwork>();
  std::vector<WorkerAddress> members;
  for (std::size_t i = 0; i < count; ++i) members.push_back({name_of(i), ""});
  Progress progress("workers launched", count);
  Workers workers;
  for (std::size_t i = 0; i < count; ++i) {
    WorkerOptions options = options_of(i);
    options.world = members;
    options.executor = executor;
    options.network = network;
    workers.push_back(launch(std::move(options)));
    progress.at(i);
  }
  for (const auto& worker : workers) value_or_fail(worker->wait_until_ready(), "the start of a job");
  return workers;
}

/// Lets each worker call each one of a higher number.
void call_each_other(const Workers& workers) {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::vector<Future<int>> calls;
    for (std::size_t j = i + 1; j < workers.size(); ++j) calls.push_back(workers[i]->rpc_async<&get_one>(name_of(j)));
    wait_all(std::move(calls));
  }
}

/// What the workers of one process have used.
Reading read_here(const Workers& workers) {
  Reading reading{.time = SteadyClock::now(), .cpu = Rig("", {}).cpu_times().own, .memory = {memory_here()}};
  for (const auto& worker : workers) reading.messages += sent_messages(*worker);
  return reading;
}

/// Returns what was used between two readings, as a reading that begins at zero.
Reading used_between(const Reading& before, const Reading& after) {
  Reading used;
  used.time = SteadyClock::time_point(after.time - before.time);
  used.cpu = after.cpu - before.cpu;
  used.messages = after.messages - before.messages;
  used.memory = {{after.memory[0].live - before.memory[0].live, after.memory[0].resident - before.memory[0].resident}};
  return used;
}

/// A process of the benchmark reports a reading as one line, without the time.
std::string to_line(const Reading& reading) {
  std::ostringstream line;
  line << reading.cpu.count() << ' ' << reading.messages << ' ' << reading.memory[0].live << ' '
       << reading.memory[0].resident;
  return line.str();
}

void add_line(Reading& sum, const std::string& line) {
  std::istringstream words(line);
  std::int64_t cpu = 0;
  std::uint64_t messages = 0;
  Memory memory;
  if (!(words >> cpu >> messages >> memory.live >> memory.resident)) fail_scale("one of the processes has failed");
  sum.cpu += Nanoseconds(cpu);
  sum.messages += messages;
  sum.memory[0].live += memory.live;
  sum.memory[0].resident += memory.resident;
}

/// Prints what a worker costs that is alone, and what a connection of a job costs beyond as many such workers. A
/// connection takes memory with the first message over it, so that one call is part of it.
void print_start(std::size_t workers, const Reading& alone, const Reading& together) {
  const Meter meter({"all"}, nullptr);
  const Reading nothing{.memory = {Memory()}};
  meter.print("a worker alone", workers, {}, nothing, alone);
  meter.print("a connection and a call over it", pairs_of(workers), {}, alone, together);
}

/// Processes that do what their parent orders, and report a reading of their own after each order.
class Crowd {
 public:
  /// What a process does about an order of its parent.
  using Follow = std::function<void(const std::string& order, Workers& workers)>;

  Crowd(std::size_t processes, const std::function<Follow(std::size_t process)>& make) {
    for (std::size_t i = 0; i < processes; ++i) {
      processes_.push_back(std::make_unique<PeerProcess>([&](const ParentLink& parent) {
        const Follow follow = make(i);
        warm_up();
        Workers workers;
        for (std::string order = parent.hear(); !order.empty() && order != "leave"; order = parent.hear()) {
          follow(order, workers);
          parent.write_line(to_line(read_here(workers)));
        }
        return 0;
      }));
    }
  }
  /// A process has the pipes of those that were forked before it, so these would not see that their own are closed.
  ~Crowd() {
    for (const auto& process : processes_) process->write_line("leave");
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// Lets all follow an order at once, and returns the sum of their readings.
  Reading order(const std::string& order) {
    for (const auto& process : processes_) process->write_line(order);
    return sum([](const PeerProcess&) {});
  }
  /// As order, one after the other.
  Reading order_in_turn(const std::string& order) {
    return sum([&](const PeerProcess& process) { process.write_line(order); });
  }

 private:
  Reading sum(const std::function<void(const PeerProcess&)>& before_each) const {
    Reading sum{.memory = {Memory()}};
    for (const auto& process : processes_) {
      before_each(*process);
      add_line(sum, process->hear());
    }
    sum.time = SteadyClock::now();
    return sum;
  }

  std::vector<std::unique_ptr<PeerProcess>> processes_;
};

}  // namespace

void scale_workers(std::size_t workers) {
  const auto follow = [&](const std::string& order, Workers& started) {
    if (order == "alone") started = start_alone(workers);
    if (order == "together") started = start_together(workers);
    if (order == "together" || order == "call") call_each_other(started);
    if (order == "stop") {
      for (const auto& worker : started) worker->stop();
    }
  };
  const auto make = [&](std::size_t) { return follow; };
  // Each job in a process of its own: neither uses memory that the other one has left.
  const auto start = [](Crowd& process, const std::string& how) {
    const Reading before = process.order("look");
    return used_between(before, process.order(how));
  };
  Reading alone;
  {
    Crowd process(1, make);
    alone = start(process, "alone");
  }
  Crowd process(1, make);
  print_start(workers, alone, start(process, "together"));
  Meter meter({"all"}, [&] { return process.order("look"); });
  meter.part("a further call over it", pairs_of(workers), kNoMemory, [&] { process.order("call"); });
  meter.part("its end", pairs_of(workers), kNoMemory, [&] { process.order("stop"); });
}

// ---- a process for each worker

void scale_processes(std::size_t processes) {
  const test::Folder folder;
  const auto make = [&](bool is_together) {
    return [&, is_together](std::size_t process) -> Crowd::Follow {
      WorkerOptions options = options_of(process);
      const auto address_of = [&](std::size_t member) { return "unix:" + (folder / name_of(member)); };
      for (std::size_t i = 0; is_together && i < processes; ++i) options.world.push_back({name_of(i), address_of(i)});
      if (!is_together) options.world = {{options.name, address_of(process)}};
      return [=](const std::string& order, Workers& workers) {
        if (order == "launch") workers.push_back(launch(options));
        if (order == "wait") value_or_fail(workers[0]->wait_until_ready(), "the start of a job");
        if (order == "stop") workers[0]->stop();
        if (order != "call" || !is_together) return;
        std::vector<Future<int>> calls;
        for (std::size_t j = process + 1; j < processes; ++j)
          calls.push_back(workers[0]->rpc_async<&get_one>(name_of(j)));
        wait_all(std::move(calls));
      };
    };
  };
  const auto start = [](Crowd& crowd) {
    const Reading before = crowd.order("look");
    // One after the other: each dials only workers that listen, so that no pause before a second try is measured.
    crowd.order_in_turn("launch");
    crowd.order("wait");
    crowd.order("call");
    return used_between(before, crowd.order("look"));  // a process has replied to the last calls after it was read
  };
  Reading alone;
  {
    Crowd crowd(processes, make(false));
    alone = start(crowd);
  }
  Crowd crowd(processes, make(true));
  print_start(processes, alone, start(crowd));
  Meter meter({"all"}, [&] { return crowd.order("look"); });
  meter.part("a further call over it", pairs_of(processes), kNoMemory, [&] { crowd.order("call"); });
  meter.part("its end", pairs_of(processes), kNoMemory, [&] { crowd.order("stop"); });
}

// ---- many connections at one worker

namespace {

constexpr std::size_t kRounds = 10;

/// The peers of the one worker, in a process of their own. All members of a job are connected with each other once they
/// are all there; so one member never comes, and each peer has one connection only. Its list of members ends with
/// itself, so it does not listen.
int run_peers(const ParentLink& parent, const std::string& address, std::size_t count) {
  constexpr std::size_t kAtOnce = 50;
  const auto executor = std::make_shared<transport::ThreadedExecutor>();
  std::vector<WorkerAddress> members{{name_of(0), address}};
  Workers peers;
  (void)parent.hear();
  Progress progress("peers connected", count);
  for (std::size_t i = 1; i <= count; ++i) {
    members.push_back({name_of(i), ""});
    WorkerOptions options = options_of(i);
    options.world = members;
    options.executor = executor;
    peers.push_back(launch(std::move(options)));
    if (i % kAtOnce != 0 && i != count) continue;
    wait_until("the connections", [&] {
      return std::ranges::all_of(peers, [](const auto& peer) { return !peer->channel_kind(name_of(0)).empty(); });
    });
    progress.at(i);
  }
  parent.write_line("connected");
  (void)parent.hear();
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<Future<int>> calls;
    for (const auto& peer : peers) calls.push_back(peer->rpc_async<&get_one>(name_of(0)));
    wait_all(std::move(calls));
  }
  parent.write_line("called");
  (void)parent.hear();
  for (const auto& peer : peers) peer->stop();
  parent.write_line("stopped");
  parent.wait_for_end();
  return 0;
}

}  // namespace

void scale_connections(std::size_t connections) {
  constexpr std::size_t kQuietSeconds = 2;
  need_descriptors(connections + 100);
  const test::Folder folder;
  const std::string address = "unix:" + (folder / "worker");
  PeerProcess process([&](const ParentLink& parent) { return run_peers(parent, address, connections); });
  warm_up();
  WorkerOptions options = options_of(0);
  options.world = {{options.name, address}};
  // The last one never comes: run_peers.
  for (std::size_t i = 1; i <= connections + 1; ++i) options.world.push_back({name_of(i), ""});
  Workers worker;
  worker.push_back(launch(std::move(options)));

  const auto let_peers = [&](const std::string& order) {
    process.write_line(order);
    if (process.hear().empty()) fail_scale("the process of the peers has failed");
  };
  const auto connected = [&] {
    std::size_t count = 0;
    for (std::size_t i = 1; i <= connections; ++i) count += worker[0]->channel_kind(name_of(i)).empty() ? 0 : 1;
    return count;
  };
  const auto call_all = [&] {
    std::vector<Future<int>> calls;
    for (std::size_t i = 1; i <= connections; ++i) calls.push_back(worker[0]->rpc_async<&get_one>(name_of(i)));
    wait_all(std::move(calls));
  };
  Meter meter({"worker"}, [&] { return read_here(worker); });
  meter.part("a connection and a call over it", connections, {.wall = false}, [&] {
    let_peers("connect");
    wait_until("the connections", [&] { return connected() == connections; });
    call_all();
  });
  meter.part("a further call over it", kRounds * connections, kNoMemory, [&] {
    for (std::size_t round = 0; round < kRounds; ++round) call_all();
  });
  meter.part("a call of a peer", kRounds * connections, kNoMemory, [&] { let_peers("call"); });
  meter.part("a second without a call", kQuietSeconds * connections, {.memory = false, .wall = false},
             [&] { std::this_thread::sleep_for(std::chrono::seconds(kQuietSeconds)); });
  meter.part("its end", connections, {.memory = false, .wall = false}, [&] {
    let_peers("stop");
    wait_until("the end of the connections", [&] { return connected() == 0; });
  });
  worker[0]->stop();
}

}  // namespace caftan::bench

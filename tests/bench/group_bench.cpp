// Group calls: a worker that calls and 16 that serve, each in a process of its own, as a run with `processes` has them.
//
//   group_bench shm | unix
//
// Measures: `row` makes one call after the other to all 16, `broadcast` makes one group call.
#include <ATen/ops/ones.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/rpc/group.hpp"
#include "caftan/transport/internal/spin_budget.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "measure.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

constexpr std::size_t kMembers = 16;

void take(const at::Tensor&) {}

Registry make_registry() {
  Registry registry;
  registry.add<&take>("bench.take");
  return registry;
}

std::string name_of(std::size_t member) { return member == 0 ? "caller" : "worker" + std::to_string(member); }

template <class T>
T value_or_exit(Result<T> result, const char* what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "group_bench: %s: %s\n", what, result.error().message().c_str());
  std::exit(1);
}

std::unique_ptr<Worker> start(const std::string& kind, const std::string& folder, std::size_t member) {
  WorkerOptions options;
  options.name = name_of(member);
  for (std::size_t i = 0; i <= kMembers; ++i) {
    options.world.push_back({name_of(i), kind + ":" + folder + "/" + std::to_string(i)});
  }
  options.secret = "benchmark";
  options.start_timeout = std::chrono::minutes(1);
  transport::ThreadedExecutor::Options executor;
  if (kind == "shm") executor.spin = transport::spin_budget(transport::read_cores(), kMembers + 1).options;
  options.executor = std::make_shared<transport::ThreadedExecutor>(executor);
  return value_or_exit(Worker::start(std::move(options), make_registry()), "start");
}

int run(const std::string& kind) {
  const test::Folder folder;
  const std::string path = folder / "";
  std::vector<std::unique_ptr<PeerProcess>> peers;
  for (std::size_t member = 1; member <= kMembers; ++member) {
    peers.push_back(std::make_unique<PeerProcess>([&, member](const ParentLink& parent) {
      const auto worker = start(kind, path, member);
      (void)parent.hear();  // "leave"; a process also has the pipes of those that were forked before it
      worker->stop();
      return 0;
    }));
  }
  int code = 0;
  {
    const auto worker = start(kind, path, 0);
    std::vector<std::string> names;
    std::vector<Peer> members;
    std::vector<pid_t> pids;
    for (std::size_t member = 1; member <= kMembers; ++member) {
      names.push_back(name_of(member));
      members.push_back(worker->peer(names.back()));
      pids.push_back(peers[member - 1]->pid());
    }
    const WorkerGroup group = worker->group(names);
    const Rig rig("caftan group " + kind, pids);
    std::map<std::string, Measure> measures;
    measures["row"] = [&](const Request& request) {
      const at::Tensor tensor = at::ones({static_cast<std::int64_t>(request.floats)});
      return rig.sync(request, [&] {
        for (const Peer& member : members) worker->rpc_sync<&take>(member, tensor);
      });
    };
    measures["broadcast"] = [&](const Request& request) {
      const at::Tensor tensor = at::ones({static_cast<std::int64_t>(request.floats)});
      return rig.sync(request, [&] { group.broadcast<&take>(tensor).get(); });
    };
    code = rig.serve(measures);
    for (const auto& peer : peers) peer->write_line("leave");
    worker->stop();
  }
  return code;
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const std::string kind = argc == 2 ? argv[1] : "";
  if (kind == "shm" || kind == "unix") return caftan::bench::run(kind);
  std::fprintf(stderr, "usage: group_bench shm | unix\n");
  return 2;
}

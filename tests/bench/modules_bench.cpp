// A module at another worker (nn::RemoteModule) beside an object of the same class behind a reference, through the
// public API with default settings: two processes over a Unix socket. "forward" calls the module, "method" the object;
// both return their argument. "listing" counts the messages in which the caller gets references to the parameters of a
// ResNet-50, "list" times that.
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/tensor/tensor.hpp"
#include "folder.hpp"
#include "measure.hpp"
#include "parameter_server/served_model.hpp"
#include "peer_process.hpp"
#include "sent_messages.hpp"

namespace caftan::bench {
namespace {

using parameter_server::ServedModel;

constexpr const char* kSide = "caftan unix";
constexpr std::int64_t kClasses = 1000;
constexpr std::uint64_t kSeed = 1;

class Echoer {
 public:
  Tensor forward(Tensor tensor) { return tensor; }
};

Registry make_registry() {
  Registry registry;
  registry.add<&sent_messages>("bench.sent_messages");
  registry.add<Echoer>("bench.echoer").constructor<>().method<&Echoer::forward>("forward");
  nn::add_module<Echoer>(registry, "bench.echo_module").constructor<>().method<&Echoer::forward>("forward");
  nn::add_module<ServedModel>(registry, "bench.model")
      .constructor<models::ModelName, std::int64_t, std::uint64_t, std::uint64_t>();
  return registry;
}

class ModulesBench {
 public:
  ModulesBench(Worker& worker, const Rig& rig)
      : worker_(worker),
        rig_(rig),
        object_(worker.remote<Echoer>("owner")),
        module_(worker, "owner"),
        model_(nn::RemoteModule<ServedModel>::try_make<models::ModelName, std::int64_t, std::uint64_t, std::uint64_t>(
                   worker, "owner", models::ModelName::resnet50, kClasses, kSeed, kSeed)
                   .value()) {
    model_.created().get();
  }

  std::map<std::string, Measure> measures() {
    std::map<std::string, Measure> all;
    all["method"] = [this](const Request& request) {
      const Tensor tensor = at::ones({static_cast<std::int64_t>(request.floats)});
      return rig_.sync(request, [&] { object_.rpc_sync<&Echoer::forward>(tensor); });
    };
    all["forward"] = [this](const Request& request) {
      const Tensor tensor = at::ones({static_cast<std::int64_t>(request.floats)});
      return rig_.sync(request, [&] { module_.forward(tensor); });
    };
    all["list"] = [this](const Request& request) { return rig_.sync(request, [&] { model_.parameters(); }); };
    all["listing"] = [this](const Request&) { return listing(); };
    return all;
  }

 private:
  struct Sent {
    std::uint64_t caller = 0;
    std::uint64_t owner = 0;
  };
  struct Listed {
    std::vector<RRef<Tensor>> parameters;
    Sent until_returned;
    Sent until_confirmed;  // until the owner has confirmed all references
  };

  /// The counting is a call and its reply.
  Sent count() const {
    Sent sent;
    sent.caller = sent_messages(worker_);
    sent.owner = worker_.rpc_sync<&sent_messages>("owner");
    return sent;
  }
  static Sent between(const Sent& before, const Sent& after, std::uint64_t countings) {
    return {after.caller - before.caller - countings, after.owner - before.owner - countings};
  }

  Listed list() const {
    Listed listed;
    const Sent before = count();
    listed.parameters = model_.parameters();
    const Sent returned = count();
    const auto is_confirmed = [](const RRef<Tensor>& reference) { return reference.confirmed_by_owner(); };
    while (!std::ranges::all_of(listed.parameters, is_confirmed)) {
    }
    listed.until_returned = between(before, returned, 1);
    listed.until_confirmed = between(before, count(), 2);
    return listed;
  }

  /// The first listing makes the owner's references, the second one finds them. No reference is released meanwhile.
  Line listing() const {
    const Listed first = list();
    const Listed second = list();
    Line line;
    line.add("side", std::string(kSide)).add("measure", std::string("listing"));
    line.add("parameters", std::uint64_t{first.parameters.size()});
    for (const auto& [name, listed] : {std::pair("first", &first), std::pair("again", &second)}) {
      const std::string prefix = std::string(name) + "_";
      line.add(prefix + "from_caller", listed->until_returned.caller);
      line.add(prefix + "from_owner", listed->until_returned.owner);
      line.add(prefix + "until_confirmed", listed->until_confirmed.caller + listed->until_confirmed.owner);
    }
    return line;
  }

  Worker& worker_;
  const Rig& rig_;
  const RRef<Echoer> object_;
  const nn::RemoteModule<Echoer> module_;
  const nn::RemoteModule<ServedModel> model_;
};

Result<std::unique_ptr<Worker>> start(const test::Folder& folder, const std::string& name) {
  WorkerOptions options;
  options.name = name;
  for (const char* member : {"caller", "owner"}) options.world.push_back({member, "unix:" + (folder / member)});
  options.secret = "benchmark";
  return Worker::start(std::move(options), make_registry());
}

int run() {
  const test::Folder folder;
  PeerProcess owner([&](const ParentLink& parent) {
    const auto worker = start(folder, "owner");
    if (!worker) return 1;
    parent.wait_for_end();
    (*worker)->stop();
    return 0;
  });
  const auto worker = start(folder, "caller");
  if (!worker) {
    std::fprintf(stderr, "modules_bench: %s\n", worker.error().message().c_str());
    return 1;
  }
  const Rig rig(kSide, {owner.pid()});
  int code = 0;
  {
    ModulesBench bench(**worker, rig);
    code = rig.serve(bench.measures());
  }
  (*worker)->stop();
  return code;
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char**) {
  if (argc == 1) return caftan::bench::run();
  std::fprintf(stderr, "usage: modules_bench\n");
  return 2;
}

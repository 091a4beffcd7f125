// Distributed autograd through the public API with default settings: one worker that differentiates, and others that
// hold parts of the model, each in a process of its own over Unix sockets. The names of the measures are those of
// reference_autograd.cpp; "_fast" = backward without marks.
//
//   autograd_bench [WORKERS]      (1 by default; 4 for the fan-out)
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd_model.hpp"
#include "caftan/actors/worker.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/tensor/tensor.hpp"
#include "folder.hpp"
#include "measure.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

using autograd::Context;
using autograd::Mode;
using Parameters = std::vector<RRef<Tensor>>;

constexpr int kChain = 8;  // calls of a chain

Tensor echo(Tensor tensor) { return tensor; }

/// Serves one call of a chain that goes on in turns between two workers: each call makes the next one.
Tensor relay(Worker& worker, const std::string& next, int depth, const Tensor& x) {
  return depth == 0 ? x * 2 : worker.rpc_sync<&relay>(next, worker.name(), depth - 1, x);
}

/// Frames of the backward protocol that this worker has sent.
std::uint64_t pass_frames(Worker& worker) {
  std::uint64_t frames = 0;
  for (const SentFrames& sent : worker.traffic()) {
    if (sent.kind.starts_with("autograd.")) frames += sent.frames;
  }
  return frames;
}

std::uint64_t open_contexts(Worker& worker) { return worker.autograd_contexts().size(); }

class Part {
 public:
  Tensor scale(const Tensor& x) const { return part_.scale(x); }
  Tensor embed(const Tensor& characters) const { return part_.embed(characters); }
  Tensor decode(const Tensor& hidden) const { return part_.decode(hidden); }
  Parameters scale_parameters(Worker& worker) const { return share(worker, part_.scale_parameters()); }
  Parameters parameters(Worker& worker) const { return share(worker, part_.parameters()); }

 private:
  static Parameters share(Worker& worker, const std::vector<Tensor>& parameters) {
    Parameters references;
    for (const Tensor& parameter : parameters) references.push_back(worker.make_rref(parameter));
    return references;
  }
  RemotePart part_;
};

Registry make_registry() {
  Registry registry;
  registry.add<&echo>("bench.echo");
  registry.add<&relay>("bench.relay");
  registry.add<&pass_frames>("bench.pass_frames");
  registry.add<&open_contexts>("bench.open_contexts");
  registry.add<Part>("bench.part")
      .constructor<>()
      .method<&Part::scale>("scale")
      .method<&Part::embed>("embed")
      .method<&Part::decode>("decode")
      .method<&Part::scale_parameters>("scale_parameters")
      .method<&Part::parameters>("parameters");
  return registry;
}

class AutogradBench {
 public:
  AutogradBench(Worker& worker, const Rig& rig, std::vector<std::string> others)
      : worker_(worker),
        rig_(rig),
        others_(std::move(others)),
        part_(worker.remote<Part>(others_[0])),
        scale_step_(worker, part_.rpc_sync<&Part::scale_parameters>(), optim::SGD{.lr = kLearningRate}),
        step_(worker, all_parameters(), optim::SGD{.lr = kLearningRate}) {}

  std::map<std::string, Measure> measures() {
    std::map<std::string, Measure> all;
    if (others_.size() > 1) {
      add(all, "fan", &AutogradBench::fan);
      return all;
    }
    all["sync"] = [this](const Request& request) {
      const Tensor tensor = at::ones({static_cast<std::int64_t>(request.floats)});
      return rig_.sync(request, [&] { worker_.rpc_sync<&echo>(others_[0], tensor); });
    };
    all["context"] = [this](const Request& request) {
      return rig_.sync(request, [&] { const Context context(worker_); });
    };
    all["forward"] = [this](const Request& request) {
      const Tensor x = leaf(request);
      return rig_.sync(request, [&] { forward(x, {}); });
    };
    add(all, "hop", &AutogradBench::hop);
    add(all, "step", &AutogradBench::step);
    add(all, "chain", &AutogradBench::chain);
    add(all, "nested", &AutogradBench::nested);
    add(all, "rnn", &AutogradBench::rnn);
    all["frames"] = [this](const Request& request) { return frames(request); };
    return all;
  }

 private:
  using Iteration = void (AutogradBench::*)(const Tensor&, Mode);

  static Tensor leaf(const Request& request) {
    return at::ones({static_cast<std::int64_t>(request.floats)}).requires_grad_();
  }
  void add(std::map<std::string, Measure>& all, const std::string& name, Iteration iteration) {
    for (const Mode mode : {Mode::smart, Mode::fast}) {
      all[mode == Mode::smart ? name : name + "_fast"] = [this, iteration, mode](const Request& request) {
        const Tensor x = leaf(request);
        return rig_.sync(request, [&] { (this->*iteration)(x, mode); });
      };
    }
  }

  Parameters all_parameters() {
    Parameters parameters = part_.rpc_sync<&Part::parameters>();
    for (const Tensor& parameter : trainer_.parameters()) parameters.push_back(worker_.make_rref(parameter));
    return parameters;
  }

  static void check(const Context& context, const Tensor& leaf) {
    if (context.gradients().of(leaf).defined()) return;
    std::fprintf(stderr, "autograd_bench: the backward pass left no gradient\n");
    std::exit(1);
  }

  void forward(const Tensor& x, Mode) {
    const Context context(worker_);
    (void)worker_.rpc_sync<&echo>(others_[0], x);
  }
  void hop(const Tensor& x, Mode mode) {
    const Context context(worker_);
    const Tensor y = worker_.rpc_sync<&echo>(others_[0], x);
    context.backward({y.sum()}, {.mode = mode});
    check(context, x);
  }
  void step(const Tensor& x, Mode mode) {
    const Context context(worker_);
    const Tensor y = part_.rpc_sync<&Part::scale>(x);
    context.backward({y.sum()}, {.mode = mode});
    scale_step_.step(context);
  }
  void chain(const Tensor& x, Mode mode) {
    const Context context(worker_);
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = worker_.rpc_sync<&echo>(others_[0], y);
    context.backward({y.sum()}, {.mode = mode});
    check(context, x);
  }
  void nested(const Tensor& x, Mode mode) {
    const Context context(worker_);
    const Tensor y = worker_.rpc_sync<&relay>(others_[0], worker_.name(), kChain - 1, x);
    context.backward({y.sum()}, {.mode = mode});
    check(context, x);
  }
  void fan(const Tensor& x, Mode mode) {
    const Context context(worker_);
    std::vector<Future<Tensor>> open;
    for (const std::string& other : others_) open.push_back(worker_.rpc_async<&echo>(other, x));
    Tensor loss = open[0].get().sum();
    for (std::size_t i = 1; i < open.size(); ++i) loss = loss + open[i].get().sum();
    context.backward({loss}, {.mode = mode});
    check(context, x);
  }
  void rnn(const Tensor&, Mode mode) {
    const Context context(worker_);
    const Tensor hidden = trainer_.forward(part_.rpc_sync<&Part::embed>(trainer_.characters()));
    context.backward({trainer_.loss(part_.rpc_sync<&Part::decode>(hidden))}, {.mode = mode});
    step_.step(context);
  }

  /// Returns the frames of one pass, without those for joining and releasing the context.
  Line frames(const Request& request) {
    constexpr int kPasses = 20;
    Line line;
    line.add("side", std::string("caftan unix")).add("measure", request.measure);
    const Tensor x = leaf(request);
    const auto count = [&] { return pass_frames(worker_) + worker_.rpc_sync<&pass_frames>(others_[0]); };
    const auto each = [&](Iteration iteration, Mode mode) {
      const std::uint64_t before = count();
      for (int i = 0; i < kPasses; ++i) (this->*iteration)(x, mode);
      // The release of a context is the last message about it: waits until both workers have none open.
      while (open_contexts(worker_) + worker_.rpc_sync<&open_contexts>(others_[0]) != 0) {
      }
      return static_cast<double>(count() - before) / kPasses;
    };
    const double context = each(&AutogradBench::forward, Mode::smart);
    for (const auto& [name, iteration] : std::initializer_list<std::pair<std::string, Iteration>>{
             {"hop", &AutogradBench::hop}, {"chain", &AutogradBench::chain}, {"nested", &AutogradBench::nested}}) {
      line.add(name, each(iteration, Mode::smart) - context);
      line.add(name + "_fast", each(iteration, Mode::fast) - context);
    }
    return line;
  }

  Worker& worker_;
  const Rig& rig_;
  const std::vector<std::string> others_;
  const Trainer trainer_;
  RRef<Part> part_;
  optim::DistributedOptimizer scale_step_;
  optim::DistributedOptimizer step_;
};

Result<std::unique_ptr<Worker>> start(const test::Folder& folder, const std::vector<std::string>& names,
                                      std::size_t self) {
  WorkerOptions options;
  options.name = names[self];
  for (const std::string& name : names) options.world.push_back({name, "unix:" + (folder / name)});
  options.secret = "benchmark";
  return Worker::start(std::move(options), make_registry());
}

int run(std::size_t count) {
  const test::Folder folder;
  std::vector<std::string> names{"trainer"};
  for (std::size_t i = 1; i <= count; ++i) names.push_back("part" + std::to_string(i));
  std::vector<std::unique_ptr<PeerProcess>> peers;
  std::vector<pid_t> pids;
  for (std::size_t i = 1; i <= count; ++i) {
    peers.push_back(std::make_unique<PeerProcess>([&, i](const ParentLink& parent) {
      const auto worker = start(folder, names, i);
      if (!worker) return 1;
      parent.wait_for_end();
      (*worker)->stop();
      return 0;
    }));
    pids.push_back(peers.back()->pid());
  }
  const auto worker = start(folder, names, 0);
  if (!worker) {
    std::fprintf(stderr, "autograd_bench: %s\n", worker.error().message().c_str());
    return 1;
  }
  const Rig rig("caftan unix", pids);
  int code = 0;
  {
    AutogradBench bench(**worker, rig, {names.begin() + 1, names.end()});
    code = rig.serve(bench.measures());
  }
  (*worker)->stop();
  // The last one first: each process holds the pipes of those that were made before it.
  while (!peers.empty()) peers.pop_back();
  return code;
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  std::size_t workers = 1;
  const std::string text = argc > 1 ? argv[1] : "1";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), workers);
  if (argc <= 2 && error == std::errc{} && end == text.data() + text.size() && workers >= 1 && workers <= 16) {
    return caftan::bench::run(workers);
  }
  std::fprintf(stderr, "usage: autograd_bench [WORKERS]\n");
  return 2;
}

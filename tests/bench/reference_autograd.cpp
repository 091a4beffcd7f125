// The reference's autograd contexts and engine over its own agent, with the measures of autograd_bench.cpp: the same
// graphs, in as many processes. Functions of our own run as operators that every process adds; a step is a call that
// takes its gradients out of the caller's context, as PyTorch's DistributedOptimizer makes one to each owner.
//
//   reference_autograd default | shm [WORKERS]      (1 by default; 4 for the fan-out)
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd_model.hpp"
#include "measure.hpp"
#include "peer_process.hpp"
#include "reference.hpp"

namespace caftan::bench {
namespace {

using Values = std::vector<c10::IValue>;
using reference::Context;
using reference::Function;

constexpr int kChain = 8;  // calls of a chain
constexpr std::int16_t kPeer = 1;

/// SGD over what the context of the running code, or the given one, has gradients for.
template <class Gradient>
void descend(const std::vector<at::Tensor>& parameters, const Gradient& gradient) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters) {
    if (const at::Tensor g = gradient(parameter); g.defined()) parameter.sub_(g, kLearningRate);
  }
}

/// The functions that every process can be asked to run.
struct Functions {
  explicit Functions(std::int16_t self)
      : part(std::make_shared<RemotePart>()),
        clone(reference::find_function("aten::clone")),
        scale(add("aten::caftan_scale(Tensor x) -> Tensor",
                  [part = part](const Values& a) { return part->scale(a[0].toTensor()); })),
        embed(add("aten::caftan_embed(Tensor x) -> Tensor",
                  [part = part](const Values& a) { return part->embed(a[0].toTensor()); })),
        decode(add("aten::caftan_decode(Tensor x) -> Tensor",
                   [part = part](const Values& a) { return part->decode(a[0].toTensor()); })),
        scale_step(add("aten::caftan_scale_step(Tensor x) -> Tensor",
                       [part = part](const Values& a) {
                         descend(part->scale_parameters(), reference::gradient_in_current_context);
                         return a[0].toTensor();
                       })),
        step(add("aten::caftan_step(Tensor x) -> Tensor",
                 [part = part](const Values& a) {
                   descend(part->parameters(), reference::gradient_in_current_context);
                   return a[0].toTensor();
                 })),
        relay(add("aten::caftan_relay(Tensor x, int depth) -> Tensor", [self, this](const Values& a) {
          const std::int64_t depth = a[1].toInt();
          if (depth == 0) return a[0].toTensor() * 2;
          return reference::call(self == 0 ? kPeer : 0, relay, {a[0], depth - 1}).toTensor();
        })) {}
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  static Function add(const std::string& schema, std::function<at::Tensor(const Values&)> body) {
    return reference::add_function(schema, std::move(body));
  }

  const std::shared_ptr<const RemotePart> part;
  const Function clone, scale, embed, decode, scale_step, step, relay;
};

class ReferenceAutograd {
 public:
  ReferenceAutograd(const Functions& functions, const Rig& rig, std::int16_t workers)
      : functions_(functions), rig_(rig), workers_(workers) {}

  std::map<std::string, Measure> measures() {
    std::map<std::string, Measure> all;
    if (workers_ > 1) {
      add(all, "fan", &ReferenceAutograd::fan);
      return all;
    }
    all["sync"] = [this](const Request& request) {
      const at::Tensor tensor = at::ones({static_cast<std::int64_t>(request.floats)});
      return rig_.sync(request, [&] { clone_at(kPeer, tensor); });
    };
    all["context"] = [this](const Request& request) { return rig_.sync(request, [] { const Context context; }); };
    add(all, "forward", &ReferenceAutograd::forward);
    add(all, "hop", &ReferenceAutograd::hop);
    add(all, "step", &ReferenceAutograd::step);
    add(all, "chain", &ReferenceAutograd::chain);
    add(all, "nested", &ReferenceAutograd::nested);
    add(all, "rnn", &ReferenceAutograd::rnn);
    return all;
  }

 private:
  using Iteration = void (ReferenceAutograd::*)(const at::Tensor&);

  void add(std::map<std::string, Measure>& all, const std::string& name, Iteration iteration) {
    all[name] = [this, iteration](const Request& request) {
      const at::Tensor x = at::ones({static_cast<std::int64_t>(request.floats)}).requires_grad_();
      return rig_.sync(request, [&] { (this->*iteration)(x); });
    };
  }

  at::Tensor clone_at(std::int16_t rank, const at::Tensor& x) const {
    return reference::call(rank, functions_.clone, {x, c10::IValue()}).toTensor();
  }
  static at::Tensor call(const Function& function, const at::Tensor& x) {
    return reference::call(kPeer, function, {x}).toTensor();
  }
  static void check(const Context& context, const at::Tensor& leaf) {
    if (context.gradient(leaf).defined()) return;
    std::fprintf(stderr, "reference_autograd: the backward pass left no gradient\n");
    std::exit(1);
  }

  void forward(const at::Tensor& x) {
    const Context context;
    clone_at(kPeer, x);
  }
  void hop(const at::Tensor& x) {
    const Context context;
    context.backward({clone_at(kPeer, x).sum()});
    check(context, x);
  }
  void step(const at::Tensor& x) {
    const Context context;
    context.backward({call(functions_.scale, x).sum()});
    call(functions_.scale_step, none_);
  }
  void chain(const at::Tensor& x) {
    const Context context;
    at::Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = clone_at(kPeer, y);
    context.backward({y.sum()});
    check(context, x);
  }
  void nested(const at::Tensor& x) {
    const Context context;
    context.backward({reference::call(kPeer, functions_.relay, {x, kChain - 1}).toTensor().sum()});
    check(context, x);
  }
  void fan(const at::Tensor& x) {
    const Context context;
    std::vector<reference::Pending> open;
    for (std::int16_t rank = 1; rank <= workers_; ++rank) {
      open.push_back(reference::call_async(rank, functions_.clone, {x, c10::IValue()}));
    }
    at::Tensor loss = reference::get(open[0]).toTensor().sum();
    for (std::size_t i = 1; i < open.size(); ++i) loss = loss + reference::get(open[i]).toTensor().sum();
    context.backward({loss});
    check(context, x);
  }
  void rnn(const at::Tensor&) {
    const Context context;
    const at::Tensor hidden = trainer_.forward(call(functions_.embed, trainer_.characters()));
    context.backward({trainer_.loss(call(functions_.decode, hidden))});
    const auto there = reference::call_async(kPeer, functions_.step, {none_});
    descend(trainer_.parameters(), [&](const at::Tensor& parameter) { return context.gradient(parameter); });
    reference::get(there);
  }

  const Functions& functions_;
  const Rig& rig_;
  const std::int16_t workers_;
  const Trainer trainer_;
  const at::Tensor none_ = at::ones({1});
};

int run(const std::string& transports, std::int16_t workers) {
  const auto start = [&](std::int16_t rank, reference::Listener store) {
    reference::start(
        {.rank = rank, .world = static_cast<std::int16_t>(workers + 1), .transports = transports, .store = store});
  };
  std::vector<std::unique_ptr<PeerProcess>> peers;
  std::vector<pid_t> pids;
  for (std::int16_t rank = 1; rank <= workers; ++rank) {
    peers.push_back(std::make_unique<PeerProcess>([&, rank](const ParentLink& parent) -> int {
      const Functions functions(rank);
      start(rank, {-1, static_cast<std::uint16_t>(std::stoi(parent.hear()))});
      parent.wait_for_end();
      _exit(0);
    }));
    pids.push_back(peers.back()->pid());
  }
  const Functions functions(0);
  const reference::Listener listener = reference::listen_on_loopback();
  for (const auto& peer : peers) peer->write_line(std::to_string(listener.port));
  start(0, listener);
  const Rig rig("reference " + transports, pids);
  ReferenceAutograd bench(functions, rig, workers);
  const int code = rig.serve(bench.measures());
  std::fflush(stdout);
  // All processes are killed at once: otherwise each would warn of the loss of the others.
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  _exit(code);
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const std::string transports = argc >= 2 ? argv[1] : "";
  const int workers = argc == 3 ? std::atoi(argv[2]) : 1;
  if (argc <= 3 && (transports == "default" || transports == "shm") && workers >= 1 && workers <= 16) {
    return caftan::bench::run(transports, static_cast<std::int16_t>(workers));
  }
  std::fprintf(stderr, "usage: reference_autograd default | shm [WORKERS]\n");
  return 2;
}

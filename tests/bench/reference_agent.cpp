// The reference: PyTorch's own TensorPipe agent, RRefs and autograd engine, driven from C++ without Python in two
// processes. A call runs the built-in operator aten::clone on a tensor, the reference's cheapest echo.
//
//   reference_agent default | shm       (the reference's default transports; or only {"shm"} with {"basic"})
#include <torch/csrc/distributed/autograd/utils.h>
#include <torch/csrc/distributed/rpc/rref_context.h>
#include <torch/csrc/distributed/rpc/script_remote_call.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "peer_process.hpp"
#include "reference.hpp"

namespace caftan::bench {
namespace {

namespace rpc = torch::distributed::rpc;
using reference::Pending;

class Reference {
 public:
  Pending send_clone(const at::Tensor& tensor) const { return reference::call_async(1, clone_, stack_of(tensor)); }
  static at::Tensor receive(const Pending& pending) { return reference::get(pending).toTensor(); }

  /// Does the same as rpc.remote followed by to_here for a built-in operator.
  at::Tensor remote_to_here(const at::Tensor& tensor) const {
    const auto agent = rpc::RpcAgent::getCurrentRpcAgent();
    const rpc::WorkerInfo& peer = agent->getWorkerInfo(rpc::worker_id_t{1});
    auto& references = rpc::RRefContext::getInstance();
    auto user = references.createUserRRef(peer.id_, c10::TensorType::get());
    references.addPendingUser(user->forkId(), user);
    rpc::ScriptRemoteCall call(clone_.op, stack_of(tensor), user->rrefId(), user->forkId());
    auto created = torch::distributed::autograd::sendMessageWithAutograd(*agent, peer, std::move(call).toMessage());
    const auto fork_id = user->forkId();
    created->addCallback([fork_id](c10::ivalue::Future& done) { rpc::callback::confirmPendingUser(done, fork_id); });
    at::Tensor value = user->toHere().toTensor();
    // Waits for the owner's confirmation: PyTorch would delete a reference that ends before it out of order.
    created->waitAndThrow();
    return value;
  }

  /// Makes one hop: a context, a call of clone at the peer, a backward pass from the sum of the result, and the
  /// context's release.
  void hop(const at::Tensor& leaf) const {
    const reference::Context context;
    context.backward({receive(send_clone(leaf)).sum()});
    if (context.gradient(leaf).defined()) return;
    std::fprintf(stderr, "reference_agent: the backward pass left no gradient\n");
    std::exit(1);
  }

 private:
  static std::vector<at::IValue> stack_of(const at::Tensor& tensor) { return {tensor, at::IValue()}; }

  const reference::Function clone_ = reference::find_function("aten::clone");
};

at::Tensor make_tensor(const Request& request) { return at::ones({static_cast<std::int64_t>(request.floats)}); }

int run(const std::string& transports) {
  const auto start = [&](std::int16_t rank, reference::Listener store) {
    reference::start({.rank = rank, .transports = transports, .store = store});
  };
  PeerProcess peer([&](const ParentLink& parent) -> int {
    start(1, {-1, static_cast<std::uint16_t>(std::stoi(parent.hear()))});
    parent.wait_for_end();
    // Static destructors of the reference's singletons are not safe: both processes leave without them.
    _exit(0);
  });
  const reference::Listener listener = reference::listen_on_loopback();
  peer.write_line(std::to_string(listener.port));
  start(0, listener);
  const Reference reference;
  const Rig rig("reference " + transports, {peer.pid()});
  const int code = rig.serve({
      {"sync",
       [&](const Request& request) {
         const auto tensor = make_tensor(request);
         return rig.sync(request, [&] { Reference::receive(reference.send_clone(tensor)); });
       }},
      {"pipelined",
       [&](const Request& request) {
         const auto tensor = make_tensor(request);
         std::vector<Pending> open(request.window);
         return rig.pipelined(
             request, [&](std::size_t slot) { open[slot] = reference.send_clone(tensor); },
             [&](std::size_t slot) { Reference::receive(open[slot]); });
       }},
      {"remote",
       [&](const Request& request) {
         const auto tensor = make_tensor(request);
         return rig.sync(request, [&] { reference.remote_to_here(tensor); });
       }},
      {"hop",
       [&](const Request& request) {
         const auto leaf = make_tensor(request).requires_grad_(true);
         return rig.sync(request, [&] { reference.hop(leaf); });
       }},
      {"idle", [&](const Request& request) { return rig.idle(request); }},
  });
  std::fflush(stdout);
  peer.kill();
  _exit(code);
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const std::string transports = argc == 2 ? argv[1] : "";
  if (transports == "default" || transports == "shm") return caftan::bench::run(transports);
  std::fprintf(stderr, "usage: reference_agent default | shm\n");
  return 2;
}
